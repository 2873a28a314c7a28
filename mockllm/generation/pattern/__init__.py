"""Texts for regular expressions: JSON schema's `pattern` and vLLM's `guided_regex`.

`Pattern` holds a parsed pattern; it makes texts and checks them, in bounded time whatever the
pattern. `generate` is the short way for a caller that has a request's field at hand.
"""

from __future__ import annotations

from mockllm.errors import RequestError
from mockllm.generation.keyed import Draws
from mockllm.generation.pattern.make import Writer, padded
from mockllm.generation.pattern.match import Matcher
from mockllm.generation.pattern.syntax import parse, shown
from mockllm.generation.pattern.tree import PatternError, TooCostlyError

__all__ = ["MAX_TEXT_CHARS", "TRIES", "Pattern", "PatternError", "generate"]

MAX_TEXT_CHARS = 65_536
"""Longest text that is ever made."""

TRIES = 48
"""Draws before a pattern counts as one that cannot be met. A password rule of three lookaheads
over eight characters takes three draws on average."""


class Pattern:
    """A parsed pattern.

    Args:
        source: The regular expression.

    Raises:
        PatternError: It is malformed or beyond what is supported.
    """

    __slots__ = ("_tree", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._tree = parse(source)

    def search(self, text: str) -> bool:
        """Whether some part of `text` matches, as `re.search` would say."""
        return Matcher(text).search(self._tree)

    def fullmatch(self, text: str) -> bool:
        """Whether all of `text` matches, as `re.fullmatch` would say."""
        return Matcher(text).fullmatch(self._tree)

    def make(self, draws: Draws, low: int = 0, high: int = MAX_TEXT_CHARS, *, whole: bool = False) -> str:
        """A text of `low` to `high` characters that matches.

        Args:
            draws: Where the choices come from.
            low: Fewest characters.
            high: Most characters; never more than `MAX_TEXT_CHARS` are made.
            whole: The whole text has to match, not just a part of it.

        Raises:
            PatternError: None was found.
        """
        high = min(high, MAX_TEXT_CHARS)
        tree = self._tree if whole else padded(self._tree, low)
        last = "no text was found that matches the pattern"
        if tree.low > high:
            raise PatternError(
                f"the pattern {shown(self.source)} needs {tree.low} characters or more, {high} are allowed"
            )
        writer = Writer(draws)
        for _ in range(TRIES):
            try:
                text = writer.write(tree, low, high)
            except TooCostlyError:
                raise
            except PatternError as error:
                last = str(error)
                continue
            if low <= len(text) <= high:
                matcher = Matcher(text)
                if matcher.fullmatch(self._tree) if whole else matcher.search(self._tree):
                    return text
        raise PatternError(f"{last}: {shown(self.source)}")


def generate(pattern: str, key: bytes, *, param: str | None = None) -> str:
    """A text that matches `pattern` as a whole, decided by the key.

    Args:
        pattern: The regular expression.
        key: 16 bytes; the same key gives the same text.
        param: The request field the pattern came from, for the error.

    Raises:
        RequestError: 400; the pattern is malformed, unsupported or cannot be met.
    """
    try:
        return Pattern(pattern).make(Draws(key), whole=True)
    except PatternError as error:
        raise RequestError(f"Invalid regular expression: {error}.", param=param) from None
