"""Logprobs as the chat and the completions APIs write them.

Source: https://platform.openai.com/docs/api-reference/chat/object (`logprobs`),
https://platform.openai.com/docs/api-reference/completions/object; vLLM's `prompt_logprobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import msgspec

from mockllm.dialects.dialect import Context
from mockllm.dialects.jsontext import plain
from mockllm.generation.logprobs import Scores
from mockllm.generation.plan import Choice, PromptTokens

T = TypeVar("T")

_AT_ONCE = 16
"""Tokens whose logprobs are written in one go: about 1 ms, with 20 alternatives each."""

_FEW = 64
"""So many tokens are not worth a preparation."""


def chat_logprobs(
    scores: Scores, pieces: Iterable[bytes], first: int, count: int, ids: Sequence[int] | None = None
) -> bytes:
    """The elements of a choice's `logprobs.content`, joined by commas.

    Args:
        scores: Of the text.
        pieces: Tokens that follow each other; those without text are left out.
        first: Position of the first of them.
        count: How many of the likeliest tokens are listed.
        ids: The ids of the tokens, where those stand in place of their texts.
    """
    return b",".join(
        [
            _chat_entry(scores, piece, first + k, count, None if ids is None else ids[k])
            for k, piece in enumerate(pieces)
            if piece
        ]
    )


def _once(scores: Scores, style: str, position: int, write: Callable[[], T]) -> T:
    """What `write` gives; where positions are kept, it is asked once for each."""
    written = scores.written
    if written is None:
        return write()
    found: T | None = written.get((style, position))
    if found is None:
        found = written[style, position] = write()
    return found


def prepared(context: Context, write: Callable[[Choice, int, int], object]) -> Iterator[None] | None:
    """Let the logprobs of a whole reply be written bit by bit; None where it has few or none.

    Args:
        context: The answer.
        write: `write(choice, first, upto)` writes those of tokens first … upto-1 of a choice's prompt and text.
    """
    choices = context.plan.choices
    kept = _scores(context)
    longest = max([max(c.tokens, len(c.prompt.ids) if c.prompt is not None else 0) for c in choices])
    if not kept or longest * len(choices) <= _FEW:
        return None

    def bits() -> Iterator[None]:
        for scores in kept:
            scores.written = {}
        for choice in choices:
            own = max(choice.tokens, len(choice.prompt.ids) if choice.prompt is not None else 0)
            for first in range(0, own, _AT_ONCE):
                write(choice, first, first + _AT_ONCE)
                yield

    return bits()


def forget(context: Context) -> None:
    """The reply is written."""
    for scores in _scores(context):
        scores.written = None


def _scores(context: Context) -> list[Scores]:
    """Those of all texts, prompts included."""
    found = [choice.scores for choice in context.plan.choices]
    found += [choice.prompt.scores for choice in context.plan.choices if choice.prompt is not None]
    return [scores for scores in found if scores is not None]


def _chat_entry(scores: Scores, piece: bytes, position: int, count: int, identity: int | None) -> bytes:
    return _once(scores, "chat", position, lambda: _new_chat_entry(scores, piece, position, count, identity))


def _new_chat_entry(scores: Scores, piece: bytes, position: int, count: int, identity: int | None) -> bytes:
    score = scores.score(piece, position, count)
    vocabulary = scores.vocabulary
    listed = [
        (
            _token(piece, identity)
            if number is None
            else _token(vocabulary.pieces[number], None if identity is None else vocabulary.ids[number])
        )
        % (logprob, b"")
        for number, logprob in (score.top if count else ())
    ]
    return _token(piece, identity) % (score.logprob, b',"top_logprobs":[%b]' % b",".join(listed))


@lru_cache(maxsize=4096)
def _token(piece: bytes, identity: int | None) -> bytes:
    """A token's object, to be filled with its logprob and with what else it has."""
    octets = b",".join([b"%d" % octet for octet in plain(piece).encode()])
    name = piece.replace(b"%", b"%%") if identity is None else b"token_id:%d" % identity
    return b'{"token":"%b","logprob":%%.7g,"bytes":[%b]%%b}' % (name, octets)


