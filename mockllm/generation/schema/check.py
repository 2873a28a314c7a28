"""Does a value meet a schema? The judge of all that is written.

It knows every keyword that the writer knows, follows JSON Schema 2020-12 (with the older forms
that `node` reads), and treats known formats as assertions. Work is counted; the same subschema
judges the same part of the value once.
"""

from __future__ import annotations

from typing import Any

from mockllm.generation.pattern import PatternError
from mockllm.generation.schema.formats import conforms
from mockllm.generation.schema.limits import MAX_CHECK_DEPTH, ExhaustedError, Work, pattern_cost
from mockllm.generation.schema.node import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    Node,
    equality_key,
)


def type_of(value: Any) -> int:
    """The type's bit; a float without fraction is an integer (2020-12 §6.1.1)."""
    kind = type(value)
    if kind is str:
        return STRING
    if kind is int or (kind is float and value.is_integer()):
        return INTEGER
    if kind is dict:
        return OBJECT
    if kind is list:
        return ARRAY
    if kind is bool:
        return BOOLEAN
    return FRACTION if kind is float else NULL


def is_multiple(value: int | float, step: int | float) -> bool:
    """`multipleOf` as validators decide it: by the remainder, or by a whole quotient for floats."""
    try:
        return (value / step).is_integer() if isinstance(step, float) else not value % step
    except OverflowError:
        return False


