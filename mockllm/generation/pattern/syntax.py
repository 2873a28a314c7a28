"""Regular expressions as trees: the common subset of Python's `re` and ECMAScript.

JSON schema asks for ECMA-262 patterns and vLLM's `guided_regex` for Python's; nearly all patterns
in use are both. The parser reads literals, classes, escapes, groups, alternatives, repeats
(greedy and lazy alike), anchors, word boundaries and lookaround. What has no meaning for a set of
strings (atomic groups, possessive repeats) or cannot be decided cheaply (backreferences, inline
flags) is refused by name. Where the two languages read a pattern differently, Python wins, as
Python's validators will judge the result.

Sources: https://docs.python.org/3/library/re.html, ECMA-262 §22.2 and annex B.1.2.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

MAX_PATTERN_CHARS = 10_000
MAX_GROUP_DEPTH = 50
MAX_COUNT_DIGITS = 9
"""A repeat count of more digits is refused, as `re` refuses counts beyond 2**32."""

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
_CATEGORIES = {
    "L": "L", "Letter": "L", "Lu": "Lu", "Uppercase_Letter": "Lu", "Ll": "Ll", "Lowercase_Letter": "Ll",
    "N": "N", "Number": "N", "Nd": "Nd", "Decimal_Number": "Nd", "P": "P", "Punctuation": "P", "S": "S",
    "Symbol": "S", "Z": "Z", "Zs": "Zs", "M": "M", "Mark": "M",
}  # fmt: skip
_EMOJI: dict[str, tuple[Range, ...]] = {
    "Extended_Pictographic": ((0x1F300, 0x1F3FA), (0x1F400, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF)),
    "Emoji_Component": ((0x200D, 0x200D), (0x20E3, 0x20E3), (0xFE0F, 0xFE0F), (0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF)),
    "Regional_Indicator": ((0x1F1E6, 0x1F1FF),),
}
"""The properties in zod's emoji pattern (Unicode TR 51), rare symbols left out."""

_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "0": 0}
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
    elif kind[2:-1] in _EMOJI:
        found = any(low <= ord(char) <= high for low, high in _EMOJI[kind[2:-1]])
    else:
        found = unicodedata.category(char).startswith(_CATEGORIES[kind[2:-1]])
    return found != letter.isupper()


@lru_cache(maxsize=2048)
def make_chars(ranges: tuple[Range, ...], kinds: tuple[str, ...] = (), negated: bool = False) -> Chars:
    """A class with its alphabet: what a person would write first, code points beyond ASCII last.

    Equal classes are one object, so that a matcher looks at the text once for each.
    """
    bare = Chars(ranges, kinds, negated)
    letters = [char for char in _PRINTABLE if bare.has(char)]
    if letters and (negated or kinds):
        return Chars(ranges, kinds, negated, "".join(letters))  # `.`, `[^x]`, `\w`: letters and digits will do
    marks = [char for char in _PUNCTUATION if bare.has(char)]
    found = letters + marks
    if not found:
        found = [char for char in _SPACES if bare.has(char)]
    if not found:
        named = [each for kind in kinds if kind[0] == "p" for each in _EMOJI.get(kind[2:-1], ())]
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


