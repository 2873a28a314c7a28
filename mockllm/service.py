"""What the connections of one server share, and how they are closed together."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from msgspec import Struct

from mockllm.app import BaseApp
from mockllm.clock import Clock
from mockllm.exchange import End
from mockllm.http.framing import Date
from mockllm.http.http11 import Limits
from mockllm.scheduler import Item, Scheduler


class Timeouts(Struct, frozen=True):
    """How long a client may take, in seconds; 0 is no limit.

    Attributes:
        header_s: From the first byte of a request to the end of its head; then 408.
        body_s: On top of `header_s`, for the whole request; then 408.
        keep_alive_s: Without a request in progress; then the connection is closed.
        write_s: Without taking a byte of a reply; then the connection is cut.
    """

    header_s: float = 0.0
    body_s: float = 0.0
    keep_alive_s: float = 0.0
    write_s: float = 0.0

    @property
    def check_s(self) -> float:
        """How often a connection must look at its state so that no timeout is missed; 0 for never."""
        return min(
            [limit for limit in (self.header_s, self.body_s, self.keep_alive_s, self.write_s) if limit], default=0.0
        )


class Timer(Protocol):
    """Wakes the scheduler; set by whoever starts an item."""

    def wake_at(self, when_s: float) -> None:
        """Make sure that the scheduler runs at `when_s`."""
        ...


class Client(Protocol):
    """An open connection."""

    def close_when_idle(self) -> None:
        """Close now, or after the reply in flight."""
        ...

    def abort(self, outcome: End) -> None:
        """Cut the connection; a reply in flight ends with `outcome` and without its end."""
        ...


class Service:
    """What the connections of one server share.

    Args:
        app: Answers requests.
        scheduler: Plays replies.
        timer: Wakes the scheduler.
        clock: The one clock.
        limits: Bounds of a request's size.
        timeouts: Bounds of a client's patience with us, and ours with it.
        max_connections: More are answered 503; 0 is no limit.
        fast_parser: Plain heads may skip h11.

    Attributes:
        connections: The open ones.
        turned_away: How many of them are only being told that there are too many.
        closing: No further request is answered on a connection after the one in progress.
    """

    def __init__(
        self,
        app: BaseApp,
        scheduler: Scheduler,
        timer: Timer,
        clock: Clock,
        *,
        limits: Limits,
        timeouts: Timeouts,
        max_connections: int,
        fast_parser: bool,
    ) -> None:
        self.app = app
        self.stalls = app.truth.stall_meter
        self.scheduler = scheduler
        self.timer = timer
        self.clock = clock
        self.limits = limits
        self.timeouts = timeouts
        self.max_connections = max_connections
        self.fast_parser = fast_parser
        self.date = Date()
        self.connections: set[Client] = set()
        self.turned_away = 0
        self.closing = False
        self._emptied: asyncio.Event | None = None

    @property
    def full(self) -> bool:
        """There are more connections than may be."""
        return 0 < self.max_connections < len(self.connections) - self.turned_away

    def start(self, item: Item, when_s: float) -> None:
        """Let `item` fire at `when_s`."""
        if self.scheduler.start(item, when_s):
            self.timer.wake_at(when_s)

    def gone(self, connection: Client) -> None:
        """A connection was lost or closed."""
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None:
            self._emptied.set()

    async def close(self, hurry: asyncio.Event, timeout_s: float) -> None:
        """Close idle connections at once, the others when their reply is done.

        Those that remain when `hurry` is set, or after `timeout_s`, are cut.
        """
        self.closing = True
        for connection in tuple(self.connections):
            connection.close_when_idle()
        if self.connections:
            self._emptied = asyncio.Event()
            hurried = asyncio.ensure_future(hurry.wait())
            emptied = asyncio.ensure_future(self._emptied.wait())
            await asyncio.wait((hurried, emptied), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            for connection in tuple(self.connections):
                connection.abort(End.ABORTED)
            await emptied
            hurried.cancel()
            await asyncio.wait((hurried,))

    def run_overdue(self) -> None:
        """Serve what fell due while a burst of requests was read: one callback's wait, not all of theirs."""
        next_s = self.scheduler.next_s
        if next_s is not None and next_s <= (now := self.clock.now()):
            self.stalls.served_late(now - next_s, self.scheduler.run_due())


async def wait(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for `event`, for `timeout_s` at most."""
    if timeout_s:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), timeout_s)
