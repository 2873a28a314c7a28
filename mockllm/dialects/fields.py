"""Types of fields that several APIs have: what JSON may stand there, and within which bounds.

msgspec checks them while it decodes, and only where they are sent. Bounds are the laxer of OpenAI's
and vLLM's.

Source: https://platform.openai.com/docs/api-reference/chat/create,
https://platform.openai.com/docs/api-reference/responses/create; vLLM's `SamplingParams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from mockllm.errors import RequestError

MOST_LOGPROBS = 20
"""The most alternatives of a token: OpenAI's bound for chat, and vLLM's default `--max-logprobs`."""

STOP_SEQUENCES = 4
"""As many as the APIs take; lenient servers take more."""

Flag = bool | None
Object = dict[str, Any]
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TopLogprobs = Annotated[int, Meta(ge=0, le=MOST_LOGPROBS)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]
CacheRetention = Literal["in_memory", "24h"]
CacheKey = Annotated[str, Meta(max_length=64)]
SafetyIdentifier = Annotated[str, Meta(max_length=128)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]


def read_stop(stop: str | Sequence[str], lenient: bool = False) -> tuple[str, ...]:
    """The stop sequences of `stop`; an empty text is none.

    Raises:
        RequestError: There are more than the APIs take, or one of several is empty.
    """
    if isinstance(stop, str):
        return (stop,) if stop else ()
    if len(stop) > STOP_SEQUENCES and not lenient:
        raise RequestError(f"stop must have at most {STOP_SEQUENCES} sequences, got {len(stop)}.", param="stop")
    for number, sequence in enumerate(stop):
        if not sequence:
            raise RequestError("A stop sequence must not be empty.", param=f"stop[{number}]")
    return tuple(stop)
