"""Where a text ends early: at a stop sequence or a stop token.

As on vLLM, a reply ends with the token that completes the first stop sequence: that token is
counted, and so are those whose text is cut away, as they had been generated.

Source: vLLM's detokenizer (`check_stop_strings`, `min_tokens`); OpenAI's `stop`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from mockllm.generation.pieces import piece, texts_of


class Stopped(Struct, frozen=True, gc=False):
    """A text that was stopped: its pieces (`b""` for what was cut away) and what stopped it."""

    pieces: list[bytes]
    reason: str | int


def stop_text(pieces: Sequence[bytes], stops: Sequence[str], *, include: bool, after_tokens: int) -> Stopped | None:
    """Cut a text at the first of several sequences.

    Args:
        pieces: The text's tokens.
        stops: The sequences; where two are completed by the same token, the one that begins first counts.
        include: The text keeps the sequence.
        after_tokens: So many tokens at the beginning cannot be part of one.

    Returns:
        None if no sequence occurs.
    """
    texts = texts_of(pieces)
    ends = list(accumulate(map(len, texts)))
    text = "".join(texts)
    begin = ends[after_tokens - 1] if 0 < after_tokens <= len(ends) else 0
    if after_tokens > len(ends):
        return None
    found = [(text.find(stop, begin), stop) for stop in stops if stop]
    hits = [(bisect_left(ends, at + len(stop)), at, stop) for at, stop in found if at >= 0]
    if not hits:
        return None
    last, at, stop = min(hits)
    return Stopped(_cut(pieces, texts, at + len(stop) if include else at, last + 1), stop)


def stop_token(
    pieces: Sequence[bytes], ids: Sequence[int], stops: Sequence[int], *, include: bool, after_tokens: int
) -> Stopped | None:
    """Cut a text at the first token that has one of some ids; `ids` are those of its tokens."""
    for number in range(after_tokens, len(ids)):
        if ids[number] in stops:
            kept = list(pieces[: number + 1])
            if not include:
                kept[number] = b""
            return Stopped(kept, ids[number])
    return None


def _cut(pieces: Sequence[bytes], texts: Sequence[str], length: int, tokens: int) -> list[bytes]:
    """The first tokens, with only the first `length` characters of their text."""
    kept: list[bytes] = []
    for whole, text in zip(pieces[:tokens], texts, strict=False):
        kept.append(whole if len(text) <= length else piece(text[:length]))
        length = max(0, length - len(text))
    return kept
