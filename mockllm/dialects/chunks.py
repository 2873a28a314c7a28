"""What the streams of chat and completions have in common.

A chunk of one token is a prefix, its piece and a suffix; the prefix and the suffix are made once
a segment. With logprobs, or with the usage on every chunk, the suffix differs from token to token.

Source: https://platform.openai.com/docs/api-reference/chat-streaming; vLLM's `continuous_usage_stats`
and `stop_reason`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.dialects.dialect import Context
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
        # Whether what stands behind a piece is the same for all of them.
        self._plain = request.logprobs is None and not request.continuous_usage and not request.token_ids

    # ---- what a dialect says -----------------------------------------------------------------

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        """What stands before and after a piece in the choice's object."""
        raise NotImplementedError

    def _logprobs(self, choice: Choice, segment: Segment, piece: bytes, position: int) -> bytes:
        """The `logprobs` of one token; `null` where its segment has none."""
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

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        made = self._made.get(choice.index)
        if made is None or made[0] is not segment:
            opening, closing = self._around(choice, segment)
            prefix = b'%b{"index":%d,%b' % (self._head, choice.index, opening)
            if self._plain:
                closing += b',"logprobs":null,"finish_reason":null}' + self._tail
            made = self._made[choice.index] = (segment, prefix, closing)
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
                piece,
                closing,
                self._logprobs(choice, segment, piece, first + number),
                b"" if ids is None else ids_json("token_ids", ids[first + number : first + number + 1]),
                self._close_chunk(before + number + 1),
            )
            for number, piece in enumerate(pieces)
            if piece or ids is not None
        ]

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
