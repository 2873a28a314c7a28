"""A regular expression as a tree, and its characters' classes."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

UNBOUNDED = 1 << 40
"""Stands for "no upper limit": far more than any text that is ever made."""

Range = tuple[int, int]


class PatternError(Exception):
    """A pattern that is malformed, unsupported or cannot be met; the text says which and where."""


class TooCostlyError(PatternError):
    """A pattern that would take more work than it is given."""


class Digits(dict[str, str]):
    """Which characters a class holds, as binary digits; found out when first asked (4 times quicker)."""

    def __init__(self, chars: Chars) -> None:
        self._chars = chars

    def __missing__(self, char: str) -> str:
        digit = self[char] = "1" if self._chars.has(char) else "0"
        return digit


@dataclass(frozen=True, eq=False)
class Chars:
    """One character out of a class.

    Attributes:
        ranges: Code points, both ends included.
        kinds: Letters of escapes (`d`, `D`, `w`, …) or `p{…}`, `P{…}`.
        negated: The class is what the parts do not hold.
        alphabet: Characters to write, plain ones first; filled by the parser.
    """

    ranges: tuple[Range, ...] = ()
    kinds: tuple[str, ...] = ()
    negated: bool = False
    alphabet: str = ""
    low: int = 1
    high: int = 1
    digits: Digits = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digits", Digits(self))

    def has(self, char: str) -> bool:
        point = ord(char)
        inside = any(low <= point <= high for low, high in self.ranges) or any(_in_kind(char, k) for k in self.kinds)
        return inside != self.negated


@dataclass(frozen=True, eq=False)
class Edge:
    """A place without width: `start`, `end`, `boundary`, `inside` (`\\B`)."""

    kind: str
    low: int = 0
    high: int = 0


@dataclass(frozen=True, eq=False)
class Look:
    """Lookahead or lookbehind."""

    body: Node
    behind: bool
    negated: bool
    low: int = 0
    high: int = 0


@dataclass(frozen=True, eq=False)
class Sequence:
    """Parts one after the other; `low` and `high` are the lengths it can have."""

    parts: tuple[Node, ...]
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", sum(part.low for part in self.parts))
        object.__setattr__(self, "high", min(UNBOUNDED, sum(part.high for part in self.parts)))


@dataclass(frozen=True, eq=False)
class Either:
    """One of several parts."""

    parts: tuple[Node, ...]
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", min(part.low for part in self.parts))
        object.__setattr__(self, "high", max(part.high for part in self.parts))


@dataclass(frozen=True, eq=False)
class Repeat:
    """`least` to `most` times the same part."""

    body: Node
    least: int
    most: int
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", min(UNBOUNDED, self.body.low * self.least))
        object.__setattr__(self, "high", min(UNBOUNDED, self.body.high * self.most))


Node = Chars | Edge | Look | Sequence | Either | Repeat

EMPTY = Sequence(())
CATEGORIES = {
    "L": "L", "Letter": "L", "Lu": "Lu", "Uppercase_Letter": "Lu", "Ll": "Ll", "Lowercase_Letter": "Ll",
    "N": "N", "Number": "N", "Nd": "Nd", "Decimal_Number": "Nd", "P": "P", "Punctuation": "P", "S": "S",
    "Symbol": "S", "Z": "Z", "Zs": "Zs", "M": "M", "Mark": "M",
}  # fmt: skip
EMOJI: dict[str, tuple[Range, ...]] = {
    "Extended_Pictographic": ((0x1F300, 0x1F3FA), (0x1F400, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF)),
    "Emoji_Component": ((0x200D, 0x200D), (0x20E3, 0x20E3), (0xFE0F, 0xFE0F), (0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF)),
    "Regional_Indicator": ((0x1F1E6, 0x1F1FF),),
}
"""The properties in zod's emoji pattern (Unicode TR 51), rare symbols left out."""

_PRINTABLE = [chr(point) for point in (*range(97, 123), *range(48, 58), *range(65, 91))]
_PUNCTUATION = [chr(point) for point in range(32, 127) if not chr(point).isalnum()]
_SPACES = [" ", "\t", "\n"]


def _in_kind(char: str, kind: str) -> bool:
    letter = kind[0]
    if letter in "dD":
        found = char.isdecimal()
    elif letter in "wW":
        found = char.isalnum() or char == "_"
    elif letter in "sS":
        found = char.isspace()
    elif kind[2:-1] in EMOJI:
        found = any(low <= ord(char) <= high for low, high in EMOJI[kind[2:-1]])
    else:
        found = unicodedata.category(char).startswith(CATEGORIES[kind[2:-1]])
    return found != letter.isupper()


def make_chars(ranges: tuple[Range, ...], kinds: tuple[str, ...] = (), negated: bool = False) -> Chars:
    """A class with its alphabet: what a person would write first, code points beyond ASCII last.

    Equal classes are one object, so that a matcher looks at the text once for each; huge ones are not kept.
    """
    return (_known_chars if len(ranges) + len(kinds) <= _KEPT_RANGES else _new_chars)(ranges, kinds, negated)


def _new_chars(ranges: tuple[Range, ...], kinds: tuple[str, ...], negated: bool) -> Chars:
    bare = Chars(ranges, kinds, negated)
    letters = [char for char in _PRINTABLE if bare.has(char)]
    if letters and (negated or kinds):
        return Chars(ranges, kinds, negated, "".join(letters))  # `.`, `[^x]`, `\w`: letters and digits will do
    marks = [char for char in _PUNCTUATION if bare.has(char)]
    found = letters + marks
    if not found:
        found = [char for char in _SPACES if bare.has(char)]
    if not found:
        named = [each for kind in kinds if kind[0] == "p" for each in EMOJI.get(kind[2:-1], ())]
        points = [
            p
            for low, high in (*ranges, *named)
            for p in range(low, min(high, low + 63) + 1)
            if not 0xD800 <= p < 0xE000
        ]
        found = [chr(p) for p in points[:256] if bare.has(chr(p))]
    if not found and (negated or kinds):
        found = [chr(p) for p in range(0xA0, 0x2FF) if bare.has(chr(p))]
    return Chars(ranges, kinds, negated, "".join(found))


_KEPT_RANGES = 64
_known_chars = lru_cache(maxsize=2048)(_new_chars)

ANY = make_chars(((10, 10),), (), True)
PADDING = make_chars(((97, 122),))
