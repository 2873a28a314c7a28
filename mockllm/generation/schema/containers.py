"""Arrays and objects for a merged schema."""

from __future__ import annotations

from typing import Any, Protocol

from mockllm.generation.keyed import Draws
from mockllm.generation.pattern import PatternError
from mockllm.generation.schema.check import names_cost
from mockllm.generation.schema.hints import TEXTS
from mockllm.generation.schema.limits import MAX_ITEMS, ExhaustedError, UnmetError, Work, pattern_cost
from mockllm.generation.schema.node import INFINITE, Node, equality_key
from mockllm.generation.schema.scalars import varied
from mockllm.generation.schema.shape import Shape, State, state_of

NAME_TRIES = 40
"""Draws for the name of a property that the schema leaves open."""


class Writer(Protocol):
    """What a container needs of the writer of its parts; `write.Writer` is the one there is."""

    draws: Draws
    work: Work
    strict: bool
    optional: bool | None

    @property
    def hurried(self) -> bool: ...

    def judge(self, state: State, value: Any) -> bool: ...

    def value(self, state: State, name: str = "", taboo: set[Any] | None = None) -> Any: ...


def write_array(writer: Writer, shape: Shape, name: str) -> list[Any]:
    """An array: few items, those of `contains` first behind the tuple."""
    low, high = shape.min_items, shape.max_items
    if low > high:
        limit = "the longest array that is made" if high == MAX_ITEMS else '"maxItems"'
        raise UnmetError(shape.path, f'"minItems" {low} is above {limit}, {high}')
    holders: list[Node] = []
    for node in shape.nodes:
        if node.contains is not None:
            holders += [node.contains] * min(node.min_contains, MAX_ITEMS + 1)
    tuple_size = max([len(node.prefix) for node in shape.nodes], default=0)
    if not holders:
        return _items(writer, shape, name, _array_size(writer, shape, tuple_size), [], 0)
    held = len(holders)
    if held > high:
        raise UnmetError(shape.path, f'"contains" needs {held} items, {high} are allowed')
    refusal: tuple[str, str] | None = None
    # Items that `contains` wants stand behind a tuple, or as late as may be, or in front.
    for start in dict.fromkeys((min(tuple_size, high - held), max(low - held, 0), 0)):
        try:
            return _items(writer, shape, name, max(start + held, low), holders, start)
        except ExhaustedError:
            raise
        except UnmetError as error:
            refusal = refusal or (error.path, error.reason)
    raise UnmetError(*(refusal or (shape.path, "no items were found")))


def _items(writer: Writer, shape: Shape, name: str, size: int, holders: list[Node], start: int) -> list[Any]:
    """`size` items, fewer where the schema allows no more; those from `start` on meet the holders."""
    low = shape.min_items
    items: list[Any] = []
    taboo: set[Any] | None = set() if shape.unique else None
    for index in range(size):
        nodes = shape.item(index)
        extra = (holders[index - start],) if 0 <= index - start < len(holders) else ()
        needed = index < low or index < start + len(holders)
        if nodes is None and not extra:
            if not needed:
                break
            raise UnmetError(shape.path, f"it needs more than the {index} items that it allows")
        try:
            item = writer.value(state_of(*(nodes or ()), *extra), name, taboo)
        except ExhaustedError:
            raise
        except UnmetError:
            if not needed:
                break
            raise
        items.append(item)
        if taboo is not None:
            taboo.add(equality_key(item))
    return items


def _array_size(writer: Writer, shape: Shape, tuple_size: int) -> int:
    least = shape.min_items
    following = shape.item(max(least, tuple_size))
    endless = following is not None and any(node.height >= INFINITE for node in following)
    if writer.hurried or writer.optional is False or endless:
        return least
    if tuple_size:
        return min(max(least, tuple_size), shape.max_items)
    if not any(node.items is not None for node in shape.nodes):
        return least  # nothing is said about the items: an empty array will do
    return min(least + writer.draws.below(3) + (least == 0), shape.max_items)


def write_object(writer: Writer, shape: Shape) -> dict[str, Any]:
    """An object: properties in the schema's order, then others where they are needed."""
    if shape.min_props > shape.max_props:
        limit = "the largest object that is made" if shape.max_props == MAX_ITEMS else '"maxProperties"'
        raise UnmetError(shape.path, f'"minProperties" {shape.min_props} is above {limit}, {shape.max_props}')
    required = _closed(shape, shape.required)
    if len(required) > shape.max_props:
        raise UnmetError(shape.path, f"it requires {len(required)} properties, {shape.max_props} are allowed")
    declared = dict.fromkeys([name for node in shape.nodes for name in node.props])
    written: dict[str, Any] = {}
    room = shape.max_props - len(required)
    for name in [*declared, *[name for name in required if name not in declared]]:
        if name in required:
            written[name] = writer.value(_allowed(writer, shape, name, declared), name)
        elif name not in written and room > 0 and _wanted(writer):
            room -= _optional(writer, shape, name, written, required, room)
    _fill(writer, shape, written, declared, required)
    return written


