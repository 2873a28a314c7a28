"""What chat and completions requests have in common: how tokens are sampled, ended and sent.

A value is refused where the API that defines the parameter refuses it; where OpenAI and vLLM both
define it and differ, the laxer rule holds. Types and ranges are msgspec's to check, which costs
nothing where a field is absent; what is left are fields that contradict each other.

Source: https://platform.openai.com/docs/api-reference/chat/create,
https://platform.openai.com/docs/api-reference/completions/create; vLLM's `ChatCompletionRequest`,
`CompletionRequest` and `SamplingParams`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from mockllm.dialects.fields import (
    AtLeastOne,
    Count,
    Flag,
    Int64,
    Object,
    Penalty,
    Share,
    Temperature,
    TopLogprobs,
    read_stop,
)
from mockllm.dialects.formats import Formatted, read_format
from mockllm.errors import RequestError
from mockllm.generation.pieces import piece
from mockllm.generation.plan import GenerationRequest

TokenIds = list[Count]


class StreamOptions(Struct):
    """`stream_options`; `continuous_usage_stats` is vLLM's."""

    include_usage: Flag = None
    include_obfuscation: Flag = None
    continuous_usage_stats: Flag = None


class Sampling(Formatted, kw_only=True):
    """The fields that both requests have; null is the same as nothing. Unknown fields pass."""

    model: str | None = None
    stream: Flag = None
    stream_options: StreamOptions | None = None
    max_completion_tokens: AtLeastOne | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stop: str | list[str] | UnsetType | None = UNSET
    seed: Int64 | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[Count, float] | None = None
    user: str | None = None
    # What follows is vLLM's.
    ignore_eos: Flag = None
    min_tokens: Count | None = None
    stop_token_ids: TokenIds | None = None
    include_stop_str_in_output: Flag = None
    prompt_logprobs: TopLogprobs | None = None
    logprob_token_ids: Annotated[TokenIds, Meta(min_length=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Share | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    length_penalty: float | None = None
    use_beam_search: Flag = None
    allowed_token_ids: TokenIds | None = None
    bad_words: list[Annotated[str, Meta(min_length=1)]] | None = None
    skip_special_tokens: Flag = None
    spaces_between_special_tokens: Flag = None
    add_special_tokens: Flag = None
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    thinking_token_budget: Annotated[int, Meta(ge=-1)] | None = None
    return_tokens_as_token_ids: Flag = None
    return_token_ids: Flag = None
    stream_interval: AtLeastOne | None = None
    priority: Int64 | None = None
    request_id: str | None = None
    session_id: str | None = None
    cache_salt: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^@/\\\x00]*$")] | None = None
    kv_transfer_params: Object | None = None
    ec_transfer_params: Object | None = None
    vllm_xargs: dict[str, str | float | list[str | float]] | None = None
    repetition_detection: Object | None = None
    mockllm: Raw | UnsetType = UNSET


def sample(asked: Sampling, request: GenerationRequest, lenient: bool) -> None:
    """Put the shared fields that are rarely sent into the request.

    Args:
        asked: The decoded body.
        request: Gets them; its `stream` and `limit_tokens` are set.
        lenient: More stop sequences are fine.

    Raises:
        RequestError: Fields contradict each other.
    """
    options = asked.stream_options
    request.format = read_format(asked)
    if options is not None:
        _stream_options(options, request)
    if asked.stop:
        request.stop = read_stop(asked.stop, lenient)
    if asked.stop_token_ids:
        request.stop_token_ids = tuple(asked.stop_token_ids)
    if asked.include_stop_str_in_output:
        request.include_stop = True
    if asked.min_tokens:
        request.min_tokens = asked.min_tokens
        if request.limit_tokens is not None and asked.min_tokens > request.limit_tokens:
            raise RequestError(
                f"min_tokens must be at most {request.limit_param} ({request.limit_tokens}), got {asked.min_tokens}.",
                param="min_tokens",
            )
    if asked.prompt_logprobs is not None:
        if request.stream and asked.prompt_logprobs:
            raise RequestError("prompt_logprobs are not available with stream: true.", param="prompt_logprobs")
        request.prompt_logprobs = asked.prompt_logprobs
    if asked.return_token_ids:
        request.token_ids = True
    if asked.return_tokens_as_token_ids:
        request.tokens_as_ids = True
    request.prompt_limit_tokens = asked.truncate_prompt_tokens
    request.reasoning_limit_tokens = asked.thinking_token_budget
    if asked.logprob_token_ids is not None and request.logprobs is None:
        raise RequestError("logprob_token_ids is only allowed with logprobs.", param="logprob_token_ids")
    if asked.stream_interval is not None:
        request.stream_interval = asked.stream_interval
    if asked.request_id:
        request.reply_id = piece(asked.request_id).decode()
    if asked.mockllm is not UNSET:
        request.overrides = asked.mockllm


def _stream_options(options: StreamOptions, request: GenerationRequest) -> None:
    request.include_usage = bool(options.include_usage)
    request.continuous_usage = bool(options.continuous_usage_stats)
    # An empty object passes, as on vLLM.
    if not request.stream and options != StreamOptions():
        raise RequestError("stream_options is only allowed with stream: true.", param="stream_options")