class Checker:
    """Judges one value, or several parts of it, against nodes.

    Args:
        work: Counts the steps.
    """

    __slots__ = ("_depth", "_known", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work
        self._depth = 0
        self._known: dict[tuple[int, int], bool] = {}

    def valid(self, node: Node, value: Any) -> bool:
        """Whether `value` meets `node`. The value must outlive the checker unchanged."""
        if not node.keywords:
            return True
        self._work.check(node.path)
        if not node.in_place:
            return self._plain(node, value)
        key = (node.index, id(value))
        known = self._known.get(key)
        if known is None:
            if self._depth > MAX_CHECK_DEPTH:
                raise ExhaustedError(node.path, f"values are nested deeper than {MAX_CHECK_DEPTH} steps")
            self._depth += 1
            known = self._known[key] = self._plain(node, value) and self._in_place(node, value)
            self._depth -= 1
        return known

    def _plain(self, node: Node, value: Any) -> bool:
        kind = type_of(value)
        if not kind & node.types or node.impossible:
            return False
        if node.enum is not None and equality_key(value) not in node.enum_keys:
            return False
        if kind == STRING:
            return self._string(node, value)
        if kind == OBJECT:
            return self._object(node, value)
        if kind == ARRAY:
            return self._array(node, value)
        return not kind & (INTEGER | FRACTION) or _number(node, value)

    def _string(self, node: Node, value: str) -> bool:
        if node.min_length > len(value) or (node.max_length is not None and len(value) > node.max_length):
            return False
        if node.format and not conforms(node.format, value):
            return False
        if node.pattern is None:
            return True
        self._work.check(node.path, pattern_cost(node.pattern.source, len(value)))
        try:
            return node.pattern.search(value)
        except PatternError as error:
            raise ExhaustedError(node.path, f'"pattern": {error}') from None

    def _array(self, node: Node, value: list[Any]) -> bool:
        size = len(value)
        if size < node.min_items or (node.max_items is not None and size > node.max_items):
            return False
        if node.unique and len({equality_key(item) for item in value}) < size:
            return False
        if not all(self.valid(child, item) for child, item in zip(node.prefix, value, strict=False)):
            return False
        if node.items is not None:
            items = node.items
            if not all(self.valid(items, item) for item in value[len(node.prefix) :]):
                return False
        if node.contains is not None:
            contains = node.contains
            count = sum(self.valid(contains, item) for item in value)
            if count < node.min_contains or (node.max_contains is not None and count > node.max_contains):
                return False
        return node.uneval_items is None or self._unevaluated_items(node, value)

    def _object(self, node: Node, value: dict[str, Any]) -> bool:
        size = len(value)
        if size < node.min_props or (node.max_props is not None and size > node.max_props):
            return False
        for name in node.required:
            if name not in value:
                return False
        for name, needed in node.dependent_required.items():
            if name in value and not all(other in value for other in needed):
                return False
        if node.names is not None:
            names = node.names
            if not all(self.valid(names, name) for name in value):
                return False
        if node.patterns:
            self._work.check(node.path, size * names_cost(node))
        for name, item in value.items():
            for child in children_of(node, name):
                if not self.valid(child, item):
                    return False
        return node.uneval_props is None or self._unevaluated_props(node, value)

    def _in_place(self, node: Node, value: Any) -> bool:
        valid = self.valid
        for child in node.refs:
            if not valid(child, value):
                return False
        for child in node.all_of:
            if not valid(child, value):
                return False
        if node.any_of and not any(valid(child, value) for child in node.any_of):
            return False
        if node.one_of and sum(valid(child, value) for child in node.one_of) != 1:
            return False
        if node.not_ is not None and valid(node.not_, value):
            return False
        if node.if_else is not None:
            condition, then, otherwise = node.if_else
            arm = then if valid(condition, value) else otherwise
            if arm is not None and not valid(arm, value):
                return False
        return all(valid(child, value) for having, child in node.dependents.values() if valid(having, value))

    def _applied(self, node: Node, value: Any) -> list[Node]:
        """The node and all others in place that the value meets: their annotations count."""
        found: list[Node] = []
        pending = [node]
        seen = set()
        while pending:
            current = pending.pop()
            if current.index in seen or (current is not node and not self.valid(current, value)):
                continue
            seen.add(current.index)
            found.append(current)
            pending += [*current.refs, *current.all_of, *current.any_of, *current.one_of]
            if current.if_else is not None:
                condition, then, otherwise = current.if_else
                met = self.valid(condition, value)
                pending += [arm for arm in ((condition, then) if met else (otherwise,)) if arm is not None]
            pending += [child for having, child in current.dependents.values() if self.valid(having, value)]
        return found

    def _unevaluated_props(self, node: Node, value: dict[str, Any]) -> bool:
        rule = node.uneval_props
        applied = self._applied(node, value)
        for name, item in value.items():
            covered = any(
                children_of(other, name) or (other is not node and other.uneval_props is not None) for other in applied
            )
            if not covered and rule is not None and not self.valid(rule, item):
                return False
        return True

    def _unevaluated_items(self, node: Node, value: list[Any]) -> bool:
        rule = node.uneval_items
        applied = self._applied(node, value)
        if any(other.items is not None or (other is not node and other.uneval_items) for other in applied):
            return True
        start = max(len(other.prefix) for other in applied)
        holders = [other.contains for other in applied if other.contains is not None]
        for item in value[start:]:
            covered = any(self.valid(holder, item) for holder in holders)
            if not covered and rule is not None and not self.valid(rule, item):
                return False
        return True


def names_cost(node: Node) -> int:
    """What finding the subschemas for one name counts for."""
    return sum(pattern_cost(pattern.source, 20) for pattern, _ in node.patterns)


def children_of(node: Node, name: str) -> list[Node]:
    """The subschemas of one node that judge the property `name`."""
    child = node.props.get(name)
    if not node.patterns:
        if child is not None:
            return [child]
        return [] if node.additional is None else [node.additional]
    found = [] if child is None else [child]
    for pattern, other in node.patterns:
        try:
            if pattern.search(name):
                found.append(other)
        except PatternError as error:
            raise ExhaustedError(node.path, f'"patternProperties": {error}') from None
    if not found and node.additional is not None:
        found.append(node.additional)
    return found


def _number(node: Node, value: int | float) -> bool:
    if node.low is not None and (value < node.low or (node.exclusive_low and value == node.low)):
        return False
    if node.high is not None and (value > node.high or (node.exclusive_high and value == node.high)):
        return False
    return node.multiple is None or is_multiple(value, node.multiple)
