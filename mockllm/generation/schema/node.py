"""A subschema as a node of a graph: each keyword in a field of its own.

Neither the writer nor the checker looks at raw JSON again.
"""

from __future__ import annotations

from typing import Any

from mockllm.generation.pattern import Pattern

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
NUMBER = INTEGER | FRACTION
ANY_TYPE = 127
TYPES = {
    "null": NULL, "boolean": BOOLEAN, "integer": INTEGER, "number": NUMBER,
    "string": STRING, "array": ARRAY, "object": OBJECT,
}  # fmt: skip

INFINITE = 1 << 30


class Node:
    """One subschema. Fields are named after their keywords; None or empty means absent."""

    __slots__ = (
        "additional", "all_of", "any_of", "complex", "contains", "dependent_required", "dependents", "encoding",
        "enum", "enum_keys", "examples", "exclusive_high", "exclusive_low", "format", "height", "high", "if_else",
        "impossible",
        "in_place", "index", "items", "keywords", "low", "max_contains", "max_items", "max_length", "max_props",
        "min_contains", "min_items", "min_length", "min_props", "multiple", "names", "not_", "one_of", "path",
        "pattern", "patterns", "prefix", "props", "refs", "required", "types", "uneval_items", "uneval_props",
        "unique",
    )  # fmt: skip

    def __init__(self, index: int, path: str) -> None:
        self.index = index
        self.path = path
        self.keywords: set[str] = set()
        self.impossible = False
        self.complex = False
        self.in_place: list[Node] = []
        self.height = INFINITE
        self.types = ANY_TYPE
        self.enum: list[Any] | None = None
        self.enum_keys: frozenset[Any] = frozenset()
        self.examples: list[Any] = []
        self.low: int | float | None = None
        self.high: int | float | None = None
        self.exclusive_low = self.exclusive_high = False
        self.multiple: int | float | None = None
        self.min_length = 0
        self.max_length: int | None = None
        self.pattern: Pattern | None = None
        self.format = self.encoding = ""
        self.prefix: list[Node] = []
        self.items: Node | None = None
        self.contains: Node | None = None
        self.min_contains = 1
        self.max_contains: int | None = None
        self.min_items = 0
        self.max_items: int | None = None
        self.unique = False
        self.props: dict[str, Node] = {}
        self.patterns: list[tuple[Pattern, Node]] = []
        self.additional: Node | None = None
        self.names: Node | None = None
        self.required: list[str] = []
        self.min_props = 0
        self.max_props: int | None = None
        self.dependent_required: dict[str, list[str]] = {}
        self.dependents: dict[str, tuple[Node, Node]] = {}
        self.refs: list[Node] = []
        self.all_of: list[Node] = []
        self.any_of: list[Node] = []
        self.one_of: list[Node] = []
        self.not_: Node | None = None
        self.if_else: tuple[Node, Node | None, Node | None] | None = None
        self.uneval_props: Node | None = None
        self.uneval_items: Node | None = None


def equality_key(value: Any) -> Any:
    """A hashable stand-in: equal exactly where JSON values are (1 and 1.0 are, 1 and true are not)."""
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is bool:
        return (bool, value)
    if kind is list:
        return (list, *[equality_key(item) for item in value])
    if kind is dict:
        return frozenset([(name, equality_key(item)) for name, item in value.items()])
    return (int, value)
