"""The keywords of a single subschema: each is checked and read into its node's field.

Sources: JSON Schema validation 2020-12 §6; draft 4 §5.1.2 for the boolean `exclusiveMinimum`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from mockllm.generation.pattern import Pattern, PatternError
from mockllm.generation.schema.limits import MAX_ENUM_VALUES, MAX_MAGNITUDE, MAX_SCHEMA_DEPTH, UnmetError
from mockllm.generation.schema.node import TYPES, Node, equality_key


def kind_of(value: Any) -> str:
    """What a value is, for a message."""
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )


def literal_size(path: str, level: list[Any]) -> int:
    """How many values the literals hold; refuses deep ones."""
    count = 0
    depth = 0
    while level:
        count += len(level)
        depth += 1
        if depth > MAX_SCHEMA_DEPTH or count > MAX_ENUM_VALUES:
            raise UnmetError(path, "a literal value is nested too deep, or there are too many")
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return count


def name_list(value: Any, node: Node, keyword: str) -> list[str]:
    """A list of property names, each once."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UnmetError(node.path, f'"{keyword}" must be a list of property names')
    return list(dict.fromkeys(value))


def pattern_of(node: Node, source: Any, keyword: str) -> Pattern:
    """The pattern of `pattern`, or of one of `patternProperties`."""
    if not isinstance(source, str):
        raise UnmetError(node.path, f'"{keyword}" must be a string')
    try:
        return Pattern(source)
    except PatternError as error:
        raise UnmetError(node.path, f'"{keyword}": {error}') from None


def _read_type(node: Node, value: Any, keyword: str) -> None:
    names = value if isinstance(value, list) else [value]
    mask = 0
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise UnmetError(node.path, f'"type" is {str(name)[:80]!r}, which is none of {", ".join(TYPES)}')
        mask |= TYPES[name]
    if not mask:
        raise UnmetError(node.path, '"type" names no type')
    node.types = mask


def _read_enum(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, list):
        raise UnmetError(node.path, '"enum" must be a list')
    if len(value) > MAX_ENUM_VALUES:
        raise UnmetError(node.path, f'"enum" has more than {MAX_ENUM_VALUES} values')
    node.enum = value
    literal_size(node.path, value)
    node.enum_keys = frozenset(map(equality_key, value))


def _read_examples(node: Node, value: Any, keyword: str) -> None:
    if keyword == "examples" and isinstance(value, list):
        node.examples = value[:20]


def _number(node: Node, value: Any, keyword: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnmetError(node.path, f'"{keyword}" must be a number, not {kind_of(value)}')
    if not isfinite(value) if isinstance(value, float) else abs(value) > MAX_MAGNITUDE:
        raise UnmetError(node.path, f'"{keyword}" is beyond the range of a double')
    return value


def _read_bound(node: Node, value: Any, keyword: str) -> None:
    low = "inimum" in keyword
    if keyword.startswith("exclusive") and isinstance(value, bool):  # draft 4
        if value:
            setattr(node, "exclusive_low" if low else "exclusive_high", True)
        return
    bound = _number(node, value, keyword)
    known = node.low if low else node.high
    exclusive = keyword.startswith("exclusive")
    if known is None or bound == known or (bound > known if low else bound < known):
        setattr(node, "low" if low else "high", bound)
        if exclusive:
            setattr(node, "exclusive_low" if low else "exclusive_high", True)
        elif known is not None and bound != known:
            setattr(node, "exclusive_low" if low else "exclusive_high", False)


def _read_multiple(node: Node, value: Any, keyword: str) -> None:
    node.multiple = _number(node, value, keyword)
    if node.multiple <= 0:
        raise UnmetError(node.path, '"multipleOf" must be above 0')


def _count_reader(field: str) -> Callable[[Node, Any, str], None]:
    def read(node: Node, value: Any, keyword: str) -> None:
        number = _number(node, value, keyword)
        if number < 0 or number != int(number):
            raise UnmetError(node.path, f'"{keyword}" must be a whole number ≥ 0')
        setattr(node, field, int(number))

    return read


def _read_flag(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, bool):
        raise UnmetError(node.path, f'"{keyword}" must be a boolean, not {kind_of(value)}')
    node.unique = value


def _read_required(node: Node, value: Any, keyword: str) -> None:
    node.required = name_list(value, node, keyword)


def _read_dependent(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, dict):
        raise UnmetError(node.path, f'"{keyword}" must be an object')
    for name, names in value.items():
        node.dependent_required[name] = name_list(names, node, keyword)


def _read_pattern(node: Node, value: Any, keyword: str) -> None:
    node.pattern = pattern_of(node, value, keyword)


def _read_text(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, str):
        raise UnmetError(node.path, f'"{keyword}" must be a string')
    setattr(node, "format" if keyword == "format" else "encoding", value)


READERS: dict[str, Callable[[Node, Any, str], None]] = {
    "type": _read_type, "enum": _read_enum, "examples": _read_examples, "minimum": _read_bound,
    "maximum": _read_bound, "exclusiveMinimum": _read_bound, "exclusiveMaximum": _read_bound,
    "multipleOf": _read_multiple, "minLength": _count_reader("min_length"), "maxLength": _count_reader("max_length"),
    "pattern": _read_pattern, "format": _read_text, "contentEncoding": _read_text,
    "minItems": _count_reader("min_items"), "maxItems": _count_reader("max_items"), "uniqueItems": _read_flag,
    "minContains": _count_reader("min_contains"), "maxContains": _count_reader("max_contains"),
    "required": _read_required, "minProperties": _count_reader("min_props"),
    "maxProperties": _count_reader("max_props"), "dependentRequired": _read_dependent,
}  # fmt: skip
