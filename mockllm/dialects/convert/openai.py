"""Profile `openai`: what the Responses API itself would have sent for the same content.

Rules:
- `created` and `in_progress` open the stream, whatever it holds; `completed`, `incomplete` or
  `failed` ends it.
- At most one message or reasoning item is open at a time; an item of another kind closes it, and
  later pieces of its kind open a new one. Calls stay open, for they interleave.
- An item's output index is its place in the order of announcement.
- The finish reason closes everything. What a cut hit is `incomplete`, and so is the response then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from mockllm.dialects.convert.chunks import (
    ChatChoice,
    ChatChunk,
    ChatDelta,
    StreamError,
    ToolCallDelta,
    ToolFunction,
    carries_error,
    stream_error,
)
from mockllm.dialects.convert.echo import Echo
from mockllm.dialects.convert.items import EndStatus, OpenCall, OpenMessage, OpenReasoning, Outbox
from mockllm.dialects.convert.mapping import clean_call_id, response_error, token_logprobs, url_citation, usage
from mockllm.dialects.responses_events import (
    FILTER_REFUSAL,
    IncompleteDetails,
    Item,
    Response,
    ResponseCompleted,
    ResponseCreated,
    ResponseError,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    StreamEvent,
    Usage,
)

NO_FINISH = StreamError("The stream ended without a finish reason.", code="server_error")

Cut = Literal["max_output_tokens", "content_filter"]

# finish_reason → why the reply was cut. vLLM ends aborted replies with `abort`, OpenRouter failed ones with `error`.
_CUTS: dict[str, Cut] = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FAILURES = {"error", "abort"}


class OpenAIProfile:
    """The state of one stream.

    Args:
        base: The response's fields; an empty id, model or creation time is filled in.
        model: Name used for provider-specific rules; None takes the chunks' own.
        ids: Makes ids of a kind: `resp`, `msg`, `rs`, `fc`, `ctc`, `call`.
    """

    def __init__(self, base: Response, model: str | None, ids: Callable[[str], str]) -> None:
        self._base = base
        self._model = model
        self._ids = ids
        self._out = Outbox()
        self._started = False
        self._ended = False
        self._usage: Usage | None = None
        self._service_tier: str | None = None
        self._output: list[Item | None] = []
        self._current: OpenMessage | OpenReasoning | None = None
        self._calls: dict[int | str | None, OpenCall] = {}
        self._open_calls: list[OpenCall] = []
        self._call_ids: dict[str, int] = {}
        self._last: object = None
        self._visible = False
        self._echo = Echo()
        self._finish_reason: str | None = None
        self._cut: Cut | None = None
        self._error: ResponseError | None = None

    def feed(self, chunk: ChatChunk) -> list[StreamEvent]:
        """The events that one chunk makes."""
        if self._ended:
            return []
        if not self._started:
            self._start(chunk)
        if chunk.usage is not None:
            self._usage = usage(chunk.usage, cache_write=True, computed_total=True)
        if chunk.service_tier is not None:
            self._service_tier = chunk.service_tier
        if carries_error(chunk):
            self._fail(stream_error(chunk))
            return self._out.take()
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._take(choice)
        return self._out.take()

    def finish(self) -> list[StreamEvent]:
        """The events that end the stream; none if an error has ended it."""
        if self._ended:
            return []
        if not self._started:
            self._start(ChatChunk(()))
        if self._finish_reason is None:
            self._fail(NO_FINISH)
        else:
            self._close_all()
            self._end()
        return self._out.take()

    # ---- the response -------------------------------------------------------------------------

    def _start(self, chunk: ChatChunk) -> None:
        self._started = True
        if self._model is None:
            self._model = chunk.model
        base = self._base
        self._base = replace(
            base,
            id=base.id or self._ids("resp"),
            created_at=base.created_at or chunk.created or 0,
            model=base.model or chunk.model or self._model or "",
            status="in_progress",
            completed_at=None,
            error=None,
            incomplete_details=None,
            output=(),
            usage=None,
        )
        self._out.put(ResponseCreated, self._base)
        self._out.put(ResponseInProgress, self._base)

    def _fail(self, error: StreamError) -> None:
        self._error = self._error or response_error(error)
        self._close_all()
        self._end()

    def _end(self) -> None:
        self._ended = True
        final = replace(
            self._base,
            output=self._output,
            usage=self._usage,
            service_tier=self._service_tier or self._base.service_tier,
        )
        if self._error is not None:
            self._out.put(ResponseFailed, replace(final, status="failed", error=self._error))
        elif self._cut is not None:
            details = IncompleteDetails(self._cut)
            self._out.put(ResponseIncomplete, replace(final, status="incomplete", incomplete_details=details))
        else:
            self._out.put(ResponseCompleted, replace(final, status="completed"))

    # ---- one choice of a chunk ----------------------------------------------------------------

    def _take(self, choice: ChatChoice) -> None:
        delta = choice.delta
        if delta.content:
            current = self._current
            # The common case first: a piece of text and nothing that would have to come before it.
            if delta.reasoning_content or delta.reasoning or delta.thinking_blocks:
                self._reason(delta)
                current = self._current
            message = current if type(current) is OpenMessage else self._open_message()
            message.text(delta.content, token_logprobs(choice.logprobs))
            self._last = message
        elif delta.reasoning_content or delta.reasoning or delta.thinking_blocks:
            self._reason(delta)
        if delta.refusal:
            message = self._current if isinstance(self._current, OpenMessage) else self._open_message()
            message.refusal(delta.refusal)
            self._last = message
        if delta.annotations and isinstance(self._current, OpenMessage):
            for annotation in map(url_citation, delta.annotations):
                if annotation is not None:
                    self._current.annotate(annotation)
        if delta.tool_calls:
            for piece in delta.tool_calls:
                self._call(piece)
        if delta.function_call is not None:
            self._legacy_call(delta.function_call)
        if choice.finish_reason:
            self._finish(choice.finish_reason)

    def _reason(self, delta: ChatDelta) -> None:
        if delta.reasoning_content:
            shown = self._echo.novel("string", delta.reasoning_content)
            if shown:
                self._reasoning().summary(shown)
        # vLLM sends one text under both names while it renames the field.
        if delta.reasoning and delta.reasoning != delta.reasoning_content:
            shown = self._echo.novel("string", delta.reasoning)
            if shown:
                self._reasoning().text(shown)
        for block in delta.thinking_blocks or ():
            if block.thinking:
                shown = self._echo.novel("blocks", block.thinking)
                if shown:
                    self._reasoning().text(shown)
            # A redacted block is opaque as a whole; so is a block whose text the provider left out.
            signature = block.signature or block.data
            if signature:
                self._reasoning().signature = signature

    def _call(self, piece: ToolCallDelta) -> None:
        call_id = clean_call_id(piece.id, self._model) if piece.id else ""
        call = self._calls.get(piece.index)
        if call is None or (call_id and call.source_id and call_id != call.source_id):
            call = OpenCall(self._out, custom=piece.type == "custom" or piece.custom is not None)
            self._calls[piece.index] = call
            self._open_calls.append(call)
        name, text = None, None
        if piece.function is not None:
            name, text = piece.function.name, piece.function.arguments
        elif piece.custom is not None:
            name, text = piece.custom.name, piece.custom.input
        self._extend(call, call_id, name, text)

    def _legacy_call(self, piece: ToolFunction) -> None:
        """The `function_call` field, which tool calls have replaced; it never had an id."""
        call = self._calls.get("function_call")
        if call is None:
            call = self._calls["function_call"] = OpenCall(self._out, custom=False)
            self._open_calls.append(call)
        self._extend(call, self._ids("call") if piece.name else "", piece.name, piece.arguments)

    def _extend(self, call: OpenCall, call_id: str, name: str | None, text: str | None) -> None:
        """Adds a piece to a call, and announces it once its name and id are known."""
        if call.closed:
            return
        if call.output_index < 0:
            call.source_id = call.source_id or call_id
            call.name = call.name or name or ""
            if call.source_id and call.name:
                self._announce(call)
        if text:
            call.arguments(text)
        if text or name or call_id:
            self._last = call

    def _finish(self, reason: str) -> None:
        """A finish reason closes everything; one that comes again with nothing open says nothing new."""
        self._forget_blank_calls()
        if self._finish_reason is not None and self._current is None and not self._open_calls:
            return
        self._finish_reason = reason
        if reason in _CUTS:
            self._cut = self._cut or _CUTS[reason]
        elif reason in _FAILURES:
            failure = StreamError(f"The reply ended with the finish reason `{reason}`.", code="server_error")
            self._error = self._error or response_error(failure)
        self._close_all()
        if reason == "content_filter" and not self._visible:
            message = self._last = self._open_message()
            message.refusal(FILTER_REFUSAL)
            self._close_current(self._status_of(message))

    # ---- opening and closing ------------------------------------------------------------------

    def _place(self) -> int:
        self._output.append(None)
        return len(self._output) - 1

    def _open_message(self) -> OpenMessage:
        self._close_current("completed")
        self._visible = True
        message = self._current = OpenMessage(self._out, self._ids("msg"), self._place())
        return message

    def _reasoning(self) -> OpenReasoning:
        """The reasoning item that is open, or a new one."""
        item = self._current
        if not isinstance(item, OpenReasoning):
            self._close_current("completed")
            item = self._current = OpenReasoning(self._out, self._ids("rs"), self._place())
        self._last = item
        return item

    def _announce(self, call: OpenCall) -> None:
        self._close_current("completed")
        self._visible = True
        call_id = self._unused(call.source_id or self._ids("call"))
        call.announce(self._ids("ctc" if call.custom else "fc"), call_id, self._place())

    def _unused(self, wanted: str) -> str:
        """The id, or one made of it: calls are found by their ids, and the SDK refuses two under one."""
        call_id, number = wanted, self._call_ids.get(wanted, 0)
        while call_id in self._call_ids:
            number += 1
            call_id = f"{wanted}_{number}"
        self._call_ids[wanted] = max(number, 1)
        self._call_ids.setdefault(call_id, 1)
        return call_id

    def _close_current(self, status: EndStatus) -> None:
        if self._current is not None:
            self._output[self._current.output_index] = self._current.close(status)
            self._current = None

    def _close_all(self) -> None:
        """Closes what is open, in the order of the output; calls that lack a name or id come last."""
        self._forget_blank_calls()
        announced = [call for call in self._open_calls if call.output_index >= 0]
        waiting = [call for call in self._open_calls if call.output_index < 0]
        self._open_calls = []
        current = self._current
        for call in announced:
            if current is not None and current.output_index < call.output_index:
                self._close_current(self._status_of(current))
                current = None
            self._output[call.output_index] = call.close(self._status_of(call))
        if current is not None:
            self._close_current(self._status_of(current))
        for call in waiting:
            self._announce(call)
            self._output[call.output_index] = call.close(self._status_of(call))

    def _forget_blank_calls(self) -> None:
        """Calls of which nothing at all has come are no calls."""
        if any(call.blank for call in self._open_calls):
            self._open_calls = [call for call in self._open_calls if not call.blank]
            self._calls = {index: call for index, call in self._calls.items() if not call.blank}

    def _status_of(self, item: OpenMessage | OpenReasoning | OpenCall) -> EndStatus:
        """Whether the end has cut the item: the last one that got something, or a call with half its JSON."""
        if self._cut is None and self._error is None:
            return "completed"
        if isinstance(item, OpenCall) and item is not self._last and item.whole:
            return "completed"
        return "incomplete"