ANY = make_chars(((10, 10),), (), True)
PADDING = make_chars(((97, 122),))


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0

    def fail(self, what: str) -> PatternError:
        return PatternError(f"{what} at position {self.at} of the pattern {shown(self.source)}")

    def peek(self, text: str) -> bool:
        return self.source.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.at += len(text)
            return True
        return False

    def alternatives(self) -> Node:
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.source) and not self.peek("|") and not self.peek(")"):
            atom = self.atom()
            if atom is not None:
                parts.append(self.repeats(atom))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def atom(self) -> Node | None:
        char = self.source[self.at]
        if char in "*+?":
            raise self.fail(f"nothing to repeat before {char!r}")
        self.at += 1
        if char == "(":
            return self.group()
        if char == "[":
            return self.char_class()
        if char == "\\":
            return self.escape()
        if char == ".":
            return ANY
        if char in "^$":
            return Edge("start" if char == "^" else "end")
        return make_chars(((ord(char), ord(char)),))

    def repeats(self, atom: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return atom
        if isinstance(atom, Edge):
            raise self.fail("an anchor cannot be repeated")
        if not self.take("?") and self.peek("+"):
            raise self.fail("possessive repeats are not supported")
        if self.at < len(self.source) and self.source[self.at] in "*+?":
            raise self.fail("multiple repeats")
        return Repeat(atom, *bounds)

    def bounds(self) -> tuple[int, int] | None:
        for mark, least, most in (("*", 0, UNBOUNDED), ("+", 1, UNBOUNDED), ("?", 0, 1)):
            if self.take(mark):
                return least, most
        end = self.source.find("}", self.at) if self.peek("{") else -1
        low, comma, high = self.source[self.at + 1 : max(end, 0)].partition(",")
        digits = low + high
        if end < 0 or not (digits.isascii() and digits.isdecimal()):
            return None  # a lone brace is a literal, in both languages
        if max(len(low), len(high)) > MAX_COUNT_DIGITS:
            raise self.fail(f"a repeat count of more than {MAX_COUNT_DIGITS} digits")
        least = int(low or "0")
        most = int(high or UNBOUNDED) if comma else least
        if most < least:
            raise self.fail(f"the repeat {{{low},{high}}} has its bounds the wrong way round")
        self.at = end + 1
        return least, most

    def group(self) -> Node | None:
        self.depth += 1
        if self.depth > MAX_GROUP_DEPTH:
            raise self.fail(f"more than {MAX_GROUP_DEPTH} nested groups")
        look = None
        if self.take("?"):
            if self.take("#"):
                end = self.source.find(")", self.at)
                if end < 0:
                    raise self.fail("a comment without end")
                self.at = end + 1
                self.depth -= 1
                return None
            look = self.group_kind()
        body = self.alternatives()
        if not self.take(")"):
            raise self.fail("missing )")
        self.depth -= 1
        if look is not None:
            return Look(body, *look)
        return Sequence((body,)) if isinstance(body, Edge) else body  # `(?:^)*` may be repeated, `^*` not

    def group_kind(self) -> tuple[bool, bool] | None:
        if self.take(":"):
            return None
        for mark, behind, negated in (("=", False, False), ("!", False, True), ("<=", True, False), ("<!", True, True)):
            if self.take(mark):
                return behind, negated
        if self.peek("P=") or self.peek("("):
            raise self.fail("backreferences are not supported")
        if self.peek(">"):
            raise self.fail("atomic groups are not supported")
        if self.take("P<") or self.take("<"):
            end = self.source.find(">", self.at)
            if not self.source[self.at : max(end, 0)].isidentifier():
                raise self.fail("a bad group name")
            self.at = end + 1
            return None
        raise self.fail("inline flags are not supported")

    def escape(self) -> Node:
        if self.at >= len(self.source):
            raise self.fail("a lone backslash at the end")
        char = self.source[self.at]
        edge = {"b": "boundary", "B": "inside", "A": "start", "Z": "end", "z": "end"}.get(char)
        if edge:
            self.at += 1
            return Edge(edge)
        if char in "123456789" or char == "k":
            raise self.fail("backreferences are not supported")
        member = self.member_escape()
        return make_chars((), (member,)) if isinstance(member, str) else make_chars(((member, member),))

    def member_escape(self) -> str | int:
        """An escape that may stand in a class: a kind, or the code point."""
        char = self.source[self.at]
        self.at += 1
        if char in "dDwWsS":
            return char
        if char in "pP":
            end = self.source.find("}", self.at) if self.peek("{") else -1
            name = self.source[self.at + 1 : max(end, 0)]
            if name not in _CATEGORIES and name not in _EMOJI:
                raise self.fail(f"the property \\{char}{{{name[:40]}}} is not supported")
            self.at = end + 1
            return f"{char}{{{name}}}"
        if char == "u" and self.take("{"):
            end = self.source.find("}", self.at)
            return self.hexadecimal(max(end - self.at, 1), 1)
        if char in "xu":
            return self.hexadecimal(2 if char == "x" else 4, 0)
        if char == "U":
            return self.hexadecimal(8, 0)
        if char == "c" and self.at < len(self.source):
            self.at += 1
            return ord(self.source[self.at - 1]) % 32
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum():
            raise self.fail(f"the escape \\{char} is not supported")
        return ord(char)

    def hexadecimal(self, width: int, closing: int) -> int:
        digits = self.source[self.at : self.at + width]
        if len(digits) < width or not all(d in "0123456789abcdefABCDEF" for d in digits) or int(digits, 16) > 0x10FFFF:
            raise self.fail("a bad hexadecimal escape")
        self.at += width + closing
        return int(digits, 16)

    def char_class(self) -> Node:
        negated = self.take("^")
        ranges: list[Range] = []
        kinds: list[str] = []
        first = True
        while first or not self.peek("]"):
            first = False
            low = self.member()
            if isinstance(low, str):
                kinds.append(low)
                continue
            high: str | int = low
            if self.peek("-") and not self.source.startswith("-]", self.at):
                self.at += 1
                high = self.member()
            if isinstance(high, str):  # `[a-\d]`: ECMA reads a literal dash
                kinds.append(high)
                ranges += [(low, low), (45, 45)]
            elif high < low:
                raise self.fail("a range with its ends the wrong way round")
            else:
                ranges.append((low, high))
        self.at += 1
        return make_chars(tuple(ranges), tuple(kinds), negated)

    def member(self) -> str | int:
        if self.at >= len(self.source):
            raise self.fail("missing ]")
        char = self.source[self.at]
        self.at += 1
        if char != "\\":
            return ord(char)
        if self.at >= len(self.source):
            raise self.fail("missing ]")
        if self.take("b"):
            return 8
        return self.member_escape()


def shown(pattern: str) -> str:
    """The pattern for a message: quoted, and cut where it is long."""
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "…")


def parse(source: str) -> Node:
    """The tree of a pattern.

    Raises:
        PatternError: It is malformed, too long, or uses what is not supported.
    """
    if len(source) > MAX_PATTERN_CHARS:
        raise PatternError(f"the pattern is longer than {MAX_PATTERN_CHARS} characters")
    parser = _Parser(source)
    tree = parser.alternatives()
    if parser.at < len(source):
        raise parser.fail("unbalanced )")
    return tree
