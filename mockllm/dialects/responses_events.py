"""The Responses API's output: the response object, its items and parts, the stream's events.

Frozen structs whose `msgspec.json.encode` is the API's JSON, keys in the order in which the API
sends them. `None` is sent as null; what the API leaves out where it does not apply is `UNSET`.
Every tagged struct has its tag as `.type`.

Source: https://platform.openai.com/docs/api-reference/responses-streaming; the types of the
`openai` package, 2.26 to 3.57.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, json

FILTER_REFUSAL = "The provider's content filter withheld this reply."
"""The refusal in place of a reply of which a content filter left nothing."""

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class _Tagged(Struct, frozen=True, gc=False, tag_field="type"):
    """A struct that names its type in its JSON."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


# ---- parts of items ---------------------------------------------------------------------------


class TopLogprob(Struct, frozen=True, gc=False):
    """An alternative to a token. `bytes` (its UTF-8, as integers) is sent in parts, not in deltas."""

    token: str
    logprob: float
    bytes: Sequence[int] | UnsetType = UNSET


class Logprob(Struct, frozen=True, gc=False):
    """A token's log probability. `bytes` is sent in parts, not in deltas."""

    token: str
    logprob: float
    top_logprobs: Sequence[TopLogprob] | None = ()
    bytes: Sequence[int] | UnsetType = UNSET


class OutputText(_Tagged, frozen=True, gc=False, tag="output_text"):
    """Text of a message."""

    text: str = ""
    annotations: Sequence[Mapping[str, Any]] = ()
    logprobs: Sequence[Logprob] = ()


class Refusal(_Tagged, frozen=True, gc=False, tag="refusal"):
    """The model's words for declining."""

    refusal: str = ""


class ReasoningText(_Tagged, frozen=True, gc=False, tag="reasoning_text"):
    """Raw reasoning, as open models send it."""

    text: str = ""


class SummaryText(_Tagged, frozen=True, gc=False, tag="summary_text"):
    """One part of a reasoning summary."""

    text: str = ""


# ---- items ------------------------------------------------------------------------------------


class MessageItem(_Tagged, frozen=True, gc=False, tag="message"):
    """The assistant's message. Ids begin with `msg_`."""

    id: str
    status: ItemStatus
    content: Sequence[OutputText | Refusal] = ()
    role: Literal["assistant"] = "assistant"
    phase: Literal["commentary", "final_answer"] | UnsetType = UNSET
    provider_data: Mapping[str, Any] | UnsetType = UNSET


class ReasoningItem(_Tagged, frozen=True, gc=False, tag="reasoning"):
    """The model's reasoning: a summary, or the raw text, or both. Ids begin with `rs_`."""

    id: str
    summary: Sequence[SummaryText] = ()
    content: Sequence[ReasoningText] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET
    status: ItemStatus | UnsetType = UNSET
    provider_data: Mapping[str, Any] | UnsetType = UNSET


class FunctionCallItem(_Tagged, frozen=True, gc=False, tag="function_call"):
    """A call of a function. Ids begin with `fc_`, call ids with `call_`."""

    id: str
    call_id: str
    name: str
    arguments: str = ""
    status: ItemStatus | UnsetType = UNSET
    provider_data: Mapping[str, Any] | UnsetType = UNSET


class CustomToolCallItem(_Tagged, frozen=True, gc=False, tag="custom_tool_call"):
    """A call of a custom tool, whose input is free text. Ids begin with `ctc_`."""

    id: str
    call_id: str
    name: str
    input: str = ""
    status: ItemStatus | UnsetType = UNSET
    provider_data: Mapping[str, Any] | UnsetType = UNSET


Item = MessageItem | ReasoningItem | FunctionCallItem | CustomToolCallItem


# ---- the response object ----------------------------------------------------------------------


class InputTokensDetails(Struct, frozen=True, gc=False):
    """Of the input tokens, those read from the prompt cache and those written to it."""

    cached_tokens: int = 0
    cache_write_tokens: int | UnsetType = 0


class OutputTokensDetails(Struct, frozen=True, gc=False):
    """Of the output tokens, those spent on reasoning."""

    reasoning_tokens: int = 0


