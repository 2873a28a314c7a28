"""Items of the output while they are open: each writes its own events and knows its own text.

Text is kept in pieces and joined once, at the `.done`: work is linear in the stream's length.
An open item is told what comes and closed once; the profile decides when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from mockllm.dialects.convert.chunks import ChatTokenLogprob
from mockllm.dialects.convert.mapping import delta_logprobs, part_logprobs
from mockllm.dialects.responses_events import (
    ContentPartAdded,
    ContentPartDone,
    CustomToolCallInputDelta,
    CustomToolCallInputDone,
    CustomToolCallItem,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    FunctionCallItem,
    Item,
    ItemStatus,
    Logprob,
    MessageItem,
    OutputItemAdded,
    OutputItemDone,
    OutputText,
    OutputTextAnnotationAdded,
    OutputTextDelta,
    OutputTextDone,
    ReasoningItem,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    ReasoningText,
    ReasoningTextDelta,
    ReasoningTextDone,
    Refusal,
    RefusalDelta,
    RefusalDone,
    StreamEvent,
    SummaryText,
)

EndStatus = Literal["completed", "incomplete"]


class Outbox:
    """Events that wait to be handed out, numbered as they come."""

    __slots__ = ("_events", "sequence_number")

    def __init__(self) -> None:
        self._events: list[StreamEvent] = []
        self.sequence_number = 0

    def put(self, event_type: type[StreamEvent], *fields: Any) -> None:
        """Adds an event: its fields after the sequence number, in their order."""
        self._events.append(event_type(self.sequence_number, *fields))
        self.sequence_number += 1

    def take(self) -> list[StreamEvent]:
        """All that were put since the last time."""
        events, self._events = self._events, []
        return events


class OpenMessage:
    """A message: text and refusal parts, one open at a time."""

    __slots__ = ("_annotations", "_deltas", "_kind", "_logprobs", "_out", "_parts", "_pieces", "id", "output_index")

    def __init__(self, out: Outbox, item_id: str, output_index: int) -> None:
        self.id = item_id
        self.output_index = output_index
        self._out = out
        self._parts: list[OutputText | Refusal] = []
        self._kind: Literal["text", "refusal"] | None = None
        self._pieces: list[str] = []
        self._deltas: list[Logprob] = []
        self._logprobs: list[Logprob] = []
        self._annotations: list[dict[str, Any]] = []
        out.put(OutputItemAdded, output_index, MessageItem(item_id, "in_progress"))

    def text(self, delta: str, tokens: Sequence[ChatTokenLogprob]) -> None:
        """A piece of text, and the log probabilities of its tokens."""
        if self._kind != "text":
            self._open_part("text", OutputText())
        self._pieces.append(delta)
        logprobs: list[Logprob] | tuple[()] = ()
        if tokens:
            logprobs = delta_logprobs(tokens)
            self._deltas += logprobs
            self._logprobs += part_logprobs(tokens)
        self._out.put(OutputTextDelta, self.id, self.output_index, len(self._parts), delta, logprobs)

    def annotate(self, annotation: dict[str, Any]) -> None:
        """A citation; it belongs to the text part that is open, and is left out where none is."""
        if self._kind == "text":
            place = self.id, self.output_index, len(self._parts), len(self._annotations)
            self._annotations.append(annotation)
            self._out.put(OutputTextAnnotationAdded, *place, annotation)

    def refusal(self, delta: str) -> None:
        """A piece of a refusal."""
        if self._kind != "refusal":
            self._open_part("refusal", Refusal())
        self._pieces.append(delta)
        self._out.put(RefusalDelta, self.id, self.output_index, len(self._parts), delta)

    def close(self, status: EndStatus) -> Item:
        """Ends the open part and the item; returns the item as it stays."""
        self._close_part()
        item = MessageItem(self.id, status, self._parts)
        self._out.put(OutputItemDone, self.output_index, item)
        return item

    def _open_part(self, kind: Literal["text", "refusal"], part: OutputText | Refusal) -> None:
        self._close_part()
        self._kind = kind
        self._out.put(ContentPartAdded, self.id, self.output_index, len(self._parts), part)

    def _close_part(self) -> None:
        if self._kind is None:
            return
        place = self.id, self.output_index, len(self._parts)
        text = "".join(self._pieces)
        part: OutputText | Refusal
        if self._kind == "text":
            part = OutputText(text, self._annotations, self._logprobs)
            self._out.put(OutputTextDone, *place, text, self._deltas)
            self._deltas, self._logprobs, self._annotations = [], [], []
        else:
            part = Refusal(text)
            self._out.put(RefusalDone, *place, text)
        self._out.put(ContentPartDone, *place, part)
        self._parts.append(part)
        self._pieces = []
        self._kind = None


class OpenReasoning:
    """A reasoning item: summary parts and raw text parts, one open at a time.

    Attributes:
        signature: What proves the reasoning to its provider; sent as `encrypted_content`.
    """

    __slots__ = ("_content", "_kind", "_out", "_pieces", "_summary", "id", "output_index", "signature")

    def __init__(self, out: Outbox, item_id: str, output_index: int) -> None:
        self.id = item_id
        self.output_index = output_index
        self.signature: str | UnsetType = UNSET
        self._out = out
        self._summary: list[SummaryText] = []
        self._content: list[ReasoningText] = []
        self._kind: Literal["summary", "text"] | None = None
        self._pieces: list[str] = []
        out.put(OutputItemAdded, output_index, ReasoningItem(item_id, status="in_progress"))

    def summary(self, delta: str) -> None:
        """A piece of the summary."""
        if self._kind != "summary":
            self._close_part("completed")
            self._kind = "summary"
            self._put(ReasoningSummaryPartAdded, len(self._summary), SummaryText())
        self._pieces.append(delta)
        self._put(ReasoningSummaryTextDelta, len(self._summary), delta)

    def text(self, delta: str) -> None:
        """A piece of raw reasoning."""
        if self._kind != "text":
            self._close_part("completed")
            self._kind = "text"
            self._put(ContentPartAdded, len(self._content), ReasoningText())
        self._pieces.append(delta)
        self._put(ReasoningTextDelta, len(self._content), delta)

    def close(self, status: EndStatus) -> Item:
        """Ends the open part and the item; returns the item as it stays."""
        self._close_part(status)
        item = ReasoningItem(
            self.id, self._summary, self._content or UNSET, encrypted_content=self.signature, status=status
        )
        self._out.put(OutputItemDone, self.output_index, item)
        return item

    def _put(self, event_type: type[StreamEvent], *fields: Any) -> None:
        self._out.put(event_type, self.id, self.output_index, *fields)

    def _close_part(self, status: EndStatus) -> None:
        text = "".join(self._pieces)
        if self._kind == "summary":
            index = len(self._summary)
            self._summary.append(SummaryText(text))
            self._put(ReasoningSummaryTextDone, index, text)
            cut = "incomplete" if status == "incomplete" else UNSET
            self._put(ReasoningSummaryPartDone, index, self._summary[-1], cut)
        elif self._kind == "text":
            index = len(self._content)
            self._content.append(ReasoningText(text))
            self._put(ReasoningTextDone, index, text)
            self._put(ContentPartDone, index, self._content[-1])
        self._kind = None
        self._pieces = []


class OpenCall:
    """A call of a function or of a custom tool; it is announced once its identity is known.

    Until then its arguments wait; they go out as one delta right after the announcement.

    Attributes:
        source_id, name: As far as they have come, else "".
        call_id: The id under which it was announced.
        output_index: -1 until the call is announced.
        closed: It has got its `.done` and takes nothing more.
    """

    __slots__ = ("_out", "_pieces", "call_id", "closed", "custom", "id", "name", "output_index", "source_id")

    def __init__(self, out: Outbox, *, custom: bool) -> None:
        self.id = ""
        self.call_id = ""
        self.source_id = ""
        self.closed = False
        self.name = ""
        self.custom = custom
        self.output_index = -1
        self._out = out
        self._pieces: list[str] = []

    @property
    def blank(self) -> bool:
        """Nothing at all has come for it."""
        return not (self.source_id or self.name or self._pieces)

    @property
    def whole(self) -> bool:
        """Its arguments are a whole JSON text, so that a cut did not hit them."""
        if self.custom:
            return True
        try:
            msgspec.json.decode("".join(self._pieces), type=msgspec.Raw)
        except msgspec.DecodeError:
            return False
        return True

    def arguments(self, delta: str) -> None:
        """A piece of the arguments, or of a custom tool's input; not empty."""
        self._pieces.append(delta)
        if self.output_index >= 0:
            self._put_delta(delta)

    def announce(self, item_id: str, call_id: str, output_index: int) -> None:
        """Opens the item."""
        self.id = item_id
        self.call_id = call_id
        self.output_index = output_index
        self._out.put(OutputItemAdded, output_index, self._item("", "in_progress"))
        if self._pieces:
            self._put_delta("".join(self._pieces))

    def close(self, status: EndStatus) -> Item:
        """Ends the item, which was announced; returns it as it stays."""
        self.closed = True
        text = "".join(self._pieces)
        if self.custom:
            self._out.put(CustomToolCallInputDone, self.id, self.output_index, text)
        else:
            self._out.put(FunctionCallArgumentsDone, self.id, self.output_index, self.name, text)
        item = self._item(text, status)
        self._out.put(OutputItemDone, self.output_index, item)
        return item

    def _put_delta(self, delta: str) -> None:
        event_type = CustomToolCallInputDelta if self.custom else FunctionCallArgumentsDelta
        self._out.put(event_type, self.id, self.output_index, delta)

    def _item(self, text: str, status: ItemStatus) -> Item:
        kind = CustomToolCallItem if self.custom else FunctionCallItem
        return kind(self.id, self.call_id, self.name, text, status)
