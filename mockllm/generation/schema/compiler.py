"""A schema document as a graph of nodes: subschemas found, references followed.

The walk is without recursion, whatever the schema's depth, and follows references within the
document only: JSON pointers, anchors and `$id`s.

Sources: JSON Schema core 2020-12 §8 and §10; of draft 4 to 7 what models and libraries still send:
`definitions`, `dependencies`, tuple-form `items`, `id`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urljoin

from mockllm.generation.schema.keywords import READERS, kind_of, literal_size, name_list, pattern_of
from mockllm.generation.schema.limits import (
    MAX_ENUM_VALUES,
    MAX_PATH_CHARS,
    MAX_PATTERNS_CHARS,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    UnmetError,
)
from mockllm.generation.schema.node import OBJECT, Node, equality_key

_IGNORED_NAMES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})

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
        self._patterns_chars = 0

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
        if len(path) > MAX_PATH_CHARS:
            path = path[:MAX_PATH_CHARS] + "…"
        if not isinstance(raw, dict) and raw is not True and raw is not False:
            raise UnmetError(path, f"a schema must be an object or a boolean, not {kind_of(raw)}")
        known = self._by_value.get(id(raw)) if isinstance(raw, dict) else None
        if known is not None:
            return known
        if depth > MAX_SCHEMA_DEPTH:
            raise UnmetError(path, f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
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
        url = _join(node, base, reference)
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
            url = _join(node, base, identifier).rstrip("#")
            self._targets.setdefault(url, (raw, path, url))
            if "#" not in url:
                base = url
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(raw.get(keyword), str):
                self._targets.setdefault(f"{base}#{raw[keyword]}", (raw, path, base))
        for keyword, value in raw.items():
            reader = READERS.get(keyword)
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
        for each in (node.pattern, *[found for found, _ in node.patterns]):
            self._patterns_chars += len(each.source) if each is not None else 0
        if self._patterns_chars > MAX_PATTERNS_CHARS:
            raise UnmetError(path, f"its patterns are longer than {MAX_PATTERNS_CHARS} characters together")
        self._literals += literal_size(path, [*(node.enum or ()), *node.examples, raw.get("const")])
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
                raise UnmetError(node.path, f'"{keyword}" must be an object of schemas, not {kind_of(value)}')
            children: dict[str, Node] = {}
            for name, child in value.items():
                if form == "dependents" and isinstance(child, list):
                    node.dependent_required[name] = name_list(child, node, keyword)
                else:
                    children[name] = self._child(child, f"{path}/{_escape(name)}", depth, base)
            self._named(node, keyword, children)

    def _named(self, node: Node, keyword: str, children: dict[str, Node]) -> None:
        if keyword == "properties":
            node.props = children
        elif keyword == "patternProperties":
            node.patterns = [(pattern_of(node, source, keyword), child) for source, child in children.items()]
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


def _join(node: Node, base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:  # `http://[`
        raise UnmetError(node.path, f"{reference[:200]!r} is no URI reference") from None


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
        or node.contains
    )  # fmt: skip
