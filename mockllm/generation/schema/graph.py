"""What can be known of a schema before a value is written: loops, and how deep its values go.

A loop of subschemas that judge the same value (`{"$ref": "#"}` alone) never ends. A loop through
properties or items may end, where something in it is optional: the *height* of a node is the
least nesting that its values need, and infinite where a value would have to hold itself.
"""

from __future__ import annotations

from collections import deque

from mockllm.generation.schema.limits import MAX_NESTING, UnmetError
from mockllm.generation.schema.node import ANY_TYPE, ARRAY, INFINITE, OBJECT, Node


def refuse_loops(nodes: list[Node]) -> None:
    """Refuse a node that judges a value by judging it by itself, or through too many others."""
    waiting = [0] * len(nodes)  # in-place parents not yet passed
    for node in nodes:
        for child in node.in_place:
            waiting[child.index] += 1
    depth = [1] * len(nodes)
    ready = [node for node in nodes if not waiting[node.index]]
    for node in ready:
        if depth[node.index] > MAX_NESTING:
            raise UnmetError(node.path, f"more than {MAX_NESTING} references and branches lead to it in a row")
        for child in node.in_place:
            depth[child.index] = max(depth[child.index], depth[node.index] + 1)
            waiting[child.index] -= 1
            if not waiting[child.index]:
                ready.append(child)
    if len(ready) < len(nodes):
        looping = next(node for node in nodes if waiting[node.index])
        raise UnmetError(looping.path, "it refers to itself without end")


def set_heights(nodes: list[Node]) -> None:
    """Give every node its height: the smallest solution, reached from "infinite" downwards."""
    parents: list[list[Node]] = [[] for _ in nodes]
    for node in nodes:
        for child in _all_children(node):
            parents[child.index].append(node)
    pending = deque(reversed(nodes))  # leaves first, mostly
    waiting = [True] * len(nodes)
    room = 40 * sum(map(len, parents)) + len(nodes)
    while pending and room > 0:
        node = pending.popleft()
        waiting[node.index] = False
        height = _height(node)
        room -= 1 + len(node.props) + len(node.in_place)
        if height < node.height:
            node.height = height
            for parent in parents[node.index]:
                if not waiting[parent.index]:
                    waiting[parent.index] = True
                    pending.append(parent)
    for node in pending:  # too intricate to settle: let the writer find out
        node.height = min(node.height, 0 if not node.impossible else INFINITE)


def blame(root: Node) -> UnmetError:
    """Where and why a root of infinite height cannot be met."""
    node, seen = root, set()
    while node.index not in seen:
        seen.add(node.index)
        if node.impossible:
            return UnmetError(node.path, "nothing is allowed here (the schema is false), but a value is required")
        following = [child for child in (*node.refs, *node.all_of) if child.height >= INFINITE]
        if not following and _own_height(node) >= INFINITE:
            following = [child for child in (*_items(node), *_required(node)) if child.height >= INFINITE]
        if not following:
            return UnmetError(node.path, "none of its alternatives can be met")
        node = following[0]
    return UnmetError(node.path, "it requires itself without end")


def _all_children(node: Node) -> list[Node]:
    children = [*node.in_place, *node.props.values(), *node.prefix, *[child for _, child in node.patterns]]
    return children + [child for child in (node.items, node.contains, node.additional) if child is not None]


def _height(node: Node) -> int:
    if node.impossible:
        return INFINITE
    if node.enum is not None:
        return 0
    height = _own_height(node)
    for child in (*node.refs, *node.all_of):
        height = max(height, child.height)
    for branches in (node.any_of, node.one_of):
        if branches:
            height = max(height, min(branch.height for branch in branches))
    return height


def _own_height(node: Node) -> int:
    if node.types & (ANY_TYPE & ~(ARRAY | OBJECT)):
        return 0
    heights = []
    if node.types & ARRAY:
        heights.append(1 + max((child.height for child in _items(node)), default=0))
    if node.types & OBJECT:
        heights.append(1 + max((child.height for child in _required(node)), default=0))
    return min(min(heights), INFINITE)


def _items(node: Node) -> list[Node]:
    needed = node.prefix[: node.min_items]
    if node.items is not None and node.min_items > len(node.prefix):
        needed = [*needed, node.items]
    if node.contains is not None and node.min_contains:
        needed = [*needed, node.contains]
    return needed


def _required(node: Node) -> list[Node]:
    needed = []
    for name in node.required:
        if name in node.props:
            needed.append(node.props[name])
        elif node.additional is not None and not node.patterns:
            needed.append(node.additional)
    return needed
