"""The live line."""

from __future__ import annotations

import io
import logging

from mockllm.cli.status import StatusLine, status_line
from mockllm.truth import Pulse


def test_rates_are_differences_by_time() -> None:
    before = Pulse(10.0, 100, 1_000, 3, 0.0, False)
    now = Pulse(12.0, 400, 41_000, 7, 0.00125, False)
    assert status_line(before, now) == "ended: 150 requests/s, 20,000 tokens/s; 7 in flight; p99 lateness 1.250 ms"


def test_an_overload_is_said() -> None:
    pulse = Pulse(10.0, 1, 1, 0, 0.02, True)
    assert status_line(pulse, pulse).endswith("p99 lateness 20.000 ms OVERLOADED")


def screen(written: str) -> list[str]:
    """What a terminal shows of it, with CR and EL obeyed."""
    return [line.rpartition("\r\x1b[K")[2] for line in written.split("\n")]


def test_log_lines_go_above_the_line() -> None:
    terminal = io.StringIO()
    handler = logging.StreamHandler(terminal)
    logging.getLogger().addHandler(handler)
    try:
        line = StatusLine(terminal)
        with line.below_the_log():
            line.show("1 requests/s")
            logging.getLogger("mockllm.access").warning("GET / 200")
            line.show("2 requests/s")
            assert screen(terminal.getvalue()) == ["GET / 200", "2 requests/s"]
        assert screen(terminal.getvalue()) == ["GET / 200", ""]
        logging.getLogger("mockllm.access").warning("GET /health 200")
        assert screen(terminal.getvalue()) == ["GET / 200", "GET /health 200", ""]
    finally:
        logging.getLogger().removeHandler(handler)
