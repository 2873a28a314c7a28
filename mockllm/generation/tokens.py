"""The built-in tokenizer: text into tokens without a vocabulary.

One regular expression splits text; every token is short enough to be spelled out in a number
below 2**31 (`token_ids`), so decoding needs nothing but the id, and every string, lone
surrogates included, comes back as it was. The rules count English about as cl100k does:

- a word of up to six letters, with the space before it, is one token; a longer one is one token
  if it is four letters and a common ending, else it is cut after six letters (capitalised: five);
- capitals come in runs of up to five, digits of three, ASCII punctuation of four;
- line ends take the indentation after them along; spaces and tabs come in runs;
- characters of U+0080…U+07FF (Latin, Greek, Cyrillic, Hebrew, Arabic) come in twos, any other
  alone, under its code point as id.

No token is special, and ids are stable for ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from mockllm.generation.token_ids import CAPITALISED_ENDINGS as _CAPITALISED_ENDINGS
from mockllm.generation.token_ids import LOWER_ENDINGS as _LOWER_ENDINGS
from mockllm.generation.token_ids import STEM, VOCAB_SIZE, pack, unpack


class Tokenizer(Protocol):
    """What the server needs of a tokenizer.

    Attributes:
        name: For people: in the start line and in errors.
        vocab_size: Every id that `encode` gives is below it.
    """

    @property
    def name(self) -> str: ...

    @property
    def vocab_size(self) -> int: ...

    def count(self, text: str) -> int:
        """How many tokens `text` has, special ones not added."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of the text's tokens; as many as `count` says."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids.

        Raises:
            ValueError: An id has no text; the message says which.
        """
        ...

    def pieces(self, text: str) -> list[str]:
        """The text of each token, as many as `count` says; together they are `text`."""
        ...


# The group catches just the words that may be more than one token: `findall` then gives the
# shared empty string for every other token, so that counting makes few strings.
_PATTERN = (
    r" ?(?:([a-z]{7,16}|[A-Z][a-z]{5,15})|[A-Z]{2,5}(?![a-z])|[A-Za-z][a-z]{0,5})"
    r"|[0-9]{1,3}"
    r"| ?[!-/:-@\[-`{-~]{1,4}"
    r"| ?[\x80-\u07ff]{1,2}"
    r"|(?:\n{1,8}|\r\n) {0,31}"
    r"| {1,32}|\t{1,8}"
    r"|(?s:.)"
)
_find_long = re.compile(_PATTERN).findall
_find_all = re.compile(_PATTERN.replace("(?:(", "(?:(?:", 1)).findall
_STRETCH = 1 << 16  # characters that are counted at a time: bounds the memory that a count takes


def _cut(token: str) -> list[str]:
    """The tokens of a word of up to 16 letters, the space before it included."""
    start = token[0] == " "
    capitalised = token[start] < "a"
    end = start + 6 - capitalised
    if len(token) <= end or token[start + STEM :] in (_CAPITALISED_ENDINGS if capitalised else _LOWER_ENDINGS):
        return [token]
    return [token[:end], *_cut(token[end:])]


class BuiltinTokenizer:
    """The stateless tokenizer; all its instances are alike."""

    name = "built-in"
    vocab_size = VOCAB_SIZE

    def count(self, text: str) -> int:
        total = start = 0
        while len(text) - start > _STRETCH:
            end = start + _STRETCH
            # No token reaches over the gap between a word and the space after it.
            gap = text.rfind(" ", start + 1, end)
            if gap < 0 or text[gap - 1].isspace():
                # Elsewhere a cut can change the last token before it, and no other.
                gap = end - len(_find_all(text[start:end])[-1])
            total += _count(text[start:gap])
            start = gap
        return total + _count(text[start:] if start else text)

    def encode(self, text: str) -> list[int]:
        return [pack(piece) for piece in self.pieces(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(unpack, ids))

    def pieces(self, text: str) -> list[str]:
        pieces: list[str] = []
        for token in _find_all(text):
            if len(token) > 5 and token[-1].isalpha():
                pieces += _cut(token)
            else:
                pieces.append(token)
        return pieces


def _count(text: str) -> int:
    found = _find_long(text)
    count = len(found)
    for word in filter(None, found):
        if word[STEM:] not in _LOWER_ENDINGS or word[0] < "a":
            count += len(_cut(word)) - 1
    return count