Run = tuple[Scores, Sequence[bytes], int, Sequence[int] | None]
"""Tokens of one text: its scores, their pieces, the first one's position, and their ids where those are shown."""


class CompletionLogprobs:
    """Writes the `logprobs` of one completions choice, piece after piece.

    Args:
        count: How many of the likeliest tokens are listed; of 0 just the token itself, as on vLLM.
    """

    __slots__ = ("_count", "_offset")

    def __init__(self, count: int) -> None:
        self._count = count
        self._offset = 0

    def write(self, runs: Sequence[Run], *, opening: bool = False) -> bytes:
        """The object for tokens that follow those already written.

        Args:
            runs: The tokens.
            opening: The first token begins the prompt, so that there is nothing it could follow from.
        """
        offsets: list[bytes] = []
        logprobs: list[bytes] = []
        tokens: list[bytes] = []
        tops: list[bytes] = []
        for scores, pieces, first, ids in runs:
            vocabulary = scores.vocabulary
            names = vocabulary.pieces if ids is None else [b"token_id:%d" % identity for identity in vocabulary.ids]
            for position, piece in enumerate(pieces, first):
                if not piece:
                    continue
                name = piece if ids is None else b"token_id:%d" % ids[position - first]
                offsets.append(b"%d" % self._offset)
                self._offset += len(plain(piece))
                tokens.append(b'"%b"' % name)
                if opening and len(tokens) == 1:
                    logprobs.append(b"null")
                    tops.append(b"null")
                    continue
                logprob, top = _once(
                    scores,
                    "completion",
                    position,
                    partial(_completion_entry, scores, piece, position, self._count, name, names),
                )
                logprobs.append(logprob)
                tops.append(top)
        return b'{"text_offset":[%b],"token_logprobs":[%b],"tokens":[%b],"top_logprobs":[%b]}' % (
            b",".join(offsets),
            b",".join(logprobs),
            b",".join(tokens),
            b",".join(tops),
        )


def _completion_entry(
    scores: Scores, piece: bytes, position: int, count: int, name: bytes, names: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """A token's logprob, and the object of its alternatives."""
    score = scores.score(piece, position, count)
    entries = [b'"%b":%.7g' % (name if number is None else names[number], logprob) for number, logprob in score.top]
    return b"%.7g" % score.logprob, b"{%b}" % b",".join(entries)


def prompt_logprobs(prompt: PromptTokens, count: int, first: int = 0, upto: int | None = None) -> bytes:
    """vLLM's `prompt_logprobs`: for each token of the prompt a table by token id, null for the first.

    Args:
        prompt: The prompt.
        count: How many of the likeliest tokens are listed.
        first, upto: Only of these tokens.
    """
    scores = prompt.scores
    assert scores is not None
    tables = []
    for position, (piece, identity) in enumerate(
        zip(prompt.pieces[first:upto], prompt.ids[first:upto], strict=True), first
    ):
        write = partial(_prompt_entry, scores, piece, position, count, identity)
        tables.append(_once(scores, "prompt", position, write) if position else b"null")
    return b"[%b]" % b",".join(tables)


def _prompt_entry(scores: Scores, piece: bytes, position: int, count: int, identity: int) -> bytes:
    names, ids = scores.vocabulary.pieces, scores.vocabulary.ids
    score = scores.score(piece, position, count)
    own = {"logprob": score.logprob, "rank": score.rank, "decoded_token": plain(piece)}
    table: dict[str, dict[str, object]] = {str(identity): own}
    for rank, (number, logprob) in enumerate(score.top, 1):
        if number is not None:
            entry = {"logprob": logprob, "rank": rank, "decoded_token": plain(names[number])}
            table.setdefault(str(ids[number]), entry)
    return msgspec.json.encode(table)
