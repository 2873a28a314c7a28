"""The events of a Responses stream.

Each token is a prefix, its number, its piece and a suffix: one template a segment. All other
events are made from the structs of `responses_events`.

Source: https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_128
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from mockllm.dialects.dialect import Context
from mockllm.dialects.responses.assembly import (
    Draft,
    closed,
    drafts,
    ended,
    logprobs_of,
    opened,
    opening,
    part,
    text_of,
)
from mockllm.dialects.responses.request import ResponsesRequest
from mockllm.dialects.responses_events import (
    ContentPartAdded,
    ContentPartDone,
    CustomToolCallInputDone,
    ErrorEvent,
    FunctionCallArgumentsDone,
    Item,
    Logprob,
    OutputItemAdded,
    OutputItemDone,
    OutputText,
    OutputTextDelta,
    OutputTextDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDone,
    ReasoningText,
    ReasoningTextDone,
    Refusal,
    RefusalDone,
    ResponseCompleted,
    ResponseCreated,
    ResponseError,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
    StreamEvent,
    SummaryText,
    sse_frame,
)
from mockllm.generation.keyed import derive
from mockllm.generation.plan import Choice, Segment

_PAD_BYTES = 16
"""Deltas are padded to a multiple of this, so that their length tells little about the token's."""


class ResponsesWriter:
    """Writes a plan as Responses events; see `Writer`.

    Args:
        context: The answer.
        opened_at_head: `created` and `in_progress` leave with the head: the caller sends `opening`.
        padded: Deltas carry `obfuscation`.
    """

    __slots__ = (
        "_asked",
        "_base",
        "_context",
        "_delta",
        "_drafts",
        "_item",
        "_logprobs",
        "_opened_at_head",
        "_output",
        "_pad",
        "_part",
        "_position",
        "_scorer",
        "_seq",
    )

    def __init__(self, context: Context, opened_at_head: bool, padded: bool) -> None:
        choice = context.plan.choices[0]
        asked: ResponsesRequest = context.body.asked
        self._context = context
        self._asked = asked
        self._opened_at_head = opened_at_head
        self._base = opening(context)
        self._drafts = drafts(context.id, choice)
        self._item = 0
        self._part = 0
        self._seq = 0
        self._delta = b""
        self._output: list[Item] = []
        self._scorer = logprobs_of(context)
        self._logprobs: list[list[Logprob]] = []  # of each part of the open message
        self._position = 0  # tokens of text before the open part
        self._pad = _Padding(derive(choice.key, b"obfuscation")) if padded else None

    # ---- the response ------------------------------------------------------------------------

    def opening(self) -> list[bytes]:
        """The events before the first item."""
        base = self._base
        if not self._asked.background:
            return [self._event(ResponseCreated, base), self._event(ResponseInProgress, base)]
        queued = replace(base, status="queued")
        return [
            self._event(ResponseCreated, queued),
            self._event(ResponseQueued, queued),
            self._event(ResponseInProgress, base),
        ]

    def open(self, choice: Choice) -> list[bytes]:
        return [] if self._opened_at_head else self.opening()

    def close(self, choice: Choice) -> list[bytes]:
        if self._item == len(self._drafts):
            return []
        withheld = self._drafts[self._item].segments[0]  # what stands for a reply of which nothing is left
        events = self.begin(choice, withheld)
        events += self.tokens(choice, withheld, 0, len(withheld.pieces), 0)
        return events + self.end(choice, withheld)

    def finish(self) -> list[bytes]:
        final = ended(self._base, self._context, self._output)
        return [self._event(ResponseCompleted if final.status == "completed" else ResponseIncomplete, final)]

    def failed(self, message: str, code: str = "server_error") -> list[bytes]:
        """The event that ends the stream in place of what would have come.

        Args:
            message: For a person.
            code: One of the codes that the SDK's `ResponseError` knows.
        """
        failed = replace(self._base, status="failed", error=ResponseError(code, message), output=self._output)
        return [self._event(ResponseFailed, failed)]

    def error(self, message: str, code: str | None = None, param: str | None = None) -> list[bytes]:
        """The event for a fault of the stream itself, which ends it."""
        return [self._event(ErrorEvent, message, code, param)]

    # ---- items -------------------------------------------------------------------------------

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        if not segment.steps:
            return []
        draft = self._drafts[self._item]
        self._delta = self._template(segment)
        self._logprobs.append([])
        events = [] if self._part else [self._event(OutputItemAdded, draft.output_index, opened(draft))]
        if segment.kind == "text":
            events.append(self._placed(ContentPartAdded, draft, OutputText()))
        elif segment.kind == "refusal":
            events.append(self._placed(ContentPartAdded, draft, Refusal()))
        elif segment.kind == "reasoning" and self._asked.summary is not None:
            events.append(self._placed(ReasoningSummaryPartAdded, draft, SummaryText()))
        elif segment.kind == "reasoning":
            events.append(self._placed(ContentPartAdded, draft, ReasoningText()))
        return events

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        pieces = segment.pieces
        if upto - first != len(pieces):
            pieces = pieces[first:upto]
        template = self._delta
        seq = self._seq
        if self._scorer is not None and segment.kind == "text":
            return self._scored(self._scorer.deltas(pieces, self._position + first), pieces)
        if self._pad is not None:
            events = self._pad.events(template, seq, pieces)
        elif b"" in pieces:
            events = [template % pair for pair in enumerate(filter(None, pieces), seq)]
        else:
            events = [template % pair for pair in enumerate(pieces, seq)]
        self._seq = seq + len(events)
        return events

    def _scored(self, logprobs: list[Logprob], pieces: Sequence[bytes]) -> list[bytes]:
        """Events of tokens that come with their log probabilities."""
        self._logprobs[-1] += logprobs
        draft = self._drafts[self._item]
        events: list[bytes] = []
        for entry, piece in zip(logprobs, filter(None, pieces), strict=True):
            padding = UNSET if self._pad is None else self._pad.next(piece).decode()
            events.append(self._placed(OutputTextDelta, draft, entry.token, [entry], padding))
        return events

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        if not segment.steps:
            return []
        draft = self._drafts[self._item]
        events = self._part_done(draft, segment)
        self._part += 1
        self._position += len(segment.pieces) if segment.kind == "text" else 0
        if self._part == len(draft.segments):
            item = closed(draft, self._asked, choice, self._logprobs)
            self._output.append(item)
            events.append(self._event(OutputItemDone, draft.output_index, item))
            self._item += 1
            self._part = 0
            self._logprobs = []
        return events

    def _part_done(self, draft: Draft, segment: Segment) -> list[bytes]:
        text = text_of(segment)
        call = segment.call
        if call is not None and call.kind == "custom":
            return [self._event(CustomToolCallInputDone, draft.id, draft.output_index, text)]
        if call is not None:
            return [self._event(FunctionCallArgumentsDone, draft.id, draft.output_index, call.name, text)]
        if segment.kind == "text":
            logprobs = self._logprobs[-1]
            return [
                self._placed(OutputTextDone, draft, text, logprobs),
                self._placed(ContentPartDone, draft, part(segment, logprobs)),
            ]
        if segment.kind == "refusal":
            return [self._placed(RefusalDone, draft, text), self._placed(ContentPartDone, draft, Refusal(text))]
        if self._asked.summary is not None:
            cut = "incomplete" if draft.cut else UNSET
            return [
                self._placed(ReasoningSummaryTextDone, draft, text),
                self._placed(ReasoningSummaryPartDone, draft, SummaryText(text), cut),
            ]
        return [
            self._placed(ReasoningTextDone, draft, text),
            self._placed(ContentPartDone, draft, ReasoningText(text)),
        ]

    def _template(self, segment: Segment) -> bytes:
        """An event of one token: `template % (sequence number, piece)`."""
        draft = self._drafts[self._item]
        name, place, closing = _delta_shape(segment, self._asked.summary is not None)
        index = b',"%b":%d' % (place, self._part) if place else b""
        return (
            b'event: %b\ndata: {"type":"%b","sequence_number":%%d,'
            b'"item_id":"%b","output_index":%d%b,"delta":"%%b"%b%b}\n\n'
        ) % (
            name,
            name,
            draft.id.encode(),
            draft.output_index,
            index,
            closing,
            b"" if self._pad is None else b',"obfuscation":"%b"',
        )

    def _placed(self, event_type: type[StreamEvent], draft: Draft, *fields: Any) -> bytes:
        return self._event(event_type, draft.id, draft.output_index, self._part, *fields)

    def _event(self, event_type: type[StreamEvent], *fields: Any) -> bytes:
        frame = sse_frame(event_type(self._seq, *fields))
        self._seq += 1
        return frame


