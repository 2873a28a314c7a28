"""A schema as a graph of nodes: keywords checked and read once, references followed.

A node keeps each keyword in a field of its own, so that neither the writer nor the checker looks
at raw JSON again. `compile_nodes` walks without recursion, whatever the schema's depth.

Sources: JSON Schema 2020-12 core and validation; of draft 4 to 7 what models and libraries still
send: `definitions`, `dependencies`, tuple-form `items`, boolean `exclusiveMinimum`, `id`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any
from urllib.parse import unquote, urljoin

from mockllm.generation.pattern import Pattern, PatternError
from mockllm.generation.schema.limits import (
    MAX_ENUM_VALUES,
    MAX_MAGNITUDE,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    UnmetError,
)

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


_IGNORED_NAMES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


class Compiler:
    """Reads one schema document."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.nodes: list[Node] = []
        self._by_value: dict[int, Node] = {}
        self._pending: list[tuple[Node, Any, int, str]] = []
        self._refs: list[tuple[Node, str, str]] = []
        self._targets: dict[str, tuple[Any, str, str]] = {}
        self._literals = 0

    def run(self) -> Node:
        """The root's node; all nodes are in `nodes`.

        Raises:
            UnmetError: The schema is malformed.
        """
        root = self._child(self.document, "#", 0, "")
        self._targets.setdefault("", (self.document, "#", ""))
        self._drain()
        while self._refs:
            node, reference, base = self._refs.pop()
            node.refs.append(self._resolve(node, reference, base))
            self._drain()
        for node in self.nodes:
            _finish(node)
        return root

    def _drain(self) -> None:
        while self._pending:
            node, raw, depth, base = self._pending.pop()
            self._read(node, raw, depth, base)

    def _child(self, raw: Any, path: str, depth: int, base: str) -> Node:
        if not isinstance(raw, dict) and raw is not True and raw is not False:
            raise UnmetError(path, f"a schema must be an object or a boolean, not {_kind(raw)}")
        known = self._by_value.get(id(raw)) if isinstance(raw, dict) else None
        if known is not None:
            return known
        if depth > MAX_SCHEMA_DEPTH:
            raise UnmetError(path[:200], f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        if len(self.nodes) >= MAX_SCHEMA_NODES:
            raise UnmetError(path, f"the schema has more than {MAX_SCHEMA_NODES} subschemas")
        node = Node(len(self.nodes), path)
        self.nodes.append(node)
        if isinstance(raw, dict):
            self._by_value[id(raw)] = node
            self._pending.append((node, raw, depth, base))
        elif not raw:
            node.impossible = True
            node.keywords.add("false")
        return node

    def _resolve(self, node: Node, reference: str, base: str) -> Node:
        url = urljoin(base, reference) if base or not reference.startswith("#") else reference
        where, _, fragment = url.partition("#")
        for key in (url.rstrip("#"), f"{base.partition('#')[0]}#{fragment}"):
            if key in self._targets:
                raw, path, inner = self._targets[key]
                return self._child(raw, path, 0, inner)
        if where in self._targets and (not fragment or fragment.startswith("/")):
            for start in (self._targets[where], (self.document, "#", "")):
                found = _point(start[0], fragment)
                if found is not _MISSING:
                    return self._child(found, start[1] + fragment, 0, where)
        if where and where not in self._targets:
            raise UnmetError(node.path, f"the reference {reference[:200]!r} leads out of the schema")
        raise UnmetError(node.path, f"the reference {reference[:200]!r} leads nowhere")

    def _read(self, node: Node, raw: dict[str, Any], depth: int, base: str) -> None:
        path = node.path
        identifier = raw.get("$id", raw.get("id"))
        if isinstance(identifier, str) and ("$id" in raw or not identifier.isidentifier()):
            url = urljoin(base, identifier).rstrip("#")
            self._targets.setdefault(url, (raw, path, url))
            if "#" not in url:
                base = url
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(raw.get(keyword), str):
                self._targets.setdefault(f"{base}#{raw[keyword]}", (raw, path, base))
        for keyword, value in raw.items():
            reader = _READERS.get(keyword)
            if reader is not None:
                reader(node, value, keyword)
                node.keywords.add(keyword)
            elif keyword in _SUBSCHEMAS:
                self._subschemas(node, raw, keyword, depth + 1, base)
                if keyword not in ("$defs", "definitions"):
                    node.keywords.add(keyword)
            elif keyword in _IGNORED_NAMES:
                if not isinstance(value, str):
                    raise UnmetError(path, f'"{keyword}" must be a string')
                node.keywords.add(keyword)
                self._refs.append((node, value, base))
        self._literals += _literal_size(path, [*(node.enum or ()), *node.examples, raw.get("const")])
        if self._literals > MAX_ENUM_VALUES + len(self.nodes):
            raise UnmetError(path, f"the schema has more than {MAX_ENUM_VALUES} literal values")
        if "const" in raw:
            node.keywords.add("const")
            kept = [raw["const"]]
            if node.enum is not None and equality_key(raw["const"]) not in node.enum_keys:
                kept = []
            node.enum, node.enum_keys = kept, frozenset(equality_key(value) for value in kept)
        self._conditions(node, raw, depth + 1, base)

    def _subschemas(self, node: Node, raw: dict[str, Any], keyword: str, depth: int, base: str) -> None:
        value, path = raw[keyword], f"{node.path}/{keyword}"
        field, form = _SUBSCHEMAS[keyword]
        if form == "one or list" and isinstance(value, list):
            field, form = "prefix", "list"
        if form in ("one", "one or list"):
            if keyword == "additionalItems" and not isinstance(raw.get("items"), list):
                return
            setattr(node, field, self._child(value, path, depth, base))
        elif form == "list":
            if not isinstance(value, list) or (not value and keyword not in ("items", "prefixItems")):
                raise UnmetError(node.path, f'"{keyword}" must be a list of schemas')
            setattr(node, field, [self._child(v, f"{path}/{i}", depth, base) for i, v in enumerate(value)])
        else:
            if not isinstance(value, dict):
                raise UnmetError(node.path, f'"{keyword}" must be an object of schemas, not {_kind(value)}')
            children: dict[str, Node] = {}
            for name, child in value.items():
                if form == "dependents" and isinstance(child, list):
                    node.dependent_required[name] = _names(child, node, keyword)
                else:
                    children[name] = self._child(child, f"{path}/{_escape(name)}", depth, base)
            self._named(node, keyword, children)

    def _named(self, node: Node, keyword: str, children: dict[str, Node]) -> None:
        if keyword == "properties":
            node.props = children
        elif keyword == "patternProperties":
            node.patterns = [(_pattern(node, source, keyword), child) for source, child in children.items()]
        elif keyword in ("dependentSchemas", "dependencies"):
            for name, child in children.items():
                having = self._child(True, child.path, 0, "")
                having.types, having.required = OBJECT, [name]
                having.keywords |= {"type", "required"}
                node.dependents[name] = (having, child)

    def _conditions(self, node: Node, raw: dict[str, Any], depth: int, base: str) -> None:
        if "if" not in raw:
            return
        node.keywords.add("if")
        arms = [
            self._child(raw[word], f"{node.path}/{word}", depth, base) if word in raw else None
            for word in ("then", "else")
        ]
        node.if_else = (self._child(raw["if"], f"{node.path}/if", depth, base), arms[0], arms[1])


_MISSING = object()

_SUBSCHEMAS = {
    "properties": ("props", "names"), "patternProperties": ("patterns", "names"), "$defs": ("", "names"),
    "definitions": ("", "names"), "dependentSchemas": ("", "names"), "dependencies": ("", "dependents"),
    "additionalProperties": ("additional", "one"), "propertyNames": ("names", "one"),
    "unevaluatedProperties": ("uneval_props", "one"), "unevaluatedItems": ("uneval_items", "one"),
    "items": ("items", "one or list"), "additionalItems": ("items", "one"), "prefixItems": ("prefix", "list"),
    "contains": ("contains", "one"), "not": ("not_", "one"),
    "allOf": ("all_of", "list"), "anyOf": ("any_of", "list"), "oneOf": ("one_of", "list"),
}  # fmt: skip


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _point(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901, percent-encoded) leads to, or `_MISSING`."""
    for part in unquote(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return _MISSING
    return value


def _literal_size(path: str, level: list[Any]) -> int:
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


def _names(value: Any, node: Node, keyword: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UnmetError(node.path, f'"{keyword}" must be a list of property names')
    return list(dict.fromkeys(value))


def _pattern(node: Node, source: Any, keyword: str) -> Pattern:
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
    _literal_size(node.path, value)
    node.enum_keys = frozenset(map(equality_key, value))


def _read_examples(node: Node, value: Any, keyword: str) -> None:
    if keyword == "examples" and isinstance(value, list):
        node.examples = value[:20]


def _number(node: Node, value: Any, keyword: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnmetError(node.path, f'"{keyword}" must be a number, not {_kind(value)}')
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
        raise UnmetError(node.path, f'"{keyword}" must be a boolean, not {_kind(value)}')
    node.unique = value


def _read_required(node: Node, value: Any, keyword: str) -> None:
    node.required = _names(value, node, keyword)


def _read_dependent(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, dict):
        raise UnmetError(node.path, f'"{keyword}" must be an object')
    for name, names in value.items():
        node.dependent_required[name] = _names(names, node, keyword)


def _read_pattern(node: Node, value: Any, keyword: str) -> None:
    node.pattern = _pattern(node, value, keyword)


def _read_text(node: Node, value: Any, keyword: str) -> None:
    if not isinstance(value, str):
        raise UnmetError(node.path, f'"{keyword}" must be a string')
    setattr(node, "format" if keyword == "format" else "encoding", value)


_READERS: dict[str, Callable[[Node, Any, str], None]] = {
    "type": _read_type, "enum": _read_enum, "examples": _read_examples, "minimum": _read_bound,
    "maximum": _read_bound, "exclusiveMinimum": _read_bound, "exclusiveMaximum": _read_bound,
    "multipleOf": _read_multiple, "minLength": _count_reader("min_length"), "maxLength": _count_reader("max_length"),
    "pattern": _read_pattern, "format": _read_text, "contentEncoding": _read_text,
    "minItems": _count_reader("min_items"), "maxItems": _count_reader("max_items"), "uniqueItems": _read_flag,
    "minContains": _count_reader("min_contains"), "maxContains": _count_reader("max_contains"),
    "required": _read_required, "minProperties": _count_reader("min_props"),
    "maxProperties": _count_reader("max_props"), "dependentRequired": _read_dependent,
}  # fmt: skip


def _finish(node: Node) -> None:
    """What follows from a node's own fields: which nodes judge the same value, whether it needs a check."""
    node.in_place = [*node.refs, *node.all_of, *node.any_of, *node.one_of]
    if node.not_ is not None:
        node.in_place.append(node.not_)
    if node.if_else is not None:
        node.in_place += [arm for arm in node.if_else if arm is not None]
    for having, child in node.dependents.values():
        node.in_place += [having, child]
    node.complex = bool(
        node.one_of or node.not_ or node.if_else or node.dependents or node.uneval_props or node.uneval_items
        or (node.contains and node.max_contains is not None)
    )  # fmt: skip
