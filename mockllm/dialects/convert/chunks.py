"""What the converter reads: Chat Completions chunks, as providers really send them.

The structs hold the fields that matter to the conversion and let every other one pass. A field
that is there must have its type; the two that providers leave out (`delta` of a chunk that only
carries Azure's filter results, `index`) have defaults.

Source: https://platform.openai.com/docs/api-reference/chat-streaming; `reasoning_content` is
DeepSeek's and older vLLM's, `reasoning` OpenRouter's and vLLM's, `thinking_blocks` and
`provider_specific_fields` LiteLLM's, `extra_content` Google's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mockllm.errors import ConversionError


class ToolFunction(Struct, frozen=True, gc=False):
    """A piece of a function call: the name at first, arguments bit by bit."""

    name: str | None = None
    arguments: str | None = None


class CustomTool(Struct, frozen=True, gc=False):
    """A piece of a custom tool call."""

    name: str | None = None
    input: str | None = None


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A piece of a tool call. Google's endpoint leaves out `index` where there is one call a chunk."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: ToolFunction | None = None
    custom: CustomTool | None = None
    provider_specific_fields: Any = None
    extra_content: Any = None


class ThinkingBlock(Struct, frozen=True, gc=False):
    """A piece of an Anthropic thinking block; `data` is that of a `redacted_thinking` block."""

    type: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class ChatDelta(Struct, frozen=True, gc=False):
    """What a chunk adds to a choice."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: Sequence[ToolCallDelta] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking_blocks: Sequence[ThinkingBlock] | None = None
    function_call: ToolFunction | None = None
    annotations: Sequence[Any] | None = None


class ChatTopLogprob(Struct, frozen=True, gc=False):
    """An alternative to a token."""

    token: str
    logprob: float
    bytes: Sequence[int] | None = None


class ChatTokenLogprob(Struct, frozen=True, gc=False):
    """A token and its log probability."""

    token: str
    logprob: float
    bytes: Sequence[int] | None = None
    top_logprobs: Sequence[ChatTopLogprob] | None = None


class ChatLogprobs(Struct, frozen=True, gc=False):
    """Log probabilities of the tokens of one chunk."""

    content: Sequence[ChatTokenLogprob] | None = None


NO_DELTA = ChatDelta()


class ChatChoice(Struct, frozen=True, gc=False):
    """One choice's share of a chunk."""

    index: int = 0
    delta: ChatDelta = NO_DELTA
    finish_reason: str | None = None
    logprobs: ChatLogprobs | None = None


class PromptTokensDetails(Struct, frozen=True, gc=False):
    """Of the prompt's tokens, those read from the cache and (OpenRouter) written to it."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class CompletionTokensDetails(Struct, frozen=True, gc=False):
    """Of the completion's tokens, those spent on reasoning."""

    reasoning_tokens: int | None = None


class ChatUsage(Struct, frozen=True, gc=False):
    """Token counts of the whole reply."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class ChatChunk(Struct, frozen=True, gc=False):
    """One chunk of a chat stream.

    Attributes:
        choices: Only a chunk with an error may lack them; empty in the usage chunk.
        error: An error object (or its message) sent in place of a chunk.
        object: `chat.completion.chunk`; `error` from older vLLM servers, with `message` and `code`
            beside it.
    """

    choices: Sequence[ChatChoice] | UnsetType = UNSET
    id: str | None = None
    created: int | float | None = None
    model: str | None = None
    usage: ChatUsage | None = None
    service_tier: str | None = None
    object: str | None = None
    error: Any = None
    message: Any = None
    code: Any = None


class StreamError(Struct, frozen=True, gc=False):
    """The error that a stream carried, in the words of its provider."""

    message: str
    code: str = ""
    type: str = ""


_decode = msgspec.json.Decoder(ChatChunk).decode
_AT = re.compile(r"(?s)(.*) - at `(.*)`")


def read_chunk(chunk: object, number: int) -> ChatChunk:
    """A chunk in any of the forms that people hold: JSON, a mapping, the SDK's object.

    Args:
        chunk: JSON as bytes or str, a `ChatChunk`, a mapping, or an object with the chunk's
            fields as attributes.
        number: Its number in the stream, from 0, for the message.

    Raises:
        ConversionError: It is no chunk.
    """
    try:
        if isinstance(chunk, ChatChunk):
            read = chunk
        elif isinstance(chunk, bytes | str | bytearray | memoryview):
            read = _decode(chunk)
        else:
            read = msgspec.convert(chunk, ChatChunk, from_attributes=not isinstance(chunk, Mapping))
    except (msgspec.DecodeError, UnicodeError) as error:
        # A ValidationError is a DecodeError; it ends with the path, other errors have none.
        match = _AT.fullmatch(str(error))
        message, path = match.groups() if match else (str(error), "$")
        raise ConversionError(message, chunk=number, path=path) from None
    if read.choices is UNSET and not carries_error(read):
        raise ConversionError("Object missing required field `choices`", chunk=number, path="$")
    return read


def carries_error(chunk: ChatChunk) -> bool:
    """Whether an error stands in the chunk's place."""
    return chunk.error is not None or chunk.object == "error"


def stream_error(chunk: ChatChunk) -> StreamError:
    """The error that a chunk carries which `carries_error`."""
    error = chunk.error
    if isinstance(error, Mapping):
        message, code, kind = error.get("message"), error.get("code"), error.get("type")
    elif error is not None:
        message, code, kind = error, None, None
    else:
        message, code, kind = chunk.message, chunk.code, None
    return StreamError(
        message=str(message) if message else "The stream carried an error without a message.",
        code="" if code is None else str(code),
        type="" if kind is None else str(kind),
    )
