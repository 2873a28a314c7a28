"""Profile `agents`: event for event what the stream handler of openai-agents-python emits.

Versions 0.11 to 0.16. Its oddities are its interface, so they are kept: one reasoning item, at
output index 0 whatever came before it; one message, announced again for its refusal; output
indexes that clash (`layouts`); arguments that are in no delta; everything closed at the end. Only
the cost is not kept: text is joined once, so work is linear in the stream's length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mockllm.dialects.convert.chunks import ChatChoice, ChatChunk, ChatUsage, ToolCallDelta
from mockllm.dialects.convert.items import Outbox
from mockllm.dialects.convert.layouts import Layout
from mockllm.dialects.convert.mapping import (
    clean_call_id,
    delta_logprobs,
    is_gemini,
    part_logprobs,
    token_logprobs,
    usage,
)
from mockllm.dialects.responses_events import (
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallItem,
    Item,
    ItemStatus,
    Logprob,
    MessageItem,
    OutputItemAdded,
    OutputItemDone,
    OutputText,
    OutputTextDelta,
    ReasoningItem,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningText,
    ReasoningTextDelta,
    ReasoningTextDone,
    Refusal,
    RefusalDelta,
    Response,
    ResponseCompleted,
    ResponseCreated,
    StreamEvent,
    SummaryText,
)


class _Reasoning:
    """The one reasoning item: finished summary parts, the open one's pieces, the raw text."""

    __slots__ = ("active", "id", "provider_data", "raw", "summaries")

    def __init__(self, item_id: str, provider_data: Mapping[str, Any] | UnsetType, *, raw: bool) -> None:
        self.id = item_id
        self.provider_data = provider_data
        self.summaries: list[list[str]] = []
        self.active = False
        self.raw: list[str] | None = [] if raw else None

    def item(self, *, thinking: str = "", signature: str | None = None) -> ReasoningItem:
        """As it stands now; `thinking` becomes its last content part."""
        texts = [] if self.raw is None else ["".join(self.raw)]
        if thinking:
            texts.append(thinking)
        return ReasoningItem(
            self.id,
            [SummaryText("".join(pieces)) for pieces in self.summaries],
            [ReasoningText(text) for text in texts] or UNSET,
            encrypted_content=signature or UNSET,
            provider_data=self.provider_data,
        )


class _Call:
    """One tool call index: what has come for it."""

    __slots__ = ("call_id", "id", "name", "pieces", "place", "provider_data", "streaming")

    def __init__(self, item_id: str, place: int) -> None:
        self.id = item_id
        self.place = place
        self.call_id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.provider_data: dict[str, Any] | None = None
        self.streaming = False

    def item(self, arguments: str, provider_data: Mapping[str, Any] | None) -> FunctionCallItem:
        return FunctionCallItem(
            self.id, self.call_id, self.name, arguments, provider_data=provider_data if provider_data else UNSET
        )


