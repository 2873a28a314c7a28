"""The body of `POST /v1/chat/completions`, decoded and checked.

Source: https://platform.openai.com/docs/api-reference/chat/create; vLLM's
`ChatCompletionRequest` for what it adds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from mockllm.dialects.chat_tools import read_function_call, read_functions, read_tool_choice, read_tools
from mockllm.dialects.decode import decoder
from mockllm.dialects.fields import (
    AtLeastOne,
    CacheKey,
    CacheRetention,
    Effort,
    Flag,
    Metadata,
    Object,
    SafetyIdentifier,
    TopLogprobs,
    Verbosity,
)
from mockllm.dialects.messages import Content, content_text, prompt_of
from mockllm.dialects.sampling import Sampling, sample
from mockllm.dialects.turns import Turn, check_turns
from mockllm.errors import RequestError
from mockllm.generation.plan import GenerationRequest

ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast"]


class Prediction(Struct):
    """`prediction`: the text that the client expects."""

    content: Content
    type: Literal["content"] = "content"


class AudioOutput(Struct):
    """`audio`: how the reply would sound. It never does: `modalities` has to be text."""

    format: Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
    voice: str | Object


class PromptCacheOptions(Struct):
    """`prompt_cache_options`."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m"] | None = None


class WebSearchOptions(Struct):
    """`web_search_options`; nothing is searched."""

    search_context_size: Literal["low", "medium", "high"] | None = None
    user_location: Object | None = None


class ChatRequest(Sampling, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    messages: list[Turn]
    max_tokens: AtLeastOne | None = None
    logprobs: Flag = None
    top_logprobs: TopLogprobs | None = None
    tools: Annotated[list[Object], Meta(min_length=1)] | None = None
    tool_choice: str | Object | None = None
    parallel_tool_calls: Flag = None
    functions: Annotated[list[Object], Meta(min_length=1, max_length=128)] | None = None
    function_call: str | Object | None = None
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None
    prediction: Prediction | None = None
    modalities: Annotated[list[Literal["text", "audio"]], Meta(min_length=1)] | None = None
    audio: AudioOutput | None = None
    service_tier: ServiceTier | None = None
    store: Flag = None
    metadata: Metadata | None = None
    safety_identifier: SafetyIdentifier | None = None
    prompt_cache_key: CacheKey | None = None
    prompt_cache_retention: CacheRetention | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    web_search_options: WebSearchOptions | None = None
    moderation: Object | None = None
    # What follows is vLLM's.
    include_reasoning: Flag = None
    echo: Flag = None
    add_generation_prompt: Flag = None
    continue_final_message: Flag = None
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: Object | None = None
    media_io_kwargs: dict[str, Object] | None = None
    mm_processor_kwargs: Object | None = None
    return_prompt_text: Flag = None


_decode = decoder(ChatRequest)


def read_chat(body: bytes, lenient: bool = False) -> tuple[ChatRequest, GenerationRequest]:
    """Decode a body, and refuse fields that contradict each other.

    Args:
        body: JSON.
        lenient: Bounds that can be passed are.

    Raises:
        RequestError: The body is no JSON, or not what the API takes.
    """
    asked = _decode(body)
    check_turns(asked.messages)
    limit, param = asked.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, param = asked.max_tokens, "max_tokens"
    request = GenerationRequest(
        asked.model or "",
        (prompt_of(asked.messages),),
        stream=asked.stream is True,
        n=asked.n or 1,
        limit_tokens=limit,
        limit_param=param,
        exact=asked.ignore_eos is True,
        seed=asked.seed,
    )
    if asked.logprobs:
        request.logprobs = asked.top_logprobs or 0
    elif asked.top_logprobs:
        raise RequestError("top_logprobs is only allowed with logprobs: true.", param="top_logprobs")
    if asked.reasoning_effort is not None:
        request.reasoning_effort = asked.reasoning_effort
    if asked.echo:
        request.echo = True
    sample(asked, request, lenient)
    _read_tools(asked, request)
    if asked.prediction is not None:
        _read_prediction(asked, asked.prediction, request)
    if asked.modalities is not None and "audio" in asked.modalities:
        raise RequestError("This server does not speak: modalities must be ['text'].", param="modalities")
    if asked.continue_final_message and asked.add_generation_prompt:
        raise RequestError(
            "continue_final_message and add_generation_prompt cannot both be true.", param="continue_final_message"
        )
    return asked, request


_TIERS = {"auto": "default", "fast": "priority"}


def served_tier(asked: str | None) -> bytes:
    """The tier that served the request, as the reply names it: the one asked for, if one was."""
    return _TIERS.get(asked or "auto", asked or "").encode()


def _read_tools(asked: ChatRequest, request: GenerationRequest) -> None:
    if asked.tools is not None:
        if asked.functions is not None:
            raise RequestError("functions is not allowed with tools, which took its place.", param="functions")
        request.tools = read_tools(asked.tools)
    elif asked.functions is not None:
        request.tools = read_functions(asked.functions)
    if asked.parallel_tool_calls is False:
        request.parallel_tool_calls = False
    if asked.functions is not None:
        request.tool_choice = read_function_call(asked.function_call, request.tools)
    elif asked.function_call is not None:
        raise RequestError("function_call is only allowed with functions.", param="function_call")
    if asked.tool_choice is None:
        return
    if asked.tools is None and asked.tool_choice != "none":
        raise RequestError("tool_choice is only allowed with tools.", param="tool_choice")
    if asked.tools is not None:
        request.tool_choice = read_tool_choice(asked.tool_choice, request.tools)
    if request.tool_choice.named and request.format.param.startswith("structured_outputs"):
        raise RequestError("structured_outputs are not allowed with a named tool.", param="structured_outputs")


def _read_prediction(asked: ChatRequest, prediction: Prediction, request: GenerationRequest) -> None:
    """Take the prediction, with which the API allows no other kind of reply than one plain text.

    Source: https://platform.openai.com/docs/guides/predicted-outputs (limitations).
    """
    if prediction.content is None:
        raise RequestError("Invalid request, at $.prediction.content: this field is required", param="prediction")
    barred = {
        "n": request.n > 1,
        "logprobs": request.logprobs is not None,
        "presence_penalty": (asked.presence_penalty or 0) > 0,
        "frequency_penalty": (asked.frequency_penalty or 0) > 0,
        "tools": bool(request.tools),
    }
    for name, given in barred.items():
        if given:
            raise RequestError(f"prediction is not allowed with {name}.", param="prediction")
    request.prediction = content_text(prediction.content)
