"""The body of `POST /v1/responses`, decoded and checked.

Values are refused where the API refuses them; where OpenAI's and vLLM's rules differ, the laxer
one holds. Fields that are not here are accepted and change nothing.

Source: https://platform.openai.com/docs/api-reference/responses/create; vLLM's
`ResponsesRequest` for `seed`, `stop`, `ignore_eos` and what stands beside them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from mockllm.dialects.decode import decoder
from mockllm.dialects.fields import (
    AtLeastOne,
    CacheKey,
    CacheRetention,
    Count,
    Effort,
    Int64,
    Metadata,
    SafetyIdentifier,
    Share,
    Temperature,
    TopLogprobs,
    Verbosity,
)
from mockllm.dialects.responses.inputs import InputItem
from mockllm.errors import RequestError

Includable = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]
SummaryStyle = Literal["auto", "concise", "detailed"]


class Reasoning(Struct):
    """`reasoning`; `generate_summary` is the old name of `summary`."""

    effort: Effort | None = None
    summary: SummaryStyle | None = None
    generate_summary: SummaryStyle | None = None


class TextConfig(Struct):
    """`text`: what the text has to be, and how wordy."""

    format: dict[str, Any] | None = None
    verbosity: Verbosity | None = None


class StreamOptions(Struct):
    """`stream_options`."""

    include_obfuscation: bool | None = None


class StoredPrompt(Struct):
    """`prompt`: a template that the API keeps; a mock has none, so that it adds no text."""

    id: str
    version: str | None = None
    variables: dict[str, Any] | None = None


class ResponsesRequest(Struct):
    """The body's fields that change the answer or are echoed in it."""

    model: str = ""
    input: str | list[InputItem] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: StoredPrompt | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    store: bool | None = None
    max_output_tokens: AtLeastOne | None = None
    max_tool_calls: AtLeastOne | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    seed: Int64 | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    include: list[Includable] | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_logprobs: TopLogprobs | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: ServiceTier | None = None
    metadata: Metadata | None = None
    user: str | None = None
    safety_identifier: SafetyIdentifier | None = None
    prompt_cache_key: CacheKey | None = None
    prompt_cache_retention: CacheRetention | None = None
    mockllm: Raw | UnsetType = UNSET

    @property
    def stored(self) -> bool:
        """Whether the response can be read back; the API stores by default."""
        return self.store is not False

    @property
    def padded(self) -> bool:
        """Whether deltas carry `obfuscation`; unlike the API, not by default."""
        options = self.stream_options
        return options is not None and bool(options.include_obfuscation)

    @property
    def with_logprobs(self) -> bool:
        return self.include is not None and "message.output_text.logprobs" in self.include

    @property
    def with_encrypted_reasoning(self) -> bool:
        return self.include is not None and "reasoning.encrypted_content" in self.include

    @property
    def summary(self) -> SummaryStyle | None:
        """The style of the reasoning summary that was asked for, or None."""
        reasoning = self.reasoning
        return None if reasoning is None else reasoning.summary or reasoning.generate_summary


_decode = decoder(ResponsesRequest)


def read_request(body: bytes) -> ResponsesRequest:
    """Decode a body, and refuse fields that contradict each other.

    Raises:
        RequestError: The body is no JSON, or not what the API takes.
    """
    request: ResponsesRequest = _decode(body)
    if request.stream_options is not None and not request.stream:
        raise RequestError("stream_options is only allowed with stream: true.", param="stream_options")
    if request.background and not request.stored:
        raise RequestError("A background response has to be stored: store must not be false.", param="store")
    if request.conversation is not None:
        _refuse_conversation(request)
    if not request.input and not request.previous_response_id and request.prompt is None:
        raise RequestError(
            "$.input: one of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.",
            param="input",
        )
    return request


def _refuse_conversation(request: ResponsesRequest) -> None:
    """There is no Conversations API here, so that no conversation can exist."""
    if request.previous_response_id is not None:
        raise RequestError(
            "previous_response_id and conversation are mutually exclusive; send one of them.",
            param="previous_response_id",
            code="mutually_exclusive_parameters",
        )
    given = request.conversation
    identity = given.get("id") if isinstance(given, dict) else given
    raise RequestError(
        f"Conversation with id {str(identity)[:100]!r} not found.", param="conversation", status=404, code=None
    )
