"""Latencies that are drawn: a tagged union, as requests and scripts write them.

    {"type": "lognormal", "mean": 20, "std": 15}

Means, deviations and bounds are of the latency itself, in milliseconds. A draw is a function of its
key and its place, one of 65,536 equally likely quantiles: the tails end there.
"""

from __future__ import annotations

from math import exp, log, log1p, sqrt
from typing import Annotated

from msgspec import Meta, Struct

from mockllm.generation.keyed import normals, u16s

MOST_MS = 1e9
"""Eleven days: more than any client waits, and far from where sums of floats lose microseconds."""

Ms = Annotated[float, Meta(ge=0, le=MOST_MS)]
PositiveMs = Annotated[float, Meta(ge=1e-6, le=MOST_MS)]  # from a nanosecond on: the square of its inverse is finite


class _Distribution(Struct, frozen=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    pass


class Normal(_Distribution, frozen=True, gc=False, tag="normal"):
    """Normal; what falls below 0 is 0."""

    mean: Ms
    std: Ms


class Uniform(_Distribution, frozen=True, gc=False, tag="uniform"):
    """Uniform from `low` to `high`."""

    low: Ms
    high: Ms

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low must be at most high, got {self.low:g} and {self.high:g}")


class Lognormal(_Distribution, frozen=True, gc=False, tag="lognormal"):
    """Lognormal: many short ones, few long ones."""

    mean: PositiveMs
    std: Ms


class Exponential(_Distribution, frozen=True, gc=False, tag="exponential"):
    """Exponential: the gaps of a Poisson process."""

    mean: Ms


Distribution = Normal | Uniform | Lognormal | Exponential


def draws_ms(distribution: Distribution, key: bytes, count: int) -> list[float]:
    """`count` draws for a key, in milliseconds; fewer draws are the beginning of more."""
    match distribution:
        case Normal(mean, std):
            return [max(0.0, mean + std * z) for z in normals(key, count)]
        case Uniform(low, high):
            return [low + (high - low) * share for share in _shares(key, count)]
        case Exponential(mean):
            return [-mean * log(share) for share in _shares(key, count)]
        case Lognormal(mean, std):
            variance = log1p((std / mean) ** 2)
            middle, spread = log(mean) - variance / 2, sqrt(variance)
            return [exp(middle + spread * z) for z in normals(key, count)]


def _shares(key: bytes, count: int) -> list[float]:
    """Uniform in the open interval from 0 to 1."""
    return [(u + 0.5) / 65536 for u in u16s(key, count)]
