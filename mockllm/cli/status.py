"""The live line of `--status`: rates, open streams and lateness, once a second, on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Protocol, TextIO

from mockllm.truth import Pulse

PERIOD_S = 1.0
TO_LINE_START_AND_CLEAR = "\r\x1b[K"  # ECMA-48: CR, then EL


class Pulsing(Protocol):
    """Something that serves."""

    def pulse(self) -> Pulse:
        """A cheap reading."""
        ...


class StatusLine:
    """The last line of a terminal: what is written to the terminal meanwhile goes above it.

    Args:
        terminal: Where it stands.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._text = ""

    def show(self, text: str) -> None:
        """Put another text in its place; an empty one clears it."""
        self._text = text
        self.write("")
        self.flush()

    def write(self, lines: str) -> None:
        """Write whole lines above it."""
        self._terminal.write(TO_LINE_START_AND_CLEAR + lines + self._text)

    def flush(self) -> None:
        self._terminal.flush()

    @contextlib.contextmanager
    def below_the_log(self) -> Iterator[None]:
        """Have log lines written above it, which would else go on where it ends; clear it in the end."""
        handlers = [
            handler
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is self._terminal
        ]
        for handler in handlers:
            handler.setStream(self)
        try:
            yield
        finally:
            for handler in handlers:
                handler.setStream(self._terminal)
            self.show("")


def status_line(before: Pulse, now: Pulse) -> str:
    """What happened between two readings. A request, and its tokens, count when it has ended."""
    elapsed_s = max(now.at_s - before.at_s, 1e-9)
    requests = (now.requests - before.requests) / elapsed_s
    tokens = (now.tokens - before.tokens) / elapsed_s
    late = f"p99 lateness {now.p99_s * 1e3:.3f} ms" + (" OVERLOADED" if now.overloaded else "")
    return f"ended: {requests:,.0f} requests/s, {tokens:,.0f} tokens/s; {now.in_flight:,} in flight; {late}"


async def show_status(server: Pulsing, terminal: TextIO) -> None:
    """Rewrite the line until cancelled; then clear it."""
    before = server.pulse()
    line = StatusLine(terminal)
    with line.below_the_log():
        while True:
            await asyncio.sleep(PERIOD_S)
            now = server.pulse()
            line.show(status_line(before, now))
            before = now