def _delta_shape(segment: Segment, summarised: bool) -> tuple[bytes, bytes, bytes]:
    """A delta's event name, the key of its part's index, and what follows the piece."""
    if segment.kind == "text":
        return b"response.output_text.delta", b"content_index", b',"logprobs":[]'
    if segment.kind == "refusal":
        return b"response.refusal.delta", b"content_index", b""
    if segment.kind == "reasoning":
        if summarised:
            return b"response.reasoning_summary_text.delta", b"summary_index", b""
        return b"response.reasoning_text.delta", b"content_index", b""
    if segment.call is not None and segment.call.kind == "custom":
        return b"response.custom_tool_call_input.delta", b"", b""
    return b"response.function_call_arguments.delta", b"", b""


class _Padding:
    """Random characters behind each delta, from a key: `obfuscation`."""

    __slots__ = ("_at", "_key", "_text")

    def __init__(self, key: bytes) -> None:
        self._text = shake_128(key).hexdigest(2048).encode()
        self._at = 0

    def events(self, template: bytes, seq: int, pieces: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for piece in pieces:
            if piece:
                events.append(template % (seq + len(events), piece, self.next(piece)))
        return events

    def next(self, piece: bytes) -> bytes:
        """What stands beside a piece."""
        size = _PAD_BYTES - len(piece) % _PAD_BYTES
        if self._at + size > len(self._text):
            self._at = 0
        self._at += size
        return self._text[self._at - size : self._at]
