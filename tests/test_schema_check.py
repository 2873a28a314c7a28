"""Our own check of a value against a schema agrees with the `jsonschema` library."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from jsonschema import Draft202012Validator

from mockllm.generation.schema.check import Checker
from mockllm.generation.schema.compiler import Compiler
from mockllm.generation.schema.graph import refuse_loops
from mockllm.generation.schema.limits import UnmetError, Work
from tests.schemas import JUDGED, SCHEMAS, formats, values


def ours(schema: Any, value: Any) -> bool:
    compiler = Compiler(schema)
    root = compiler.run()
    refuse_loops(compiler.nodes)
    return Checker(Work()).valid(root, value)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, values)
def test_it_agrees_with_jsonschema(schema: Any, value: Any) -> None:
    assume(formats(schema) <= JUDGED)
    theirs = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).is_valid(value)
    assert ours(schema, value) == theirs


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, 2.0, True),
        ({"type": "integer"}, True, False),
        ({"const": 1}, True, False),
        ({"const": 1}, 1.0, True),
        ({"enum": [{"a": 1, "b": [0]}]}, {"b": [False], "a": 1}, False),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"multipleOf": 0.01}, 0.07, False),  # as validators see it: 0.07 / 0.01 is no whole number
        ({"multipleOf": 0.5}, 10**400, False),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1, "b": 2}, False),
        ({"anyOf": [{"properties": {"a": {"const": 1}}}, {}], "unevaluatedProperties": False}, {"a": 2}, False),
        (
            {
                "if": {"required": ["a"]},
                "then": {"properties": {"b": {}}},
                "properties": {"a": {}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 2},
            True,
        ),
        ({"prefixItems": [{}], "contains": {"const": 3}, "unevaluatedItems": False}, [1, 3, 3], True),
        ({"prefixItems": [{}], "contains": {"const": 3}, "unevaluatedItems": False}, [1, 3, 4], False),
        ({"minContains": 0, "contains": {"const": 3}, "maxContains": 1}, [3, 3], False),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, False),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, ["a"], True),
        ({"pattern": "^a$"}, "a\n", True),  # Python's `$`
        ({"minLength": 1, "maxLength": 1}, "😀", True),
    ],
)
def test_corners(schema: Any, value: Any, expected: bool) -> None:
    assert ours(schema, value) is expected


def test_work_is_counted() -> None:
    defs: dict[str, Any] = {str(i): {"not": {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2}} for i in range(18)}
    schema = {"$ref": "#/$defs/0", "$defs": {**defs, "18": {"type": "null"}}}
    assert ours(schema, None) is True
    with pytest.raises(UnmetError, match="too many steps"):
        ours({"items": {"pattern": "(a*)*" * 1000}}, ["b"] * 1000)
