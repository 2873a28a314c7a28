"""Log probabilities that a model could have given: of each token, and of what else might have stood there.

They are a function of (key, position, token): the same whether a reply is streamed or whole, and
however many alternatives are asked for. The token has the probability p = u^0.6, u uniform, which
makes its logprob exponential with a mean of -0.6; what is left, 1 - p, is shared out among other
pieces of the vocabulary, 45 % of the rest to each. So no position's probabilities exceed 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import exp, log
from typing import Any

from msgspec import Struct

from mockllm.generation.keyed import derive
from mockllm.generation.pieces import piece

_EXPONENT = 0.6
_SHARE = 0.45
_LOWEST = -9999.0
"""What the API says of a token that is too unlikely to have a value.

Source: https://platform.openai.com/docs/api-reference/chat/object (`logprob`)."""
_FEWEST = 64
_FILLERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Vocabulary:
    """The tokens that alternatives are drawn from: a power of two of them, all different.

    Args:
        texts: Gives tokens' texts, when they are first needed; where there are few, single characters join them.
        encode: Gives a text's token ids.
    """

    def __init__(self, texts: Callable[[], Sequence[str]], encode: Callable[[str], list[int]]) -> None:
        self._all_texts = texts
        self._encode = encode

    @cached_property
    def _texts(self) -> list[str]:
        texts = list(dict.fromkeys(self._all_texts()))
        if len(texts) < _FEWEST:
            texts = list(dict.fromkeys([*texts, *_FILLERS]))
        size = 1 << (len(texts).bit_length() - 1)
        # One out of every few, so that all kinds of words are among them.
        return texts[:: len(texts) // size][:size]

    @cached_property
    def pieces(self) -> list[bytes]:
        """The tokens' texts."""
        return list(map(piece, self._texts))

    @cached_property
    def ids(self) -> list[int]:
        """An id for each of the pieces; that of its first token, where it is no single one."""
        return [self._encode(text)[0] for text in self._texts]


class Score(Struct, frozen=True, gc=False):
    """What a model thought of one token.

    Attributes:
        logprob: Its own, ≤ 0.
        rank: Its place among all tokens by likelihood, from 1.
        top: The most likely tokens, as number in the vocabulary (None for the token itself) and
            logprob, best first; the token is always among them.
    """

    logprob: float
    rank: int
    top: tuple[tuple[int | None, float], ...]


class Scores:
    """The logprobs of one text.

    Args:
        key: 16 bytes, the text's.
        vocabulary: Where alternatives come from.

    Attributes:
        written: What dialects wrote about each position, where that is to be used again; None for not.
    """

    __slots__ = ("_key", "vocabulary", "written")

    def __init__(self, key: bytes, vocabulary: Vocabulary) -> None:
        self.written: dict[tuple[str, int], Any] | None = None
        self._key = derive(key, b"logprobs")
        self.vocabulary = vocabulary

    def score(self, piece: bytes, position: int, count: int) -> Score:
        """The score of one token.

        Args:
            piece: Its text.
            position: Its number in the text, from 0.
            count: How many tokens `Score.top` is to have; at least 1, the token itself.
        """
        count = max(1, count)
        octets = derive(self._key, b"%d" % position)
        own = _EXPONENT * log((int.from_bytes(octets[:4]) + 0.5) / 4294967296)
        pieces = self.vocabulary.pieces
        size = len(pieces)
        number, stride = int.from_bytes(octets[4:8]), octets[8] | 1  # odd: no piece comes twice
        top: list[tuple[int | None, float]] = [(None, own)]
        rest = 1.0 - exp(own)
        rank = 1
        while len(top) < size:
            number = (number + stride) % size
            if pieces[number] == piece:
                number = (number + stride) % size
            share = rest * _SHARE
            rest -= share
            logprob = log(share) if share > 0.0 else _LOWEST
            if logprob > own:
                rank += 1
            elif len(top) >= count:
                break
            top.append((number, logprob))
        top.sort(key=_by_logprob)
        # A token that is less likely than all that were asked for takes the last one's place.
        top = top[:count] if rank <= count else [*top[: count - 1], (None, own)]
        return Score(own, rank, tuple(top))


def _by_logprob(entry: tuple[int | None, float]) -> float:
    return -entry[1]
