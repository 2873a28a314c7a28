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

from mockllm.generation.pattern.tree import (
    ANY,
    CATEGORIES,
    EMOJI,
    UNBOUNDED,
    Edge,
    Either,
    Look,
    Node,
    PatternError,
    Range,
    Repeat,
    Sequence,
    make_chars,
)

MAX_PATTERN_CHARS = 10_000
MAX_GROUP_DEPTH = 50
MAX_COUNT_DIGITS = 9
"""A repeat count of more digits is refused, as `re` refuses counts beyond 2**32."""

_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "0": 0}


def shown(pattern: str) -> str:
    """The pattern for a message: quoted, and cut where it is long."""
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "…")


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
            if name not in CATEGORIES and name not in EMOJI:
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
