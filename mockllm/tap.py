"""Stands between a connection and its transport while a reply with a faulty wire goes out.

The connection writes as ever; the tap keeps bytes back, spreads them over time, and knows when
and how the connection is to end. A good reply never has one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Protocol

from mockllm.exchange import Exchange, Reply, Wire
from mockllm.faults.connection import framed_bytes, whole_steps
from mockllm.scheduler import Item

HEAD_PIECES = 20
"""In how many pieces a slow head comes, at most."""


class Writable(Protocol):
    """What takes bytes: a transport, or a tap."""

    def write(self, data: bytes, /) -> None: ...


class Tap:
    """One reply's bytes on their way to the transport; an item of the scheduler.

    Args:
        wire: What goes wrong.
        reply: The reply.
        head_bytes: Length of its head.
        arrival_s: When the request arrived.
        out: The transport.
        now: Tells the time.
        start: Lets the tap fire at an instant.
        over: Called when the kept bytes are out, or the reply is at its faulty end.
    """

    def __init__(
        self,
        wire: Wire,
        reply: Reply,
        head_bytes: int,
        arrival_s: float,
        out: Writable,
        now: Callable[[], float],
        start: Callable[[Item, float], None],
        over: Callable[[], None],
    ) -> None:
        self._wire = wire
        self._out = out
        self._now = now
        self._start = start
        self._over = over
        self._end_s = arrival_s + wire.end_s
        self._whole_bytes = None if reply.length_bytes is None else head_bytes + reply.length_bytes
        self._before_bytes = head_bytes + framed_bytes(reply.timeline.preamble)
        self._stop_bytes = head_bytes if wire.stop_after_head else wire.stop_bytes
        self._piece_bytes, self._gap_s = wire.piece_bytes, wire.gap_s
        self._paced_bytes: float = float("inf") if wire.piece_bytes else 0
        if wire.head_s:
            self._piece_bytes = ceil(head_bytes / HEAD_PIECES)
            self._gap_s = wire.head_s / max(1, ceil(head_bytes / self._piece_bytes) - 1)
            self._paced_bytes = head_bytes
        self._kept = bytearray()
        self._taken_bytes = 0
        self._sent_bytes = 0
        self._next_s = 0.0  # when the next piece may leave; 0.0 before the first
        self._stopped = False  # no further byte is taken
        self._ended = False  # the reply is at its end
        self.slot = 0.0

    @property
    def cut(self) -> bool:
        """The reply does not come to its proper end."""
        return self._stopped or (self._ended and bool(self._wire.end))

    def write(self, data: bytes) -> None:
        """Take bytes of the reply."""
        if self._stopped:
            return
        self._next_s = self._next_s or self._now()
        if self._stop_bytes is not None and self._taken_bytes + len(data) >= self._stop_bytes:
            data = data[: self._stop_bytes - self._taken_bytes]
            self._stopped = True
        self._taken_bytes += len(data)
        if self._paced_bytes:
            self._kept += data
        else:
            self._send(data)
        if not self.slot and (self._kept or self._stopped):
            self._start(self, self._due_s())

    def proper_end(self) -> bool:
        """The reply is at its end: whether the connection may go on.

        If not, the tap calls `over` in its time, or never.
        """
        self._ended = True
        self._next_s = self._next_s or self._now()
        if not self._kept and not self.cut:
            return True
        if not self.slot:
            self._start(self, self._due_s())
        return False

    def fire(self, now: float) -> float | None:
        """Send the next piece, or end the reply; see `scheduler.Item`."""
        if self._kept:
            paced = self._sent_bytes < self._paced_bytes
            upto = self._piece_bytes if paced else len(self._kept)
            data = bytes(self._kept[:upto])
            del self._kept[:upto]
            self._send(data)
            if self._sent_bytes < self._paced_bytes:
                self._next_s = max(now, self._next_s) + self._gap_s
            if self._kept or self.cut:
                return max(now, self._due_s())
            if not self._ended:
                return None
        elif self.cut and self._due_s() > now:
            return self._due_s()
        if self._wire.end != "hold" or not self.cut:
            self._over()
        return None

    def _send(self, data: bytes) -> None:
        if data:
            self._sent_bytes += len(data)
            self._out.write(data)
            self._next_s = max(self._next_s, self._now())

    def _due_s(self) -> float:
        """When the next piece leaves, or else the end comes."""
        return self._next_s if self._kept else max(self._end_s, self._next_s + self._wire.delay_s)

    def settle(self, exchange: Exchange) -> None:
        """Write into the record what the client really got."""
        exchange.bytes_sent = self._sent_bytes
        sizes = self._wire.step_bytes
        if self._whole_bytes is not None and self._sent_bytes < self._whole_bytes:
            exchange.token_steps = 0
        elif self._stopped and sizes is not None:
            exchange.token_steps = whole_steps(sizes, self._sent_bytes - self._before_bytes)
