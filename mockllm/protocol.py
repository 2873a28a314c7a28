"""One connection: bytes in, whole requests to the app, replies out as they fall due.

State has one owner each: the reader owns what was received, the playback its cursor, the exchange
what happened. A connection has at most one reply in flight; requests behind it wait, as bytes, in
the reader, and the transport stops reading when they grow too many.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Protocol as Interface

from mockllm.app import App
from mockllm.clock import Clock
from mockllm.exchange import End, Exchange, Reply, Request
from mockllm.http.framing import LAST_CHUNK, Date, chunked, status_line
from mockllm.http.http11 import Continue, HttpError, Limits, Reader
from mockllm.playback import Playback
from mockllm.scheduler import Item, Scheduler

log = logging.getLogger("mockllm.protocol")

READ_AHEAD_BYTES = 65_536
"""How much of the following requests is read while a reply is in flight."""


class Timer(Interface):
    """Wakes the scheduler; set by whoever starts an item."""

    def wake_at(self, when_s: float) -> None:
        """Make sure that the scheduler runs at `when_s`."""
        ...


class Service:
    """What the connections of one server share.

    Args:
        app: Answers requests.
        scheduler: Plays replies.
        timer: Wakes the scheduler.
        clock: The one clock.
        limits: Bounds of a request's size.
        fast_parser: Plain heads may skip h11.
    """

    def __init__(
        self, app: App, scheduler: Scheduler, timer: Timer, clock: Clock, limits: Limits, fast_parser: bool
    ) -> None:
        self.app = app
        self.scheduler = scheduler
        self.timer = timer
        self.clock = clock
        self.limits = limits
        self.fast_parser = fast_parser
        self.date = Date()
        self.connections: set[Connection] = set()
        self.closing = False
        self._emptied: asyncio.Future[None] | None = None

    def start(self, item: Item, when_s: float) -> None:
        """Let `item` fire at `when_s`."""
        if self.scheduler.start(item, when_s):
            self.timer.wake_at(when_s)

    def gone(self, connection: Connection) -> None:
        """A connection was lost or closed."""
        self.connections.discard(connection)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def close(self, timeout_s: float) -> None:
        """Close idle connections at once, the others when their reply is done or `timeout_s` has passed."""
        self.closing = True
        for connection in tuple(self.connections):
            connection.close_when_idle()
        await self._empty(timeout_s)
        for connection in tuple(self.connections):
            connection.abort(End.ABORTED)
        await self._empty(None)

    async def _empty(self, timeout_s: float | None) -> None:
        if self.connections:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._emptied,), timeout=timeout_s)

    def run_overdue(self) -> None:
        """Serve what fell due while a burst of requests was read: one callback's wait, not all of theirs."""
        next_s = self.scheduler.next_s
        if next_s is not None and next_s <= self.clock.now():
            self.scheduler.run_due()


