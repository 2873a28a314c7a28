"""Several subschemas that must hold at once, merged into what a writer needs.

A `State` says which: the nodes that judge a value, the nodes that must not hold, and the choices
(`anyOf`, `oneOf`, `if`, …) already made. Merging is a plan, not a judgement: what cannot be merged
exactly is left to the check that follows the writing.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from mockllm.generation.schema.check import children_of
from mockllm.generation.schema.limits import MAX_ITEMS, MAX_TEXT_CHARS, UnmetError
from mockllm.generation.schema.node import (
    ANY_TYPE,
    ARRAY,
    FRACTION,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Node,
)

State = tuple[tuple[Node, ...], tuple[Node, ...], frozenset[tuple[int, str]]]
Alternative = tuple[tuple[Node, ...], tuple[Node, ...]]
Group = tuple[tuple[int, str], str, list[Alternative]]

_HINTS_OF_TYPE = (
    (OBJECT, {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
              "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}),
    (ARRAY, {"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"}),
    (NUMBER, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
)  # fmt: skip


def state_of(*nodes: Node) -> State:
    """The state of a value that these nodes judge."""
    return nodes, (), frozenset()


def chosen(state: State, group: Group, alternative: Alternative) -> State:
    """The state with one alternative of a group taken."""
    return merged(state[0], alternative[0]), merged(state[1], alternative[1]), state[2] | {group[0]}


def merged(first: tuple[Node, ...], second: tuple[Node, ...]) -> tuple[Node, ...]:
    """Both, each node once, in order."""
    return tuple(dict.fromkeys(first + second))


class Shape:
    """A state merged. Raises `UnmetError` at once where the parts contradict each other."""

    def __init__(self, state: State, judge: Callable[[State, Any], bool]) -> None:
        self.nodes: list[Node] = []
        self.forbidden: set[str] = set()
        self.excluded: set[Any] = set()
        self.types = ANY_TYPE
        self.groups: list[Group] = []
        self.values: list[Any] | None = None
        self.samples: list[Any] = []
        self.multiple: Fraction | None = None
        self.checked = bool(state[1])
        self.min_length = self.min_items = self.min_props = 0
        self.max_length, self.max_items, self.max_props = MAX_TEXT_CHARS, MAX_ITEMS, MAX_ITEMS
        self.low: int | float | None = None
        self.high: int | float | None = None
        self.low_open = self.high_open = self.unique = self.typed = False
        self.required: dict[str, None] = {}
        self.names: dict[str, State] = {}
        self.spans: dict[tuple[str, int, int, int], tuple[int, int, int, int]] = {}
        self.path = state[0][0].path if state[0] else "#"
        self._resolved = state[2]
        self._seen: set[int] = set()
        for node in state[0]:
            self._require(node)
        for node in state[1]:
            self._forbid(node)
        self._settle(state, judge)

    def _require(self, node: Node) -> None:
        """Absorb a node, and all that must hold with it."""
        pending = [node]
        while pending:
            node = pending.pop()
            if node.index not in self._seen:
                self._seen.add(node.index)
                self._absorb(node)
                pending += reversed([*node.refs, *node.all_of])

    def _absorb(self, node: Node) -> None:
        if node.impossible:
            raise UnmetError(node.path, "nothing is allowed here (the schema is false)")
        self.nodes.append(node)
        types = self.types & node.types
        if not types:
            raise UnmetError(node.path, "its type contradicts that of another schema that holds here")
        self.types = types
        self.typed = self.typed or node.types != ANY_TYPE
        self.checked = self.checked or node.complex
        if node.enum is not None and (self.values is None or len(node.enum) < len(self.values)):
            self.values = node.enum
        self.samples += node.examples
        self._bounds(node)
        self._choices(node)
        if node.not_ is not None:
            self._forbid(node.not_)

    def _bounds(self, node: Node) -> None:
        if node.low is not None and (self.low is None or node.low >= self.low):
            self.low_open = node.exclusive_low or (node.low == self.low and self.low_open)
            self.low = node.low
        if node.high is not None and (self.high is None or node.high <= self.high):
            self.high_open = node.exclusive_high or (node.high == self.high and self.high_open)
            self.high = node.high
        if node.multiple is not None:
            step = Fraction(str(node.multiple))
            old = self.multiple
            self.multiple = step if old is None else Fraction(
                lcm(step.numerator, old.numerator), gcd(step.denominator, old.denominator)
            )  # fmt: skip
        self.min_length = max(self.min_length, node.min_length)
        self.min_items = max(self.min_items, node.min_items)
        self.min_props = max(self.min_props, node.min_props)
        for field in ("max_length", "max_items", "max_props"):
            limit = getattr(node, field)
            if limit is not None:
                setattr(self, field, min(getattr(self, field), limit))
        self.unique = self.unique or node.unique
        self.required.update(dict.fromkeys(node.required))

    def _choices(self, node: Node) -> None:
        found: list[tuple[str, list[Alternative]]] = []
        if node.any_of:
            found.append(("anyOf", [((branch,), ()) for branch in node.any_of]))
        if node.one_of:
            # Negating the others only guides the writer, and costs the square of their number.
            few = len(node.one_of) <= 10
            found.append(
                ("oneOf", [((b,), tuple(o for o in node.one_of if o is not b) if few else ()) for b in node.one_of])
            )
        if node.if_else is not None:
            condition, then, otherwise = node.if_else
            met = (condition,) if then is None else (condition, then)
            found.append(("if", [(met, ()), (() if otherwise is None else (otherwise,), (condition,))]))
        for name, (having, child) in node.dependents.items():
            found.append((f"dependentSchemas/{name}", [((having, child), ()), ((), (having,))]))
        for keyword, alternatives in found:
            self._offer(node, keyword, alternatives)

    def _offer(self, node: Node, keyword: str, alternatives: list[Alternative]) -> None:
        if (node.index, keyword) not in self._resolved:
            self.groups.append(((node.index, keyword), f"{node.path}/{keyword}", alternatives))

    def _forbid(self, node: Node) -> None:
        """What follows from "this must not hold" in simple cases; the check sees to the others."""
        keywords = node.keywords - {"examples", "format", "contentEncoding"}
        if not node.keywords:
            raise UnmetError(node.path, "everything is forbidden here (`not` of a schema that always holds)")
        if keywords == {"type"}:
            self.types &= ~node.types
            if not self.types:
                raise UnmetError(node.path, "every type is forbidden here")
        elif keywords and keywords <= {"enum", "const", "type"} and node.enum is not None and node.types == ANY_TYPE:
            self.excluded |= node.enum_keys
        elif keywords <= {"type", "required"} and len(node.required) == 1 and node.types & OBJECT:
            self.forbidden |= set(node.required)
        elif keywords == {"not"} and node.not_ is not None:
            self._require(node.not_)
        elif keywords == {"allOf"}:
            self._offer(node, "not allOf", [((), (branch,)) for branch in node.all_of])
        elif keywords == {"if"} and node.if_else is not None:
            condition, *arms = node.if_else
            states = ((condition,), ()), ((), (condition,))
            self._offer(
                node,
                "not if",
                [(held, (*denied, arm)) for (held, denied), arm in zip(states, arms, strict=True) if arm is not None],
            )
        elif keywords == {"anyOf"}:
            for branch in node.any_of:
                self._forbid(branch)
        elif keywords == {"$ref"}:
            for target in node.refs:
                self._forbid(target)

    def _settle(self, state: State, judge: Callable[[State, Any], bool]) -> None:
        if self.multiple is not None and self.multiple.denominator == 1 and not self.types & FRACTION:
            self.types &= ~FRACTION
        if self.values is not None:
            kept = self.values
            if len(kept) <= 1000:
                kept = [value for value in kept if judge(state, value)]
            if not kept:
                raise UnmetError(self.path, "none of its enum or const values meets the other conditions")
            self.values = kept
        elif self.samples and not self.groups:
            self.samples = [value for value in self.samples[:20] if judge(state, value)]
        self.order = self._order()

    def _order(self) -> list[int]:
        """Types to try, the likeliest first."""
        keywords = {keyword for node in self.nodes for keyword in node.keywords}
        order = [STRING, INTEGER, FRACTION, OBJECT, ARRAY, 2, 1]
        if not self.typed:
            for kind, hints in _HINTS_OF_TYPE:
                if keywords & hints:
                    order = [one for one in order if one & kind] + [one for one in order if not one & kind]
        if self.types & FRACTION and not self.typed:
            order.remove(FRACTION)
        return [kind for kind in order if kind & self.types]

    def children(self, name: str) -> State | None:
        """What judges the property `name`; None where it is not allowed."""
        known = self.names.get(name)
        if known is not None:
            return known
        found: tuple[Node, ...] = ()
        for node in self.nodes:
            nodes = tuple(children_of(node, name))
            found = merged(found, nodes)
        if not found:
            found = tuple(node.uneval_props for node in self.nodes if node.uneval_props is not None)
        if any(node.impossible for node in found):
            return None
        state = state_of(*found)
        if any(name in node.props for node in self.nodes):  # names that were invented are not kept
            self.names[name] = state
        return state

    def item(self, index: int) -> tuple[Node, ...] | None:
        """What judges the item at `index`; None where there may be none."""
        found: tuple[Node, ...] = ()
        for node in self.nodes:
            if index < len(node.prefix):
                found = merged(found, (node.prefix[index],))
            elif node.items is not None:
                found = merged(found, (node.items,))
        if not found:
            found = tuple(node.uneval_items for node in self.nodes if node.uneval_items is not None)
        return None if any(node.impossible for node in found) else found
