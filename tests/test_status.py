"""The live line."""

from __future__ import annotations

from mockllm.cli.status import status_line
from mockllm.truth import Pulse


def test_rates_are_differences_by_time() -> None:
    before = Pulse(10.0, 100, 1_000, 3, 0.0, False)
    now = Pulse(12.0, 400, 41_000, 7, 0.00125, False)
    assert status_line(before, now) == "150 requests/s, 20,000 tokens/s, 7 in flight, p99 lateness 1.250 ms"


def test_an_overload_is_said() -> None:
    pulse = Pulse(10.0, 1, 1, 0, 0.02, True)
    assert status_line(pulse, pulse).endswith("p99 lateness 20.000 ms OVERLOADED")
