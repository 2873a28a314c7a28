"""What can be known of a schema before a value is written: loops, and how deep its values go.

A loop of subschemas that judge the same value (`{"$ref": "#"}` alone) never ends. A loop through
properties or items may end, where something in it is optional: the *height* of a node is the
least nesting that its values need, and infinite where a value would have to hold itself.
"""

from __future__ import annotations

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
            raise UnmetError(node.path, f"more than {MAX_NESTING} references and branches lead to it one after the other")
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
    pending = list(reversed(nodes))
    visits = 0
    while pending and visits < 30 * len(nodes) + 100:
        visits += 1
        node = pending.pop()
        height = _height(node)
        if height < node.height:
            node.height = height
            pending.extend(parents[node.index])


def _all_children(node: Node) -> list[Node]:
    children = [*node.in_place, *node.props.values(), *node.prefix, *[child for _, child in node.patterns]]
    for child in (node.items, node.contains, node.additional):
        if child is not None:
            children.append(child)
    return children


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
        needed = node.prefix[: node.min_items]
        if node.items is not None and node.min_items > len(node.prefix):
            needed = [*needed, node.items]
        if node.contains is not None and node.min_contains:
            needed = [*needed, node.contains]
        heights.append(1 + max((child.height for child in needed), default=0))
    if node.types & OBJECT:
        heights.append(1 + max((child.height for child in _required(node)), default=0))
    return min(min(heights), INFINITE)


def _required(node: Node) -> list[Node]:
    needed = []
    for name in node.required:
        if name in node.props:
            needed.append(node.props[name])
        elif node.additional is not None and not node.patterns:
            needed.append(node.additional)
    return needed
