"""The live line of `--status`: rates, open streams and lateness, once a second, on a terminal."""

from __future__ import annotations

import asyncio
from typing import Protocol, TextIO

from mockllm.truth import Pulse

PERIOD_S = 1.0
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"  # ECMA-48: CR, then EL


class Pulsing(Protocol):
    """Something that serves."""

    def pulse(self) -> Pulse:
        """A cheap reading."""
        ...


def status_line(before: Pulse, now: Pulse) -> str:
    """What happened between two readings."""
    elapsed_s = max(now.at_s - before.at_s, 1e-9)
    requests = (now.requests - before.requests) / elapsed_s
    tokens = (now.tokens - before.tokens) / elapsed_s
    late = f"p99 lateness {now.p99_s * 1e3:.3f} ms" + (" OVERLOADED" if now.overloaded else "")
    return f"{requests:,.0f} requests/s, {tokens:,.0f} tokens/s, {now.in_flight:,} in flight, {late}"


async def show_status(server: Pulsing, terminal: TextIO) -> None:
    """Rewrite the line until cancelled; then clear it."""
    before = server.pulse()
    try:
        while True:
            await asyncio.sleep(PERIOD_S)
            now = server.pulse()
            terminal.write(_TO_LINE_START_AND_CLEAR + status_line(before, now))
            terminal.flush()
            before = now
    finally:
        terminal.write(_TO_LINE_START_AND_CLEAR)
        terminal.flush()
