"""Chat values turned into their counterparts of the Responses API; shared by both profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from mockllm.dialects.convert.chunks import ChatLogprobs, ChatTokenLogprob, ChatUsage, StreamError
from mockllm.dialects.responses_events import (
    InputTokensDetails,
    Logprob,
    OutputTokensDetails,
    ResponseError,
    TopLogprob,
    Usage,
)

# The codes that the SDK's ResponseError knows, as far as a chat stream can mean them.
_ERROR_CODES = {"server_error", "rate_limit_exceeded", "invalid_prompt"}


def token_logprobs(logprobs: ChatLogprobs | None) -> Sequence[ChatTokenLogprob]:
    """The tokens of a choice's `logprobs`, empty for none."""
    return (logprobs.content or ()) if logprobs is not None else ()


def part_logprobs(tokens: Sequence[ChatTokenLogprob]) -> list[Logprob]:
    """As they stand on an `output_text` part: with the bytes, `[]` for unknown ones."""
    return [
        Logprob(
            token.token,
            token.logprob,
            [TopLogprob(top.token, top.logprob, top.bytes or ()) for top in token.top_logprobs or ()],
            token.bytes or (),
        )
        for token in tokens
    ]


def delta_logprobs(tokens: Sequence[ChatTokenLogprob], *, empty_is_null: bool = False) -> list[Logprob]:
    """As they stand on the delta and `.done` events: without the bytes."""
    return [
        Logprob(
            token.token,
            token.logprob,
            [TopLogprob(top.token, top.logprob) for top in token.top_logprobs or ()] or (None if empty_is_null else ()),
        )
        for token in tokens
    ]


def usage(chat: ChatUsage, *, cache_write: bool, computed_total: bool) -> Usage:
    """Token counts under the names of the Responses API; what was not sent counts 0.

    Args:
        chat: The counts as the chat stream gave them.
        cache_write: Send `cache_write_tokens`, which the API knows since 2026.
        computed_total: `total_tokens` is the sum of the other two, not what was sent.
    """
    prompt, completion = chat.prompt_tokens or 0, chat.completion_tokens or 0
    read, written = 0, 0
    if chat.prompt_tokens_details is not None:
        read = chat.prompt_tokens_details.cached_tokens or 0
        written = chat.prompt_tokens_details.cache_write_tokens or 0
    reasoning = 0
    if chat.completion_tokens_details is not None:
        reasoning = chat.completion_tokens_details.reasoning_tokens or 0
    write: int | UnsetType = written if cache_write else UNSET
    return Usage(
        input_tokens=prompt,
        input_tokens_details=InputTokensDetails(read, write),
        output_tokens=completion,
        output_tokens_details=OutputTokensDetails(reasoning),
        total_tokens=prompt + completion if computed_total else chat.total_tokens or 0,
    )


def response_error(error: StreamError) -> ResponseError:
    """The error of a failed response; the API's set of codes is closed, so others are mapped."""
    said = f"{error.code} {error.type}"
    if error.code in _ERROR_CODES:
        code = error.code
    elif "rate_limit" in said or error.code == "429":
        code = "rate_limit_exceeded"
    elif "invalid_request" in said or "context_length" in said or error.code == "400":
        code = "invalid_prompt"
    else:
        code = "server_error"
    return ResponseError(code, error.message)


def is_gemini(model: str | None) -> bool:
    """Whether the provider-specific rules for Gemini apply."""
    return model is not None and "gemini" in model.lower()


def clean_call_id(call_id: str, model: str | None) -> str:
    """Cuts the `__thought__…` that LiteLLM hangs on a Gemini call's id."""
    return call_id.split("__thought__", 1)[0] if is_gemini(model) else call_id


def url_citation(annotation: object) -> dict[str, Any] | None:
    """A chat `url_citation` in the flat form of the Responses API; None for anything else."""
    inner = annotation.get("url_citation") if isinstance(annotation, Mapping) else None
    if not isinstance(inner, Mapping):
        return None
    kinds = {"start_index": int, "end_index": int, "url": str, "title": str}
    if not all(type(inner.get(key)) is kind for key, kind in kinds.items()):
        return None
    return {"type": "url_citation", **{key: inner[key] for key in kinds}}