def _closed(shape: Shape, names: Any) -> dict[str, None]:
    """The names and all that depend on them being there."""
    found: dict[str, None] = dict.fromkeys(names)
    pending = list(found)
    rules = [node.dependent_required for node in shape.nodes if node.dependent_required]
    while pending and rules:
        name = pending.pop()
        for rule in rules:
            for other in rule.get(name, ()):
                if other not in found:
                    found[other] = None
                    pending.append(other)
    return found


def _wanted(writer: Writer) -> bool:
    if writer.optional is not None:
        return writer.optional
    return not writer.hurried and writer.draws.below(2) == 1


def _allowed(writer: Writer, shape: Shape, name: str, declared: dict[str, None]) -> State:
    state = shape.children(name)
    if state is None or name in shape.forbidden:
        raise UnmetError(shape.path, f"the property {name[:80]!r} is required, but not allowed")
    if writer.strict and name not in declared:
        raise UnmetError(
            shape.path, f"strict mode: the property {name[:80]!r} is required, but not among the properties"
        )
    if not _named(writer, shape, name):
        raise UnmetError(shape.path, f'the property {name[:80]!r} is required, but "propertyNames" forbids it')
    return state


def _named(writer: Writer, shape: Shape, name: str) -> bool:
    rules = tuple(node.names for node in shape.nodes if node.names is not None)
    return not rules or writer.judge(state_of(*rules), name)


def _optional(
    writer: Writer, shape: Shape, name: str, written: dict[str, Any], required: dict[str, None], room: int
) -> int:
    """Add a property that may be missing, and what depends on it; returns how many were added."""
    added: dict[str, Any] = {}
    names = [other for other in _closed(shape, [name]) if other not in required and other not in written]
    if len(names) > room or any(other in shape.forbidden for other in names):
        return 0
    for other in names:
        writer.work.check(shape.path, sum(names_cost(node) for node in shape.nodes if node.patterns))
        state = shape.children(other)
        if state is None or any(node.height >= INFINITE for node in state[0]) or not _named(writer, shape, other):
            return 0
        if writer.strict and not any(other in node.props for node in shape.nodes):
            return 0
        try:
            added[other] = writer.value(state, other)
        except ExhaustedError:
            raise
        except UnmetError:
            return 0
    written.update(added)
    return len(added)


def _fill(
    writer: Writer, shape: Shape, written: dict[str, Any], declared: dict[str, None], required: dict[str, None]
) -> None:
    """Bring the object to its least size; give a map of open names a few entries."""
    for name in declared:
        if len(written) < shape.min_props and name not in written:
            _optional(writer, shape, name, written, required, shape.max_props - len(written))
    target = shape.min_props
    is_map = any((node.additional is not None and node.additional.keywords) or node.patterns for node in shape.nodes)
    if is_map and not declared and not writer.hurried and not writer.strict and writer.optional is None:
        target = max(target, 1 + writer.draws.below(3))
    misses = 0
    while len(written) < min(target, shape.max_props):
        if misses >= (NAME_TRIES if len(written) < shape.min_props else 2):
            break  # entries that need not be are not worth many tries
        new = _new_name(writer, shape, misses)
        if new is None or writer.strict:
            break
        name = new
        room = shape.max_props - len(written)
        if name in written or not _optional(writer, shape, name, written, required, room):
            misses += 1
            writer.work.fail(shape.path)
    if len(written) < shape.min_props:
        raise UnmetError(
            shape.path, f'"minProperties" is {shape.min_props}, but only {len(written)} properties were found'
        )


def _new_name(writer: Writer, shape: Shape, attempt: int) -> str | None:
    """A name for a property that the schema does not name."""
    rules = [node.names for node in shape.nodes if node.names is not None]
    patterns = [pattern for node in shape.nodes for pattern, child in node.patterns if not child.impossible]
    open_ended = all(node.additional is None or not node.additional.impossible for node in shape.nodes)
    try:
        if rules:
            return str(writer.value(state_of(*rules, _TEXT), "key"))
        if patterns and (attempt % 2 == 0 or not open_ended):
            pattern = patterns[writer.draws.below(len(patterns))]
            writer.work.check(shape.path, pattern_cost(pattern.source, 60))
            return varied(pattern, writer.draws, 0, 60, attempt)
    except PatternError as error:
        raise UnmetError(shape.path, f'"patternProperties": {error}') from None
    except ExhaustedError:
        raise
    except UnmetError:
        return None
    if not open_ended:
        return None
    words = TEXTS["key"]
    word = words[writer.draws.below(len(words))]
    return word if attempt == 0 and writer.draws.below(2) else f"{word}_{writer.draws.below(100_000)}"


_TEXT = Node(-1, "#")
_TEXT.types = 16
_TEXT.keywords.add("type")
