"""What an override may say to whom, and what it makes of a reply's timing."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, cycle, islice

from mockllm.errors import RequestError
from mockllm.generation.distributions import draws_ms
from mockllm.generation.keyed import derive
from mockllm.generation.overrides import Override
from mockllm.generation.plan import GenerationRequest


def check_whole(override: Override, where: str) -> None:
    """Refuse keys that contradict each other.

    Args:
        where: What the override is called in errors, e.g. `mockllm`.

    Raises:
        RequestError: Its param is the key.
    """
    if override.refusal is not None and (override.text is not None or override.tool_calls):
        raise _unfit(where, "refusal", "a reply that refuses has neither text nor tool_calls")
    exact = override.text is not None or override.refusal is not None or override.tool_calls
    if override.output_tokens is not None and exact:
        raise _unfit(where, "output_tokens", "it is for free text, and the reply is given")


def check_for(override: Override, request: GenerationRequest) -> None:
    """Refuse what the request's API has no place for.

    Raises:
        RequestError: Its param is the key.
    """
    if request.text_only:
        for name in ("reasoning", "tool_calls"):
            if getattr(override, name):
                raise _unfit("mockllm", name, "this endpoint answers with text alone")
    if request.tool_choice.legacy and override.tool_calls is not None and len(override.tool_calls) > 1:
        raise _unfit("mockllm", "tool_calls", "a request with functions takes one call")


def _unfit(where: str, name: str, why: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{where}.{name}: {why}", param=f"{where}.{name}")


def own_timing(
    override: Override, key: bytes, steps: int, offset_s: float, after_s: Sequence[float]
) -> tuple[float, Sequence[float]]:
    """A reply's timing, with what the override says about it.

    Args:
        key: 16 bytes, where `override.draws`.
        steps: How many tokens, ≥ 1.
        offset_s, after_s: What holds without it; see `Latency.stream`.
    """
    ttft, itl = override.ttft_ms, override.itl_ms
    if ttft is not None:
        offset_s = (ttft if isinstance(ttft, float | int) else draws_ms(ttft, derive(key, b"ttft"), 1)[0]) / 1e3
    if itl is not None:
        if isinstance(itl, float | int):
            gap_s = itl / 1e3
            return offset_s, array("d", [k * gap_s for k in range(steps)])
        if isinstance(itl, tuple):
            gaps_ms = list(islice(cycle(itl), steps - 1))
        else:
            gaps_ms = draws_ms(itl, derive(key, b"itl"), steps - 1)
        after_s = array("d", [at_ms / 1e3 for at_ms in accumulate(gaps_ms, initial=0.0)])
    return offset_s, after_s
