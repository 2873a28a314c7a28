"""What the streams of chat and completions have in common.

A chunk of one token is a prefix, its piece and a suffix; the prefix and the suffix are made once
a segment. With logprobs, or with the usage on every chunk, the suffix differs from token to token.

Source: https://platform.openai.com/docs/api-reference/chat-streaming; vLLM's `continuous_usage_stats`,
`stop_reason` and `stream_interval`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mockllm.dialects.dialect import Around, Context
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.usage import plan_usage, usage_json
from mockllm.generation.plan import Choice, Segment

DONE = b"data: [DONE]\n\n"
FINGERPRINT = "fp_mockllm"


class ChunkWriter:
    """Base of the writers of both dialects; see `Writer`.

    Args:
        context: The answer.
        object: The chunks' `object`.
        empty: What stands for a choice's text in a chunk without any.
        more: Further fields of each chunk, each with a comma after it.
    """

    def __init__(self, context: Context, object: str, empty: bytes, more: bytes = b"") -> None:
        request = context.request
        self._head = (
            b'data: {"id":"%b","object":"%b","created":%d,"model":%b,"system_fingerprint":"%b",%b"choices":['
        ) % (context.id.encode(), object.encode(), context.created, quoted(request.model), FINGERPRINT.encode(), more)
        self._context = context
        self._empty = empty
        self._continuous = request.continuous_usage
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._ids = request.token_ids
        self._made: dict[int, tuple[Segment, bytes, bytes]] = {}  # a choice's segment, its prefix and its suffix
        self._interval = request.stream_interval
        self._held: dict[int, int] = {}  # of a choice's segment, the first token that is not out yet
        # Whether what stands behind a piece is the same for all of them.
        self._plain = not (
            request.logprobs is not None or request.continuous_usage or request.token_ids or self._interval > 1
        )

    # ---- what a dialect says -----------------------------------------------------------------

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        """What stands before and after a piece in the choice's object."""
        raise NotImplementedError

    def _logprobs(self, choice: Choice, segment: Segment, first: int, upto: int) -> bytes:
        """The `logprobs` of the segment's tokens first … upto-1; `null` where it has none."""
        raise NotImplementedError

    # ---- chunks ------------------------------------------------------------------------------

    def chunk(
        self,
        index: int,
        text: bytes,
        tokens: int,
        logprobs: bytes = b"null",
        finish: bytes = b"null",
        ids: Sequence[int] | None = None,
    ) -> bytes:
        """One chunk.

        Args:
            index: The choice's.
            text: Its delta or text, with the key.
            tokens: How many tokens of the choice are out with it.
            logprobs: As JSON.
            finish: The finish reason as JSON, and what follows it.
            ids: Token ids that belong to it, where they are shown.
        """
        return b'%b{"index":%d,%b,"logprobs":%b,"finish_reason":%b%b}%b' % (
            self._head,
            index,
            text,
            logprobs,
            finish,
            ids_json("token_ids", ids) if self._ids else b"",
            self._close_chunk(tokens),
        )

    def _close_chunk(self, tokens: int) -> bytes:
        if not self._continuous:
            return self._tail
        return b'],"usage":' + usage_json(self._context.plan.prompt_tokens, tokens) + b"}\n\n"

    # ---- the walk ----------------------------------------------------------------------------

    def around(self, choice: Choice, segment: Segment) -> Around | None:
        """What stands around each piece of a segment; see `StepStream`."""
        return self._frame(choice, segment) if self._plain else None

    def _frame(self, choice: Choice, segment: Segment) -> Around:
        """What stands around a piece, up to the end of the chunk where that is always the same."""
        opening, closing = self._around(choice, segment)
        if self._plain:
            closing += b',"logprobs":null,"finish_reason":null}' + self._tail
        return b'%b{"index":%d,%b' % (self._head, choice.index, opening), closing

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        made = self._made.get(choice.index)
        if made is None or made[0] is not segment:
            made = self._made[choice.index] = (segment, *self._frame(choice, segment))
        _, prefix, closing = made
        pieces = segment.pieces
        if upto - first != len(pieces):
            pieces = pieces[first:upto]
        if self._plain:
            return [prefix + piece + closing for piece in pieces if piece]
        ids = segment.ids if self._ids else None
        return [
            b'%b%b%b,"logprobs":%b,"finish_reason":null%b}%b'
            % (
                prefix,
                text,
                closing,
                self._logprobs(choice, segment, start, stop),
                b"" if ids is None else ids_json("token_ids", ids[start:stop]),
                self._close_chunk(out),
            )
            for start, stop, text, out in self._stretches(choice, segment, first, upto, before)
            if text or ids is not None
        ]

    def _stretches(
        self, choice: Choice, segment: Segment, first: int, upto: int, before: int
    ) -> Iterable[tuple[int, int, bytes, int]]:
        """The chunks that tokens first … upto-1 complete.

        The choice's first token is a chunk of its own, then follow `stream_interval` tokens each; what is left at
        the end of a segment waits no longer.

        Returns:
            The first token of each and the one behind its last, their text, and how many of the choice are out then.
        """
        if self._interval == 1:
            offset = before - first + 1
            return [(number, number + 1, segment.pieces[number], number + offset) for number in range(first, upto)]
        return self._gathered(choice, segment, first, upto, before)

    def _gathered(
        self, choice: Choice, segment: Segment, first: int, upto: int, before: int
    ) -> Iterator[tuple[int, int, bytes, int]]:
        pieces, interval = segment.pieces, self._interval
        held = self._held.get(choice.index, 0) if first else 0
        for number in range(first, upto):
            earlier = before + number - first
            if earlier % interval == 0 or number + 1 == len(pieces):
                yield held, number + 1, b"".join(pieces[held : number + 1]), earlier + 1
                held = number + 1
        self._held[choice.index] = held

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def close(self, choice: Choice) -> list[bytes]:
        return [self.chunk(choice.index, self._empty, choice.tokens, finish=finish_json(choice))]

    def finish(self) -> list[bytes]:
        if not self._context.request.include_usage:
            return [DONE]
        return [self._head + b'],"usage":' + plan_usage(self._context.plan) + b"}\n\n", DONE]


def ids_json(key: str, ids: Sequence[int] | None) -> bytes:
    """A member with token ids, the comma before it included; null where there are none to tell of."""
    return b',"%b":%b' % (key.encode(), b"null" if ids is None else b"[%b]" % b",".join([b"%d" % k for k in ids]))


def choice_ids(choice: Choice) -> list[int]:
    """The ids of all tokens of a choice but those of calls' names."""
    return [identity for segment in choice.segments for identity in segment.ids or ()]


def finish_json(choice: Choice) -> bytes:
    """A choice's finish reason as JSON, followed by vLLM's `stop_reason`."""
    reason = choice.stop_reason
    stop = b"null" if reason is None else quoted(reason) if isinstance(reason, str) else b"%d" % reason
    return b'"%b","stop_reason":%b' % (choice.finish_reason.encode(), stop)
