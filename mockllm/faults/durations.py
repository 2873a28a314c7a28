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
    whole, ms = divmod(ms, 1000)
    fraction = f".{ms:03}".rstrip("0") if ms else ""
    if whole < 60:
        return f"{whole}{fraction}s"
    minutes, whole = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{whole}{fraction}s"
    return f"{minutes // 60}h{minutes % 60}m{whole}{fraction}s"
