"""The body of `POST /v1/completions`, decoded and checked.

Source: https://platform.openai.com/docs/api-reference/completions/create; vLLM's
`CompletionRequest` for what it adds.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from mockllm.dialects.decode import decoder
from mockllm.dialects.fields import Count, Flag, TopLogprobs
from mockllm.dialects.sampling import Sampling, sample
from mockllm.errors import RequestError
from mockllm.generation.plan import GenerationRequest, Message, Prompt

DEFAULT_LIMIT_TOKENS = 16
"""What the API takes where `max_tokens` is missing."""

MOST_PROMPTS = 2048
"""The longest list of prompts; vLLM takes 1,024."""


class CompletionRequest(Sampling, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    prompt: str | list[str | list[int] | int] | None
    max_tokens: Count | None = None
    best_of: Annotated[int, Meta(ge=0, le=20)] | None = None
    logprobs: TopLogprobs | None = None
    echo: Flag = None
    suffix: str | None = None


_decode = decoder(CompletionRequest)


def read_completion(body: bytes, lenient: bool = False) -> tuple[CompletionRequest, GenerationRequest]:
    """Decode a body, and refuse fields that contradict each other.

    Args:
        body: JSON.
        lenient: Bounds that can be passed are.

    Raises:
        RequestError: The body is no JSON, or not what the API takes.
    """
    asked = _decode(body)
    limit, param = asked.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, param = asked.max_tokens, "max_tokens"
    if limit == 0 and not asked.echo:
        raise RequestError(f"{param} must be at least 1 where the prompt is not echoed, got 0.", param=param)
    # A load generator's way to ask for exactly so many tokens: `stop: null` beside a limit.
    exact = limit is not None and (asked.ignore_eos is True or asked.stop is None)
    request = GenerationRequest(
        asked.model or "",
        _prompts(asked.prompt, asked.suffix or ""),
        stream=asked.stream is True,
        n=asked.n or 1,
        limit_tokens=DEFAULT_LIMIT_TOKENS if limit is None else limit,
        limit_param=param,
        prompt_param="prompt",
        exact=exact,
        seed=asked.seed,
        logprobs=asked.logprobs,
        echo=asked.echo is True,
        reasoning_effort="none",
        limit_is_default=limit is None,
        text_only=True,
    )
    sample(asked, request, lenient)
    if asked.best_of is not None:
        _read_best_of(asked.best_of, request)
    return asked, request


def _read_best_of(best_of: int, request: GenerationRequest) -> None:
    if best_of < request.n:
        raise RequestError(f"best_of must be at least n ({request.n}), got {best_of}.", param="best_of")
    if best_of > request.n and request.stream:
        raise RequestError("best_of must be n with stream: true.", param="best_of")
    request.best_of = best_of


def _prompts(prompt: str | list[str | list[int] | int] | None, suffix: str) -> tuple[Prompt, ...]:
    """A text, a list of texts, one list of token ids, or a list with both; null is the empty text."""
    if prompt is None:
        prompt = ""
    if isinstance(prompt, str):
        return (_text(prompt, suffix),)
    if not prompt:
        raise RequestError("prompt must be a text, a list of texts, or token ids.", param="prompt")
    if all(isinstance(part, int) for part in prompt):
        return (_ids(prompt, "prompt", suffix),)
    if len(prompt) > MOST_PROMPTS:
        raise RequestError(f"prompt must have at most {MOST_PROMPTS} prompts, got {len(prompt)}.", param="prompt")
    prompts: list[Prompt] = []
    for number, part in enumerate(prompt):
        place = f"prompt[{number}]"
        if isinstance(part, str):
            prompts.append(_text(part, suffix))
        elif isinstance(part, list) and part:
            prompts.append(_ids(part, place, suffix))
        else:
            raise RequestError(f"{place} must be a text or a list of token ids.", param=place)
    return tuple(prompts)


def _text(text: str, suffix: str) -> Prompt:
    return Prompt((Message("", text),), suffix=suffix)


def _ids(ids: Any, place: str, suffix: str) -> Prompt:
    if min(ids) < 0:
        number = next(k for k, token in enumerate(ids) if token < 0)
        raise RequestError(f"A token id is at least 0, got {ids[number]}.", param=f"{place}[{number}]")
    return Prompt(token_ids=tuple(ids), suffix=suffix)
