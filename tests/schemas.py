"""Random JSON schemas: a Hypothesis strategy, shared by the suites."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = ["id", "name", "city", "tags", "n", "x-1"]
PATTERNS = [
    r"^[a-z]+$",
    r"\d{2,4}",
    r"^(on|off|auto)$",
    r"^[A-Z][\w-]*$",
    r"^.{3,}$",
    r"[^a-c]",
    r"^(?=.*\d)[a-z\d]+$",
    r"x|^$",
]
FORMATS = ["date", "date-time", "time", "email", "uuid", "ipv4", "ipv6", "uri", "duration", "hostname", "json-pointer"]

scalars: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 20) | st.sampled_from(["a", "on", "x9", "2020-01-01", 1.5, 2.0])
)
values = st.recursive(
    scalars,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(NAMES), part, max_size=3),
    max_leaves=4,
)


def options(**kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any few of the keywords."""
    return st.fixed_dictionaries({}, optional=kinds)


def _with(base: dict[str, Any], **kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return options(**kinds).map(lambda found: {**base, **found})


numbers = st.integers(-30, 60) | st.sampled_from([0.5, -1.25, 12.75])
STRINGS = _with(
    {"type": "string"},
    minLength=st.integers(0, 12),
    maxLength=st.integers(0, 30),
    pattern=st.sampled_from(PATTERNS),
    format=st.sampled_from(FORMATS),
)
NUMBERS = st.sampled_from(["integer", "number"]).flatmap(
    lambda kind: _with(
        {"type": kind},
        minimum=numbers,
        maximum=numbers,
        exclusiveMinimum=numbers,
        exclusiveMaximum=numbers,
        multipleOf=st.sampled_from([1, 2, 3, 7, 0.5, 0.1, 0.01, 2.5]),
    )
)
LITERALS = st.lists(values, min_size=1, max_size=5).map(lambda found: {"enum": found}) | values.map(
    lambda v: {"const": v}
)


def _arrays(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    small = st.integers(0, 4)
    return _with(
        {"type": "array"},
        items=part,
        prefixItems=st.lists(part, min_size=1, max_size=3),
        minItems=small,
        maxItems=small,
        uniqueItems=st.booleans(),
        contains=part,
        minContains=st.integers(0, 2),
        maxContains=small,
        unevaluatedItems=part,
    )


def _objects(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names, small = st.sampled_from(NAMES), st.integers(0, 4)
    some = st.lists(names, max_size=3, unique=True)
    return _with(
        {"type": "object"},
        properties=st.dictionaries(names, part, max_size=4),
        required=some,
        additionalProperties=part,
        patternProperties=st.dictionaries(st.sampled_from(PATTERNS), part, max_size=2),
        propertyNames=STRINGS,
        minProperties=small,
        maxProperties=small,
        dependentRequired=st.dictionaries(names, some, max_size=2),
        dependentSchemas=st.dictionaries(names, part, max_size=1),
        unevaluatedProperties=part,
    )


def _combined(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(part, min_size=1, max_size=3)
    rules = options(allOf=several, anyOf=several, oneOf=several)
    arms = st.fixed_dictionaries({"if": part}, optional={"then": part, "else": part})
    negated = part.map(lambda one: {"not": one})
    merged = st.tuples(rules, part).map(lambda two: {**(two[1] if isinstance(two[1], dict) else {}), **two[0]})
    return rules | merged | arms | negated | st.just({"$ref": "#/$defs/leaf"})


LEAVES = (
    STRINGS
    | NUMBERS
    | LITERALS
    | st.booleans()
    | st.lists(
        st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(lambda kinds: {"type": kinds})
)


def _rooted(schema: Any) -> Any:
    return {**schema, "$defs": {"leaf": {"type": ["string", "integer"]}}} if isinstance(schema, dict) else schema


SCHEMAS = st.recursive(LEAVES, lambda part: _arrays(part) | _objects(part) | _combined(part), max_leaves=8).map(_rooted)
"""Schemas of all keywords, many of which cannot be met."""

USUAL = st.recursive(
    STRINGS.filter(lambda s: len(s) < 4) | LITERALS | st.just({"type": "integer"}),
    lambda part: _objects(part) | _arrays(part),
    max_leaves=8,
).map(_rooted)
"""Schemas without combinations."""

# Formats that the library judges without further packages, and which it judges as we do.
JUDGED = {"date", "email", "uuid", "ipv4", "ipv6"}


def formats(schema: Any) -> set[str]:
    """The formats named anywhere in the schema."""
    if isinstance(schema, list):
        return set().union(*map(formats, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    named = {schema["format"]} if isinstance(schema.get("format"), str) else set()
    return named.union(*map(formats, schema.values())) if schema else named


def agreed(schema: Any) -> bool:
    """Whether the library judges all formats whose absence may matter: under `not`, say."""
    text = json.dumps(schema)
    plain = not any(f'"{word}":' in text for word in ("not", "oneOf", "if", "maxContains", "dependentSchemas"))
    return plain or formats(schema) <= JUDGED
