"""Texts that match a tree, by a walk that steers towards the length asked for.

Each part gets the room that the others leave it, so that bounds are met wherever the possible
lengths have no gaps. Anchors and lookaround inside the pattern are not steered by: the text is
checked afterwards, and another draw follows.
"""

from __future__ import annotations

from mockllm.generation.keyed import Draws
from mockllm.generation.pattern.tree import (
    EMPTY,
    PADDING,
    UNBOUNDED,
    Chars,
    Edge,
    Either,
    Look,
    Node,
    PatternError,
    Repeat,
    Sequence,
    TooCostlyError,
)

USUAL_REPEATS = 4
"""A repeat gets fewer than this many rounds above its least, unless length asks for more."""

MAX_STEPS = 20_000
"""Parts that may be visited for one text (about 1 µs each)."""

NO_LENGTH = "no text of the length asked for matches the pattern"


class Writer:
    """Writes texts out of one source of draws, with a limit to the work for each."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._steps = 0

    def write(self, node: Node, low: int, high: int) -> str:
        """A text of `low` to `high` characters, or a `PatternError` where the walk finds none."""
        self._steps = 0
        return self._write(node, low, high)

    def _write(self, node: Node, low: int, high: int) -> str:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TooCostlyError("the pattern takes too many steps to write")
        if node.low > high or node.high < low:
            raise PatternError(NO_LENGTH)
        match node:
            case Chars():
                return self._chars(node, 1)
            case Edge() | Look():
                return ""
            case Either():
                fitting = [part for part in node.parts if part.low <= high and part.high >= low]
                if not fitting:
                    raise PatternError(NO_LENGTH)
                return self._write(fitting[self._draws.below(len(fitting))], low, high)
            case Sequence():
                return self._sequence(node, low, high)
            case Repeat():
                return self._repeat(node, low, high)

    def _chars(self, node: Chars, count: int) -> str:
        if not count:
            return ""
        alphabet, size, below = node.alphabet, len(node.alphabet), self._draws.below
        if not size:
            raise PatternError("a character class has no characters")
        return "".join([alphabet[below(size)] for _ in range(count)])

    def _sequence(self, node: Sequence, low: int, high: int) -> str:
        rest_low, rest_high = node.low, sum(part.high for part in node.parts)
        pieces = []
        for part in node.parts:
            rest_low -= part.low
            rest_high -= part.high
            piece = self._write(part, max(part.low, low - rest_high), min(part.high, high - rest_low))
            low -= len(piece)
            high -= len(piece)
            pieces.append(piece)
        return "".join(pieces)

    def _repeat(self, node: Repeat, low: int, high: int) -> str:
        body = node.body
        if body.high == 0:
            return ""
        most = min(node.most, high // body.low if body.low else max(node.least, high))
        least = max(node.least, -(-low // body.high))
        if least > most:
            raise PatternError(NO_LENGTH)
        rounds = least + self._draws.below(min(most - least, USUAL_REPEATS - 1) + 1)
        if isinstance(body, Chars):  # the usual case, without a call for each character
            return self._chars(body, rounds)
        pieces = []
        for left in range(rounds - 1, -1, -1):
            others_high = min(UNBOUNDED, body.high * left)
            piece = self._write(body, max(body.low, low - others_high), min(body.high, high - body.low * left))
            low -= len(piece)
            high -= len(piece)
            pieces.append(piece)
        return "".join(pieces)


def padded(tree: Node, low: int) -> Node:
    """The tree with room for padding where no anchor forbids it.

    A search needs padding only where the pattern alone stays shorter than `low`.
    """
    if tree.high >= low:
        return tree
    branches = tree.parts if isinstance(tree, Either) else (tree,)
    return Either(tuple(_pad(branch, low) for branch in branches)) if len(branches) > 1 else _pad(tree, low)


def _pad(branch: Node, low: int) -> Node:
    parts = branch.parts if isinstance(branch, Sequence) else (branch,)
    needed = max(0, low - branch.high)
    before = _anchored(parts[:1], "start")
    after = _anchored(parts[-1:], "end")
    padding = Repeat(PADDING, needed, UNBOUNDED)
    return Sequence((EMPTY if before or not after else padding, branch, EMPTY if after else padding))


def _anchored(parts: tuple[Node, ...], kind: str) -> bool:
    return any(isinstance(part, Edge) and part.kind == kind for part in parts)
