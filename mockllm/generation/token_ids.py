"""The numbers of the built-in tokenizer's tokens: each token spells itself out in its id.

Below 0x110000 an id is a code point. Above lie blocks of tokens of one make: an optional space,
then a fixed number of characters of one alphabet read as the digits of a number, then, in the
last blocks, a common ending. Ids are stable for ever: blocks are only ever added behind the last.
"""

from __future__ import annotations

import string
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from mockllm.generation.endings import ENDINGS_ANY_CASE, ENDINGS_LOWER_CASE, ENDINGS_OF_SIX

CODE_POINTS = 0x110000
STEM = 4  # letters before an ending

_LOWER = string.ascii_lowercase
_MARKS = string.punctuation
_LATIN = "".join(map(chr, range(0x80, 0x800)))
_RUNS = (
    *(end + " " * n for end in (*("\n" * k for k in range(1, 9)), "\r\n") for n in range(32)),
    *(" " * n for n in range(2, 33)),
    *("\t" * n for n in range(2, 9)),
)
LOWER_ENDINGS = {ending: i for i, ending in enumerate(ENDINGS_ANY_CASE + ENDINGS_LOWER_CASE)}
CAPITALISED_ENDINGS = {ending: i for i, ending in enumerate(ENDINGS_OF_SIX + ENDINGS_ANY_CASE)}
_STEMS: int = 26**STEM
_RUN_NUMBERS = {run: i for i, run in enumerate(_RUNS)}
_DIGITS_OF_26 = str.maketrans(_LOWER + string.ascii_uppercase, (string.digits + _LOWER)[:26] * 2)
_MARK_NUMBERS = {mark: i for i, mark in enumerate(_MARKS)}


class _Block(NamedTuple):
    """Ids from `base` on; `kind` and `length` say what the token is made of."""

    base: int
    space: bool
    kind: str
    alphabet: str
    length: int
    endings: tuple[str, ...]


def _power(base: int, exponent: int) -> int:
    """`base ** exponent`, which is an int here, for the type checker."""
    result: int = base**exponent
    return result


def _lay_out() -> tuple[list[_Block], int]:
    """All blocks in order, and the first id behind the last."""
    plan: tuple[tuple[str, str, Iterable[int], bool, tuple[str, ...]], ...] = (
        ("run", "", (0,), False, _RUNS),
        ("digit", string.digits, (2, 3), False, ("",)),
        ("mark", _MARKS, range(1, 5), True, ("",)),
        ("latin", _LATIN, (1, 2), True, ("",)),
        ("lower", _LOWER, range(1, 7), True, ("",)),
        ("capitalised", _LOWER, range(1, 6), True, ("",)),
        ("upper", string.ascii_uppercase, range(2, 6), True, ("",)),
        ("lower ending", _LOWER, (STEM,), True, tuple(LOWER_ENDINGS)),
        ("capitalised ending", _LOWER, (STEM,), True, tuple(CAPITALISED_ENDINGS)),
    )
    blocks: list[_Block] = []
    base = CODE_POINTS
    for kind, alphabet, lengths, spaced, endings in plan:
        for space in (False, True)[: 1 + spaced]:
            for length in lengths:
                blocks.append(_Block(base, space, kind, alphabet, length, endings))
                base += _power(len(alphabet), length) * len(endings)
    return blocks, base


_BLOCKS, VOCAB_SIZE = _lay_out()
_BASES = [block.base for block in _BLOCKS]
_BASE_OF = {(block.kind, block.space, block.length): block.base for block in _BLOCKS}


def pack(token: str) -> int:
    """The id of a token that the tokenizer's pattern made."""
    if len(token) == 1:
        return ord(token)
    if token in _RUN_NUMBERS:
        return CODE_POINTS + _RUN_NUMBERS[token]
    space = token[0] == " "
    body = token[1:] if space else token
    length = len(body)
    last = body[-1]
    if "a" <= last <= "z":
        capitalised = body[0] < "a"
        if length <= 6 - capitalised:
            base = _BASE_OF["capitalised" if capitalised else "lower", space, length]
            return base + int(body.translate(_DIGITS_OF_26), 26)
        base = _BASE_OF["capitalised ending" if capitalised else "lower ending", space, STEM]
        ending = (CAPITALISED_ENDINGS if capitalised else LOWER_ENDINGS)[body[STEM:]]
        return base + ending * _STEMS + int(body[:STEM].translate(_DIGITS_OF_26), 26)
    if "A" <= last <= "Z":
        # A single capital goes with the capitalised words: "upper" begins at two.
        kind = "upper" if length > 1 else "capitalised"
        return _BASE_OF[kind, space, length] + int(body.translate(_DIGITS_OF_26), 26)
    if "0" <= last <= "9":
        return _BASE_OF["digit", space, length] + int(body)
    number = 0
    if last < "\x80":
        for mark in body:
            number = number * len(_MARKS) + _MARK_NUMBERS[mark]
        return _BASE_OF["mark", space, length] + number
    for letter in body:
        number = number * len(_LATIN) + ord(letter) - 0x80
    return _BASE_OF["latin", space, length] + number


def unpack(token_id: int) -> str:
    """The text of a token id.

    Ids that `pack` never gives (two ways to write one text) have a text as well.

    Raises:
        ValueError: The id is negative or beyond the last block.
    """
    if 0 <= token_id < CODE_POINTS:
        return chr(token_id)
    if not CODE_POINTS <= token_id < VOCAB_SIZE:
        raise ValueError(f"token id {token_id} is outside the vocabulary (0 to {VOCAB_SIZE - 1})")
    block = _BLOCKS[bisect_right(_BASES, token_id) - 1]
    radix = len(block.alphabet)
    ending, number = divmod(token_id - block.base, _power(radix, block.length))
    letters = []
    for _ in range(block.length):
        number, letter = divmod(number, radix)
        letters.append(block.alphabet[letter])
    body = "".join(reversed(letters))
    if block.kind.startswith("capitalised"):
        body = body.capitalize()
    return " " * block.space + body + block.endings[ending]