class Connection(asyncio.Protocol):
    """One client's connection.

    Args:
        service: What it shares with the others.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._now = service.clock.now
        self._reader = Reader(service.limits, fast=service.fast_parser)
        self._transport: asyncio.Transport
        self._playback: Playback | None = None
        self._reply: Reply | None = None
        self._exchange: Exchange | None = None
        self._reading_paused = False
        self._head: bytes | None = None  # still to be written
        self._chunked = False
        self._body_allowed = True
        self._peer_behind = False  # the kernel would not take all bytes
        self._all_written = False  # of the reply in flight
        self._serving = False

    # ---- the transport's calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # With a high-water mark of 0 every byte that the kernel did not take pauses the writer,
        # so nothing piles up in user space and the peer's delay is told from ours.
        transport.set_write_buffer_limits(high=0)
        self._service.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data, self._now())
        if self._exchange is None:
            self._serve()
            self._service.run_overdue()
        elif self._reader.buffered_bytes > READ_AHEAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """A client that closes its side is gone: half-close is not supported."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.gone(self)
        if self._exchange is not None:
            self._end(End.CLIENT_GONE, "" if exc is None else type(exc).__name__)

    def pause_writing(self) -> None:
        self._peer_behind = True
        if self._playback is not None:
            self._playback.paused = True
            self._service.scheduler.cancel(self._playback)

    def resume_writing(self) -> None:
        self._peer_behind = False
        if self._exchange is None:
            return
        if self._all_written:
            self._completed()
        elif self._playback is not None:
            self._playback.paused = False
            self._service.start(self._playback, self._playback.due_s)

    def close_when_idle(self) -> None:
        """Close now, or after the reply in flight."""
        if self._reply is None:
            self._transport.close()
        else:
            self._reply.close = True

    def abort(self, outcome: End) -> None:
        """Cut the connection; a reply in flight ends with `outcome` and without its end."""
        if self._exchange is not None:
            self._end(outcome)
        self._transport.abort()

    # ---- requests ----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Answer what the reader holds, until a reply takes time or the bytes run out."""
        self._serving = True
        while self._exchange is None and not self._transport.is_closing():
            try:
                request = self._reader.next()
            except HttpError as error:
                self._refuse(error)
                break
            if request is None:
                break
            if isinstance(request, Continue):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                continue
            self._answer(request)
        self._serving = False
        if self._reading_paused and self._exchange is None:
            self._reading_paused = False
            self._transport.resume_reading()

    def _answer(self, request: Request) -> None:
        app = self._service.app
        exchange = app.exchange(request)
        try:
            reply = app.handle(request, exchange)
        except Exception:
            log.exception("%s %s failed; answering 500", request.method, request.target)
            reply = app.failure(exchange)
        self._play(request, reply, exchange)

    def _refuse(self, error: HttpError) -> None:
        """Answer bytes that are no request; nothing after them is read."""
        now = self._now()
        request = Request("", "", "", {}, b"", now, now, keep_alive=False)
        exchange = self._service.app.exchange(request)
        self._play(request, self._service.app.refusal(error, exchange), exchange)

    # ---- replies -----------------------------------------------------------------------------

    def _play(self, request: Request, reply: Reply, exchange: Exchange) -> None:
        service = self._service
        timeline = reply.timeline
        exchange.status = reply.status
        exchange.timeline = timeline
        self._exchange = exchange
        self._reply = reply
        self._head = self._format_head(request, reply)
        self._playback = playback = Playback(timeline, exchange.arrival_s, self)
        if reply.head_at_arrival:
            self._write(timeline.preamble, last=False)
        due_s: float | None = playback.due_s
        now = self._now()
        if due_s > now:
            service.start(playback, due_s)
            return
        try:
            due_s = playback.fire(now)
        except Exception as error:
            self.broken(error)
            return
        if due_s is not None:
            service.start(playback, due_s)

    def broken(self, error: Exception) -> None:
        """A bug of ours stopped the reply in flight: say so once, and let the client see that it is not whole."""
        exchange = self._exchange
        assert exchange is not None
        log.error("%s %s failed", exchange.method, exchange.path, exc_info=error)
        if self._head is None:
            self.abort(End.ERROR)
            return
        reply = self._service.app.failure(exchange)
        self._reply = reply
        exchange.status = reply.status
        exchange.outcome = End.ERROR
        self._body_allowed, self._chunked = True, False
        assert reply.length_bytes is not None
        self._head = (
            status_line(reply.status)
            + reply.headers
            + b"content-length: %d\r\nconnection: close\r\n\r\n" % reply.length_bytes
        )
        self.emit(reply.timeline.render(0, 1), 1, last=True)

    def _format_head(self, request: Request, reply: Reply) -> bytes:
        service = self._service
        length = reply.length_bytes
        self._body_allowed = request.method != "HEAD" and reply.status not in (204, 304)
        self._chunked = length is None and not request.http10
        if length is not None:
            framing = b"content-length: %d\r\n" % length if reply.status != 204 else b""
        elif self._chunked:
            framing = b"transfer-encoding: chunked\r\n"
        else:
            framing = b""
            reply.close = True  # HTTP/1.0: the end of the connection ends the body
        if not request.keep_alive or service.closing:
            reply.close = True
        if reply.close:
            framing += b"connection: close\r\n"
        elif request.http10:
            framing += b"connection: keep-alive\r\n"
        return b"%b%b%b%b\r\n" % (
            status_line(reply.status),
            service.date.header(service.clock.wall()),
            reply.headers,
            framing,
        )

    def emit(self, events: list[bytes], upto: int, last: bool) -> None:
        """Write events of the reply in flight; see `playback.Sink`."""
        exchange = self._exchange
        assert exchange is not None
        exchange.steps_sent = upto
        written_s = self._write(events, last)
        if self._peer_behind:
            if exchange.peer_writes is None:
                exchange.peer_writes = []
            exchange.peer_writes.append(len(exchange.writes_s))
        exchange.writes_s.append(written_s)
        exchange.writes_upto.append(upto)
        if last and not self._peer_behind:
            self._completed()

    def _write(self, events: list[bytes], last: bool) -> float:
        """Frame and write; returns when the kernel had the bytes (or the buffer, see `_peer_behind`)."""
        exchange = self._exchange
        reply = self._reply
        assert exchange is not None and reply is not None
        head = self._head
        if head is not None and not reply.head_at_arrival and reply.timeline.preamble:
            events = reply.timeline.preamble + events
        if not self._body_allowed:
            data = b""
        elif self._chunked:
            data = chunked(events)
            if last:
                data += LAST_CHUNK
        else:
            data = events[0] if len(events) == 1 else b"".join(events)
        if head is not None:
            self._head = None
            data = head + data
        self._all_written = last
        self._transport.write(data)
        now = self._now()
        if head is not None:
            exchange.head_s = now
        exchange.bytes_sent += len(data)
        exchange.chunks_sent += len(events)
        return now

    def _completed(self) -> None:
        """The kernel has the whole reply: go on with the next request."""
        reply = self._reply
        assert reply is not None
        self._end(End.COMPLETED)
        if reply.close:
            self._transport.close()
        elif not self._serving:
            self._serve()

    def _end(self, outcome: End, reason: str = "") -> None:
        """The exchange is over, however it went."""
        exchange = self._exchange
        assert exchange is not None
        if self._playback is not None:
            self._service.scheduler.cancel(self._playback)
        self._playback = self._exchange = self._reply = self._head = None
        self._all_written = False
        exchange.end_s = self._now()
        if exchange.outcome is None:
            exchange.outcome = outcome
            exchange.close_reason = reason
        self._service.app.finished(exchange)
