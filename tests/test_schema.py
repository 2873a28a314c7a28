"""Values for JSON schemas; the `jsonschema` library is the foreign judge.

`data/schemas` holds what real tools print: `model_json_schema` of pydantic 2.14, `toJSONSchema` of
zod 4.6 and zod-to-json-schema on zod 3's API, `tools/list` of the reference MCP servers (npm and PyPI), and
schemas in the style of OpenAI's guide to structured outputs. `data/schema_cases` has a line for each keyword.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, assume, given, settings
from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.validators import validator_for

from mockllm.errors import RequestError
from mockllm.generation.keyed import make_key
from mockllm.generation.schema import check, compile, generate, to_json
from mockllm.generation.schema.limits import MAX_ITEMS, MAX_TOTAL_CHARS
from tests.schemas import JUDGED, SCHEMAS, USUAL, agreed, formats

KEYS = [make_key(number, b"schema") for number in range(25)]
DATA = Path(__file__).parent / "data" / "schemas"
CASES = Path(__file__).parent / "data" / "schema_cases"
CORPUS = [
    pytest.param(schema, id=f"{path.stem}-{name}")
    for path in sorted(DATA.glob("*.json"))
    for name, schema in json.loads(path.read_text()).items()
]


def judge(schema: Any) -> Any:
    """A validator of the draft that the schema names, formats asserted."""
    kind = validator_for(schema, default=Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def assert_valid(schema: Any, value: Any, validator: Any = None) -> None:
    decoded = json.loads(to_json(value))
    assert decoded == value
    errors = [error.message for error in (validator or judge(schema)).iter_errors(decoded)]
    assert not errors, (schema, value, errors)


def refusal(schema: Any) -> RequestError | None:
    """How the schema is refused, None where it can be met."""
    try:
        check(schema, param="schema")
    except RequestError as error:
        return error
    return None


@pytest.mark.parametrize("schema", CORPUS)
def test_schemas_of_real_projects(schema: Any) -> None:
    compiled = compile(schema, param="tools[0].function.parameters")
    values = [compiled.generate(key) for key in KEYS]
    validator = judge(schema)
    for value in values:
        assert_valid(schema, value, validator)
    assert values == [compile(schema).generate(key) for key in KEYS]


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) > 100
    assert {path.stem.partition("-")[0] for path in DATA.glob("*.json")} >= {"mcp", "openai", "pydantic", "zod"}


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS)
def test_random_schemas_are_met_or_refused(schema: Any) -> None:
    assume(agreed(schema))
    error = refusal(schema)
    if error is not None:
        assert error.status == 400
        assert error.message.startswith("Invalid JSON schema at #")
        return
    compiled = compile(schema)
    validator = judge(schema)
    for key in KEYS[:4]:
        assert_valid(schema, compiled.generate(key), validator)


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(USUAL)
def test_what_is_refused_cannot_be_met_by_common_values(schema: Any) -> None:
    assume(formats(schema) <= JUDGED)
    if refusal(schema) is not None:
        validator = judge(schema)
        pool = [None, True, 0, 1, 12, 2.5, "", "a", "on", "x9", [], [1], ["a", 1], {}, {"id": 1}, {"name": "a", "n": 0}]
        assert not [value for value in pool if validator.is_valid(value)]


@pytest.mark.parametrize("line", (CASES / "met.jsonl").read_text().splitlines())
def test_each_keyword(line: str) -> None:
    schema = json.loads(line)
    compiled = compile(schema)
    validator = judge(schema)
    for key in KEYS:
        assert_valid(schema, compiled.generate(key), validator)


def test_forms_of_draft_4() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "array",
        "minItems": 2,
        "additionalItems": False,
        "items": [
            {"type": "integer", "minimum": 5, "exclusiveMinimum": True, "maximum": 6},
            {"$ref": "#/definitions/x"},
        ],
        "definitions": {"x": {"enum": ["q"]}},
    }
    value = generate(schema, KEYS[0])
    assert value == [6, "q"]
    Draft4Validator(schema).validate(value)


@pytest.mark.parametrize("line", (CASES / "unmet.jsonl").read_text().splitlines())
def test_what_cannot_be_met_is_refused_with_its_place(line: str) -> None:
    case = json.loads(line)
    with pytest.raises(RequestError) as caught:
        check(case["schema"], param="tools[3].function.parameters")
    error = caught.value
    assert (error.status, error.code) == (400, "invalid_function_parameters")
    assert error.param == "tools[3].function.parameters"
    assert error.message.startswith(f"Invalid JSON schema at {case['at']}: ")
    assert case["says"] in error.message


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), 10**400])
def test_numbers_that_json_cannot_carry_are_refused(bound: float) -> None:
    with pytest.raises(RequestError, match="range of a double"):
        check({"minimum": bound}, param="p")


def test_the_code_is_that_of_the_field() -> None:
    with pytest.raises(RequestError) as caught:
        check({"type": "x"}, param="response_format.json_schema.schema")
    assert caught.value.code is None


def nested(depth: int, leaf: Any, wrap: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


def doubled(keyword: str, depth: int, leaf: Any) -> Any:
    """A schema whose work doubles with each of its levels."""
    defs = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": leaf}}


HOSTILE: dict[str, Any] = {
    "deep properties": nested(
        10_000, {}, lambda part: {"type": "object", "properties": {"a": part}, "required": ["a"]}
    ),
    "long paths": nested(90, {}, lambda part: {"properties": {"a" * 50_000: part, "b": {}}}),
    "deep allOf": nested(10_000, {}, lambda part: {"allOf": [part]}),
    "deep not": nested(10_000, {}, lambda part: {"not": part}),
    "deep items": nested(99, {}, lambda part: {"type": "array", "items": part, "minItems": 1}),
    "deep const and loop": {
        "const": nested(95, 1, lambda part: [part]),
        "$ref": "#/$defs/a",
        "$defs": {"a": {"items": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}},
    },
    "deep const": {"const": nested(10_000, 1, lambda part: [part])},
    "chain of references": {
        "$ref": "#/$defs/0",
        "$defs": {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(10_000)},
    },
    "minItems": {"type": "array", "minItems": 10**6},
    "minItems squared": {"type": "array", "minItems": 1000, "items": {"type": "array", "minItems": 1000}},
    "contains": {"type": "array", "contains": {"const": 3}, "minContains": 10**6},
    "unique": {"type": "array", "minItems": 3000, "uniqueItems": True, "items": {"type": "integer"}},
    "minProperties": {"type": "object", "minProperties": 10**6},
    "many properties": {"type": "object", "minProperties": 3000},
    "minLength": {"type": "string", "minLength": 10**9},
    "long strings": {"type": "array", "minItems": 4900, "items": {"type": "string", "minLength": 60_000}},
    "allOf doubled": doubled("allOf", 29, {"type": "string"}),
    "anyOf doubled": doubled("anyOf", 25, {"type": "string", "minLength": 5, "maxLength": 3}),
    "oneOf doubled": doubled("oneOf", 25, {"type": "string"}),
    "anyOf product": {
        "type": "integer",
        "allOf": [{"anyOf": [{"minimum": i + j, "maximum": i} for j in range(1, 5)]} for i in range(50)],
    },
    "enum": {"enum": list(range(10**6))},
    "large enum with a condition": {"enum": list(range(15_000)), "minimum": 14_999},
    "regex": {"type": "string", "pattern": "^(a+)+$", "minLength": 60_000},
    "regexes": {"type": "object", "patternProperties": {f"^(a+)+{i}$": {} for i in range(2000)}, "minProperties": 50},
    "tree of 2^20": nested(
        20, {}, lambda part: {"type": "object", "properties": {"a": part, "b": part}, "required": ["a", "b"]}
    ),
    "recursion across allOf": {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"$ref": "#"}}}]},
    "wide object": {
        "type": "object",
        "properties": {f"p{i}": {} for i in range(4000)},
        "required": [f"p{i}" for i in range(4000)],
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end(name: str) -> None:
    """Refused, or met by a value of bounded size; without the limits these take for ever or crash."""
    error = refusal(HOSTILE[name])
    if error is not None:
        assert error.status == 400
        assert len(error.message) < 1000
        return
    value = generate(HOSTILE[name], KEYS[0])
    assert len(to_json(value)) < 2 * MAX_TOTAL_CHARS
    if isinstance(value, list | dict):
        assert len(value) <= MAX_ITEMS


def test_the_key_decides() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "u": {"enum": ["a", "b", "c"]},
            "n": {"type": "integer"},
        },
    }
    compiled = compile(schema)
    values = [to_json(compiled.generate(key)) for key in KEYS]
    assert values == [to_json(generate(schema, key)) for key in KEYS]
    assert len(set(values)) > 10


def test_enum_values_and_optional_properties_vary() -> None:
    schema = {
        "type": "object",
        "properties": {"u": {"enum": ["a", "b", "c"]}, "v": {"type": "boolean"}},
        "required": ["u"],
    }
    compiled = compile(schema)
    values = [compiled.generate(key) for key in KEYS]
    assert {value["u"] for value in values} == {"a", "b", "c"}
    assert {"v" in value for value in values} == {True, False}


def test_strict_forbids_extras() -> None:
    open_map = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
        "minProperties": 1,
    }
    compiled = compile(open_map, strict=True)
    assert all(set(compiled.generate(key)) <= {"a"} for key in KEYS)
    assert compile({**open_map, "minProperties": 2}).generate(KEYS[0])
    with pytest.raises(RequestError, match="minProperties"):
        compile({**open_map, "minProperties": 2}, strict=True)
    with pytest.raises(RequestError, match="not among the properties"):
        compile({"type": "object", "required": ["b"], "properties": {"a": {}}}, strict=True)
    assert generate({"type": "object", "additionalProperties": {"type": "integer"}}, KEYS[0], strict=True) == {}


def test_values_are_plausible() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    properties = {"city": text, "userEmail": text, "start_date": text, "age": number, "port": number}
    compiled = compile({"type": "object", "properties": properties, "required": list(properties)})
    for key in KEYS:
        value = compiled.generate(key)
        assert list(value) == list(properties)
        assert value["city"].istitle()
        assert "@" in value["userEmail"]
        assert datetime.fromisoformat(value["start_date"]).year > 2000
        assert 18 <= value["age"] <= 80
        assert 1024 <= value["port"] <= 9999


def test_examples_are_used() -> None:
    schema = {"type": "string", "examples": ["PAR-123", 7]}
    compiled = compile(schema)
    assert "PAR-123" in {compiled.generate(key) for key in KEYS}


FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": datetime.fromisoformat,
    "time": time.fromisoformat,
    "uri": lambda text: urlsplit(text).scheme == "https" and urlsplit(text).hostname,
    "hostname": lambda text: text.replace(".", "").replace("-", "").isalnum(),
    "duration": lambda text: text.startswith("P"),
    "json-pointer": lambda text: text.startswith("/"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_that_jsonschema_does_not_judge_alone(name: str) -> None:
    """They need further packages there; these judges are plainer."""
    compiled = compile({"type": "string", "format": name})
    for key in KEYS:
        assert FORMATS[name](compiled.generate(key)), name


def test_json_text_is_compact_and_always_utf_8() -> None:
    assert to_json({"a": [1, 2.5, None, True], "b": "é\n"}) == '{"a":[1,2.5,null,true],"b":"é\\n"}'
    assert to_json(["é", "\ud800"]).encode() == b'["\\u00e9","\\ud800"]'