class Usage(Struct, frozen=True, gc=False):
    """Token counts of a whole response."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseError(Struct, frozen=True, gc=False):
    """Why a response failed. The SDK knows a closed set of codes; `server_error` is the general one."""

    code: str
    message: str


class IncompleteDetails(Struct, frozen=True, gc=False):
    """What cut a response short."""

    reason: Literal["max_output_tokens", "content_filter"]


class Response(Struct, frozen=True, gc=False):
    """The response object, with the fields that OpenAI's API sends.

    Attributes:
        created_at: Unix time in seconds; the API sends a whole number.
        completed_at: The same for the end; null until `completed`.
        usage: Null until the response has ended.
    """

    id: str = ""
    object: Literal["response"] = "response"
    created_at: int | float = 0
    status: ResponseStatus | None = None
    background: bool | None = None
    completed_at: int | float | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | Sequence[Any] | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    model: str = ""
    output: Sequence[Item] = ()
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    reasoning: Mapping[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    temperature: float | None = None
    text: Mapping[str, Any] | None = None
    tool_choice: str | Mapping[str, Any] = "auto"
    tools: Sequence[Any] = ()
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] | None = None
    usage: Usage | None = None
    user: str | None = None
    metadata: Mapping[str, str] | None = None
    conversation: Mapping[str, Any] | UnsetType | None = UNSET
    prompt: Mapping[str, Any] | UnsetType | None = UNSET
    prompt_cache_retention: Literal["in_memory", "24h"] | UnsetType | None = UNSET


# ---- events -----------------------------------------------------------------------------------


class StreamEvent(_Tagged, frozen=True, gc=False):
    """What every event carries: its place in the stream, from 0 without gaps."""

    sequence_number: int


class ResponseCreated(StreamEvent, frozen=True, gc=False, tag="response.created"):
    response: Response


class ResponseQueued(StreamEvent, frozen=True, gc=False, tag="response.queued"):
    response: Response


class ResponseInProgress(StreamEvent, frozen=True, gc=False, tag="response.in_progress"):
    response: Response


class ResponseCompleted(StreamEvent, frozen=True, gc=False, tag="response.completed"):
    response: Response


class ResponseIncomplete(StreamEvent, frozen=True, gc=False, tag="response.incomplete"):
    response: Response


class ResponseFailed(StreamEvent, frozen=True, gc=False, tag="response.failed"):
    response: Response


class ErrorEvent(StreamEvent, frozen=True, gc=False, tag="error"):
    """An error of the stream itself, not of the response."""

    message: str
    code: str | None = None
    param: str | None = None


class OutputItemAdded(StreamEvent, frozen=True, gc=False, tag="response.output_item.added"):
    output_index: int
    item: Item


class OutputItemDone(StreamEvent, frozen=True, gc=False, tag="response.output_item.done"):
    output_index: int
    item: Item


class ContentPartAdded(StreamEvent, frozen=True, gc=False, tag="response.content_part.added"):
    item_id: str
    output_index: int
    content_index: int
    part: OutputText | Refusal | ReasoningText


class ContentPartDone(StreamEvent, frozen=True, gc=False, tag="response.content_part.done"):
    item_id: str
    output_index: int
    content_index: int
    part: OutputText | Refusal | ReasoningText


class OutputTextDelta(StreamEvent, frozen=True, gc=False, tag="response.output_text.delta"):
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: Sequence[Logprob] = ()
    obfuscation: str | UnsetType = UNSET


class OutputTextDone(StreamEvent, frozen=True, gc=False, tag="response.output_text.done"):
    item_id: str
    output_index: int
    content_index: int
    text: str
    logprobs: Sequence[Logprob] = ()


class OutputTextAnnotationAdded(StreamEvent, frozen=True, gc=False, tag="response.output_text.annotation.added"):
    item_id: str
    output_index: int
    content_index: int
    annotation_index: int
    annotation: Mapping[str, Any]


class RefusalDelta(StreamEvent, frozen=True, gc=False, tag="response.refusal.delta"):
    item_id: str
    output_index: int
    content_index: int
    delta: str
    obfuscation: str | UnsetType = UNSET


class RefusalDone(StreamEvent, frozen=True, gc=False, tag="response.refusal.done"):
    item_id: str
    output_index: int
    content_index: int
    refusal: str


class FunctionCallArgumentsDelta(StreamEvent, frozen=True, gc=False, tag="response.function_call_arguments.delta"):
    item_id: str
    output_index: int
    delta: str
    obfuscation: str | UnsetType = UNSET


class FunctionCallArgumentsDone(StreamEvent, frozen=True, gc=False, tag="response.function_call_arguments.done"):
    """`name` is required by the SDK's 2.x types and unknown to its 3.x types."""

    item_id: str
    output_index: int
    name: str
    arguments: str


class CustomToolCallInputDelta(StreamEvent, frozen=True, gc=False, tag="response.custom_tool_call_input.delta"):
    item_id: str
    output_index: int
    delta: str
    obfuscation: str | UnsetType = UNSET


class CustomToolCallInputDone(StreamEvent, frozen=True, gc=False, tag="response.custom_tool_call_input.done"):
    item_id: str
    output_index: int
    input: str


class ReasoningSummaryPartAdded(StreamEvent, frozen=True, gc=False, tag="response.reasoning_summary_part.added"):
    item_id: str
    output_index: int
    summary_index: int
    part: SummaryText


class ReasoningSummaryPartDone(StreamEvent, frozen=True, gc=False, tag="response.reasoning_summary_part.done"):
    """`status` is sent only for a part that was cut."""

    item_id: str
    output_index: int
    summary_index: int
    part: SummaryText
    status: Literal["incomplete"] | UnsetType = UNSET


class ReasoningSummaryTextDelta(StreamEvent, frozen=True, gc=False, tag="response.reasoning_summary_text.delta"):
    item_id: str
    output_index: int
    summary_index: int
    delta: str
    obfuscation: str | UnsetType = UNSET


class ReasoningSummaryTextDone(StreamEvent, frozen=True, gc=False, tag="response.reasoning_summary_text.done"):
    item_id: str
    output_index: int
    summary_index: int
    text: str


class ReasoningTextDelta(StreamEvent, frozen=True, gc=False, tag="response.reasoning_text.delta"):
    item_id: str
    output_index: int
    content_index: int
    delta: str
    obfuscation: str | UnsetType = UNSET


class ReasoningTextDone(StreamEvent, frozen=True, gc=False, tag="response.reasoning_text.done"):
    item_id: str
    output_index: int
    content_index: int
    text: str


_encode = json.Encoder().encode


def sse_frame(event: StreamEvent) -> bytes:
    """The event as it travels: `event: <type>`, `data: <JSON>`, an empty line."""
    return b"event: %b\ndata: %b\n\n" % (event.type.encode(), _encode(event))
