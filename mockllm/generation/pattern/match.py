"""Does a text match? Decided over sets of positions, never by backtracking.

Python's `re` may take exponential time on a hostile pattern, and cannot be interrupted. Here a
set of positions in the text is one integer (bit i: before character i), a node maps the set of
its starts to the set of its ends, and the work is bounded and counted.

Source of the run trick in `_run`: Cameron et al., "Bitwise data parallelism in regular expression
matching", PACT 2014 (MatchStar).
"""

from __future__ import annotations

from mockllm.generation.pattern.tree import (
    Chars,
    Edge,
    Either,
    Look,
    Node,
    Repeat,
    Sequence,
    TooCostlyError,
)

MAX_WORK = 100_000
"""Steps that one match may take; a step is a node over up to 4,096 positions (about 1 µs)."""

KEPT_CHARS = 1024
"""Characters whose membership a class remembers."""


class Matcher:
    """One text, to be matched against any number of trees."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._size = len(text)
        self._all = (1 << self._size + 1) - 1
        self._masks: dict[Chars, int] = {}
        self._cost = 1 + self._size // 4096
        self._work = 0

    def search(self, tree: Node) -> bool:
        """Whether some part of the text matches (JSON schema's `pattern`)."""
        return self._ends(tree, self._all) != 0

    def fullmatch(self, tree: Node) -> bool:
        """Whether the whole text matches (`guided_regex`)."""
        return bool(self._ends(tree, 1) >> self._size & 1)

    def _spend(self, steps: int) -> None:
        self._work += steps
        if self._work > MAX_WORK:
            raise TooCostlyError("the pattern takes too many steps to check")

    def _mask(self, chars: Chars) -> int:
        """Positions whose next character is in the class."""
        mask = self._masks.get(chars)
        if mask is None:
            self._spend(1 + self._size // 8)
            digits = chars.digits
            if len(digits) > KEPT_CHARS:
                digits.clear()
            mask = int("".join([digits[char] for char in reversed(self._text)]) or "0", 2)
            self._masks[chars] = mask
        return mask

    def _ends(self, node: Node, starts: int) -> int:
        self._spend(self._cost)
        if not starts:
            return 0
        match node:
            case Chars():
                return (starts & self._mask(node)) << 1
            case Sequence():
                for part in node.parts:
                    starts = self._ends(part, starts)
                    if not starts:
                        break
                return starts
            case Either():
                ends = 0
                for part in node.parts:
                    ends |= self._ends(part, starts)
                return ends
            case Repeat():
                return self._repeat(node, starts)
            case Edge():
                return starts & self._edge(node.kind)
            case Look():
                return self._look(node, starts)

    def _repeat(self, node: Repeat, starts: int) -> int:
        current = starts
        if isinstance(node.body, Chars):
            current = self._exactly(starts, self._mask(node.body), min(node.least, self._size + 1))
        for _ in range(0 if isinstance(node.body, Chars) else node.least):
            following = self._ends(node.body, current)
            if following == current:
                break
            current = following
        extra = node.most - node.least
        if isinstance(node.body, Chars) and extra > self._size:
            return self._run(current, self._mask(node.body))
        reached = current
        for _ in range(min(extra, self._size + 1)):
            current = self._ends(node.body, current) & ~reached
            if not current:
                break
            reached |= current
        return reached

    @staticmethod
    def _exactly(starts: int, mask: int, count: int) -> int:
        """Positions `count` characters of the class after a start; runs are found by doubling."""
        ends, run, length = starts, mask, 1
        while count:
            if count & 1:
                ends = (ends & run) << length
            run &= run >> length
            length *= 2
            count >>= 1
        return ends

    @staticmethod
    def _run(starts: int, mask: int) -> int:
        """Every position that is reached from `starts` over characters of the class."""
        return (((starts & mask) + mask) ^ mask) | starts

    def _edge(self, kind: str) -> int:
        if kind == "start":
            return 1
        if kind == "end":
            # Python's `$` also holds before a final newline.
            return 1 << self._size | (1 << self._size - 1 if self._text.endswith("\n") else 0)
        words = self._mask(_WORD)
        boundaries = (words ^ words << 1) & self._all
        return boundaries if kind == "boundary" else self._all & ~boundaries

    def _look(self, node: Look, starts: int) -> int:
        found = 0
        if not node.behind:
            for position in _bits(starts):
                if self._ends(node.body, 1 << position):
                    found |= 1 << position
        else:
            found = self._ends(node.body, self._all) & starts
        return starts & ~found if node.negated else found


_WORD = Chars(kinds=("w",))


def _bits(mask: int) -> list[int]:
    positions = []
    while mask:
        lowest = mask & -mask
        positions.append(lowest.bit_length() - 1)
        mask ^= lowest
    return positions
