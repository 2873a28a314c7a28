"""Durations as the API's rate limit headers write them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A duration such as `20ms`, `1.5s`, `6m0s` or `1h0m0s`.

    Args:
        seconds: ≥ 0; rounded up to the next millisecond, so that who waits so long does not come early.

    Source: https://platform.openai.com/docs/guides/rate-limits (rate limits in headers), whose
    values are Go's `time.Duration` texts.
    """
    ms = -int(-round(seconds * 1e3, 6) // 1)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, ms = divmod(ms, 60_000)
    text = f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if not minutes:
        return text
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
