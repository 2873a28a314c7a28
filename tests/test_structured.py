"""Texts that have to be something: documents, choices, matches."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from tests.answers import CHAT, COMPLETIONS, TOKENIZER, Json, Mock, assemble

MOCK = Mock()
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "born": {"type": "string", "format": "date"},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
        "kind": {"enum": ["a", "b", None]},
    },
    "required": ["name", "born", "children", "kind"],
    "additionalProperties": False,
}


def json_schema(schema: Any = SCHEMA, **more: Any) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "person", "schema": schema} | more}


WAYS: list[Json] = [
    {"response_format": json_schema()},
    {"response_format": json_schema(strict=True)},
    {"guided_json": SCHEMA},
    {"guided_json": json.dumps(SCHEMA)},
    {"structured_outputs": {"json": SCHEMA}},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_document_meets_its_schema(path: str, way: Json) -> None:
    for seed in range(20):
        reply = MOCK.whole(path, seed=seed, max_tokens=4000, **way)
        choice = reply["choices"][0]
        text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
        assert choice["finish_reason"] == "stop"
        assert reply["usage"]["completion_tokens"] == TOKENIZER.count(text)


def test_its_length_is_its_own() -> None:
    """Nothing that shapes free text makes a document longer or shorter."""
    plain = MOCK.text(response_format=json_schema())
    for body in ({"ignore_eos": True, "max_tokens": 4000}, {"min_tokens": 900}):
        assert MOCK.text(response_format=json_schema(), **body) == plain
    assert Mock(output_tokens=3).text(response_format=json_schema()) == plain


@pytest.mark.parametrize("limit", [1, 4, 9])
def test_the_limit_cuts_it(limit: int) -> None:
    full = MOCK.text(response_format=json_schema())
    choice = MOCK.whole(CHAT, response_format=json_schema(), max_tokens=limit)["choices"][0]
    assert choice["message"]["content"] == "".join(TOKENIZER.pieces(full)[:limit])
    assert choice["finish_reason"] == "length"


def test_a_json_object_is_one() -> None:
    texts = [MOCK.text(response_format={"type": "json_object"}, seed=seed) for seed in range(10)]
    assert all(isinstance(json.loads(text), dict) for text in texts)
    assert len(set(texts)) == 10


def test_without_a_schema_it_is_any_object() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "anything"}}
    assert isinstance(json.loads(MOCK.text(response_format=wanted)), dict)


@pytest.mark.parametrize("way", ["guided_choice", "structured_outputs"])
def test_one_of_several_choices(way: str) -> None:
    choices = ["yes", "no", "perhaps „so“"]
    value: Any = choices if way == "guided_choice" else {"choice": choices}
    replies = {MOCK.text(seed=seed, **{way: value}) for seed in range(30)}
    assert replies == set(choices)


@pytest.mark.parametrize("way", ["guided_regex", "structured_outputs"])
def test_a_match_of_a_pattern(way: str) -> None:
    pattern = r"(Mon|Tues)day, [0-3]\d\.\d{2}\.20[0-9]{2}"
    value: Any = pattern if way == "guided_regex" else {"regex": pattern}
    for seed in range(20):
        assert re.fullmatch(pattern, MOCK.text(seed=seed, **{way: value}))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"response_format": {"type": "nope"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema", "schema": {}}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
        ),
        ({"response_format": json_schema({"type": "txt"})}, "response_format.json_schema.schema"),
        ({"response_format": json_schema({"type": "string", "minLength": 5, "maxLength": 3})}, None),
        ({"response_format": json_schema(5)}, "response_format.json_schema.schema"),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_json": {"type": "txt"}}, "guided_json"),
        ({"guided_choice": []}, "guided_choice"),
        ({"guided_regex": "("}, "guided_regex"),
        ({"guided_grammar": "root ::= 'x'"}, "guided_grammar"),
        ({"structured_outputs": {"choice": [1]}}, "structured_outputs.choice"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_regex"),
    ],
)
def test_what_cannot_be_met(body: Json, param: str | None) -> None:
    error = MOCK.error(CHAT, **body)
    assert error["param"] == param or param is None
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("empty", [None, {"type": "text"}])
def test_text_is_text(empty: Any) -> None:
    assert MOCK.text(response_format=empty) == MOCK.text()


def test_documents_of_several_choices_differ_and_stream_interleaved() -> None:
    body = {"response_format": json_schema(), "n": 3}
    whole = MOCK.whole(CHAT, **body)
    assert len({choice["message"]["content"] for choice in whole["choices"]}) == 3
    streamed = assemble(MOCK.chunks(CHAT, 1, 5, **body))
    assert [choice["message"]["content"] for choice in streamed["choices"]] == [
        choice["message"]["content"] for choice in whole["choices"]
    ]