class AgentsProfile:
    """The state of one stream.

    Args:
        base: The response's fields, sent as they are.
        model: Name used for provider-specific rules, and as the items' `provider_data.model`.
        ids: Makes item ids of a kind: `msg`, `rs`, `fc`.
        layout: Where the items stand.
    """

    def __init__(self, base: Response, model: str | None, ids: Callable[[str], str], layout: Layout) -> None:
        self._base = base
        self._model = model
        self._ids = ids
        self._out = Outbox()
        self._layout = layout
        self._started = False
        self._usage: ChatUsage | None = None
        # Replaced, never changed: items share it.
        self._provider_data: dict[str, Any] = {}
        self._noted_id: str | None = None
        self._noted_model: str | None = None
        self._reasoning: _Reasoning | None = None
        self._thinking: list[str] = []
        self._signature: str | None = None
        self._message_id = ""
        self._text_index: int | None = None
        self._text: list[str] = []
        self._logprobs: list[Logprob] = []
        self._refusal_index: int | None = None
        self._refusal: list[str] = []
        self._calls: dict[int | None, _Call] = {}

    def feed(self, chunk: ChatChunk) -> list[StreamEvent]:
        """The events that one chunk makes."""
        if not self._started:
            self._started = True
            self._base = _filled(self._base, chunk, self._ids)
            self._out.put(ResponseCreated, self._base)
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.choices:
            if chunk.id != self._noted_id or chunk.model != self._noted_model:
                self._note_provider(chunk)
            self._take(chunk.choices[0])
        return self._out.take()

    def _note_provider(self, chunk: ChatChunk) -> None:
        self._noted_id, self._noted_model = chunk.id, chunk.model
        model, known = self._model or chunk.model, self._provider_data
        if model and known.get("model") != model:
            known = {**known, "model": model}
        if chunk.id and known.get("response_id") != chunk.id:
            known = {**known, "response_id": chunk.id}
        self._provider_data = known

    def _take(self, choice: ChatChoice) -> None:
        delta = choice.delta
        for block in delta.thinking_blocks or ():
            if block.thinking:
                self._thinking.append(block.thinking)
            if block.signature:
                self._signature = block.signature
        if delta.reasoning_content:
            self._take_summary(delta.reasoning_content)
        if delta.reasoning:
            self._take_reasoning(delta.reasoning)
        if (
            self._reasoning is not None
            and self._reasoning.active
            and not delta.reasoning_content
            and (delta.content is not None or delta.refusal or delta.tool_calls)
        ):
            self._finish_summary_part(self._reasoning)
        if delta.content is not None:
            self._take_text(delta.content, choice)
        if delta.refusal:
            self._take_refusal(delta.refusal)
        for piece in delta.tool_calls or ():
            self._take_call(piece)

    # ---- reasoning ----------------------------------------------------------------------------

    def _open_reasoning(self, *, raw: bool) -> _Reasoning:
        if self._reasoning is None:
            self._reasoning = _Reasoning(self._ids("rs"), self._provider_data or UNSET, raw=raw)
            self._out.put(OutputItemAdded, 0, self._reasoning.item())
        return self._reasoning

    def _take_summary(self, text: str) -> None:
        item = self._open_reasoning(raw=False)
        if not item.active:
            item.active = True
            item.summaries.append([])
            self._out.put(ReasoningSummaryPartAdded, item.id, 0, len(item.summaries) - 1, SummaryText())
        self._out.put(ReasoningSummaryTextDelta, item.id, 0, len(item.summaries) - 1, text)
        item.summaries[-1].append(text)

    def _take_reasoning(self, text: str) -> None:
        item = self._open_reasoning(raw=True)
        self._out.put(ReasoningTextDelta, item.id, 0, 0, text)
        if item.raw is None:
            item.raw = []
        item.raw.append(text)

    def _finish_summary_part(self, item: _Reasoning) -> None:
        if item.active:
            part = SummaryText("".join(item.summaries[-1]))
            self._out.put(ReasoningSummaryPartDone, item.id, 0, len(item.summaries) - 1, part)
            item.active = False

    # ---- the message --------------------------------------------------------------------------

    def _take_text(self, text: str, choice: ChatChoice) -> None:
        if self._text_index is None:
            self._text_index = (self._reasoning is not None) + (self._refusal_index is not None)
            self._announce_message(self._text_index, OutputText())
        tokens = token_logprobs(choice.logprobs)
        logprobs = delta_logprobs(tokens, empty_is_null=True) if tokens else ()
        self._out.put(OutputTextDelta, self._message_id, self._message_output_index(), self._text_index, text, logprobs)
        self._text.append(text)
        if tokens:
            self._logprobs += part_logprobs(tokens)

    def _take_refusal(self, text: str) -> None:
        if self._refusal_index is None:
            self._refusal_index = (self._reasoning is not None) + (self._text_index is not None)
            self._announce_message(self._refusal_index, Refusal())
        self._out.put(RefusalDelta, self._message_id, self._message_output_index(), self._refusal_index, text)
        self._refusal.append(text)

    def _announce_message(self, content_index: int, part: OutputText | Refusal) -> None:
        """The handler announces the message once for its text and once for its refusal."""
        self._message_id = self._message_id or self._ids("msg")
        output_index = self._message_output_index()
        self._out.put(OutputItemAdded, output_index, self._message("in_progress", []))
        self._out.put(ContentPartAdded, self._message_id, output_index, content_index, part)

    def _message(self, status: ItemStatus, content: list[OutputText | Refusal]) -> MessageItem:
        return MessageItem(self._message_id, status, content, provider_data=self._provider_data or UNSET)

    def _message_output_index(self) -> int:
        return self._layout.message(reasoning=self._reasoning is not None)

    # ---- tool calls ---------------------------------------------------------------------------

    def _take_call(self, piece: ToolCallDelta) -> None:
        call = self._calls.get(piece.index)
        if call is None:
            call = self._calls[piece.index] = _Call(self._ids("fc"), len(self._calls))
            parts = (self._text_index is not None) + (self._refusal_index is not None)
            self._layout.new_call(reasoning=self._reasoning is not None, parts=parts)
        function = piece.function
        arguments = (function.arguments or "") if function is not None else ""
        if arguments:
            call.pieces.append(arguments)
        if function is not None and function.name:
            call.name = function.name
        if piece.id:
            call.call_id = clean_call_id(piece.id, self._model)
        self._note_signature(call, piece)
        if not call.streaming and call.name and call.call_id:
            call.streaming = True
            self._out.put(OutputItemAdded, self._call_output_index(call), call.item("", self._merged(call)))
        if call.streaming and arguments:
            self._out.put(FunctionCallArgumentsDelta, call.id, self._call_output_index(call), arguments)

    def _note_signature(self, call: _Call, piece: ToolCallDelta) -> None:
        """Gemini's thought signature, as LiteLLM or as Google's own endpoint sends it."""
        if call.provider_data is None and self._provider_data:
            call.provider_data = self._provider_data
        signatures = []
        if is_gemini(self._model) and isinstance(piece.provider_specific_fields, Mapping):
            signatures.append(piece.provider_specific_fields.get("thought_signature"))
        if isinstance(piece.extra_content, Mapping):
            google = piece.extra_content.get("google")
            if isinstance(google, Mapping):
                signatures.append(google.get("thought_signature"))
        for signature in signatures:
            if signature:
                call.provider_data = {**self._provider_data, "thought_signature": signature}

    def _merged(self, call: _Call) -> dict[str, Any]:
        return {**self._provider_data, **(call.provider_data or {})}

    def _call_output_index(self, call: _Call) -> int:
        return self._layout.call(call.place, reasoning=self._reasoning is not None)

    # ---- the end ------------------------------------------------------------------------------

    def finish(self) -> list[StreamEvent]:
        """The events that close the items, in the handler's order, and `response.completed`."""
        if not self._started:
            self._base = _filled(self._base, ChatChunk(()), self._ids)
        if self._reasoning is not None:
            self._finish_reasoning(self._reasoning)
        content: list[OutputText | Refusal] = []
        if self._text_index is not None:
            content.append(OutputText("".join(self._text), (), self._logprobs))
            self._finish_part(self._text_index, content[-1])
        if self._refusal_index is not None:
            content.append(Refusal("".join(self._refusal)))
            self._finish_part(self._refusal_index, content[-1])
        calls: list[Item] = [self._finish_call(call) for call in self._calls.values()]
        output: list[Item] = []
        if self._reasoning is not None:
            output.append(self._reasoning.item(thinking="".join(self._thinking), signature=self._signature))
        before = self._layout.calls_before_message(reasoning=self._reasoning is not None)
        output += calls[:before]
        if content:
            message = self._message("completed", content)
            self._out.put(OutputItemDone, self._message_output_index(), message)
            output.append(message)
        output += calls[before:]
        self._complete(output)
        return self._out.take()

    def _finish_reasoning(self, item: _Reasoning) -> None:
        if item.summaries:
            self._finish_summary_part(item)
        elif item.raw is not None:
            self._out.put(ReasoningTextDone, item.id, 0, 0, "".join(item.raw))
        self._out.put(OutputItemDone, 0, item.item())

    def _finish_part(self, content_index: int, part: OutputText | Refusal) -> None:
        self._out.put(ContentPartDone, self._message_id, self._message_output_index(), content_index, part)

    def _finish_call(self, call: _Call) -> FunctionCallItem:
        """Closes a call, announcing it first if its name or id never came; returns its final form."""
        arguments = "".join(call.pieces)
        output_index = self._call_output_index(call)
        item = call.item(arguments, self._merged(call))
        if not call.streaming:
            self._out.put(OutputItemAdded, output_index, item)
            self._out.put(FunctionCallArgumentsDelta, call.id, output_index, arguments)
        self._out.put(OutputItemDone, output_index, item)
        return call.item(arguments, call.provider_data)

    def _complete(self, output: list[Item]) -> None:
        counts = None if self._usage is None else usage(self._usage, cache_write=False, computed_total=False)
        self._out.put(ResponseCompleted, replace(self._base, output=output, usage=counts))


def _filled(base: Response, chunk: ChatChunk, ids: Callable[[str], str]) -> Response:
    """The base with what it leaves open taken from the first chunk."""
    return replace(
        base,
        id=base.id or ids("resp"),
        created_at=base.created_at or chunk.created or 0,
        model=base.model or chunk.model or "",
    )
