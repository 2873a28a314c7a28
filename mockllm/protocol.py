"""One connection: bytes in, whole requests to the app, replies out as they fall due.

State has one owner each: the reader owns what was received, the playback its cursor, the exchange
what happened. A connection has at most one reply in flight; requests behind it wait, as bytes, in
the reader, and the transport stops reading when they grow too many.
"""

from __future__ import annotations

import asyncio
import logging
import socket

from mockllm.errors import RequestError
from mockllm.exchange import End, Exchange, Reply, Request
from mockllm.http.framing import LAST_CHUNK, chunked, status_line
from mockllm.http.http11 import Continue, HttpError, Phase, Reader
from mockllm.playback import Playback
from mockllm.service import Service

log = logging.getLogger("mockllm.protocol")

READ_AHEAD_BYTES = 65_536
"""How much of the following requests is read while a reply is in flight."""

LINGER_S = 1.0
"""How long a refused client's further bytes are read and dropped, so that a reset does not destroy
the reply on its way (RFC 9112 §9.6)."""


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
        self._since_s = 0.0  # when it became idle, or the peer began to stall, or it began to linger
        self._lingering = False
        self.slot = 0.0  # as an item of the scheduler: its timeouts

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
        service = self._service
        service.connections.add(self)
        self._since_s = now = self._now()
        if service.timeouts.check_s:
            service.start(self, now + service.timeouts.check_s)
        if service.max_connections and len(service.connections) > service.max_connections:
            self._refuse(HttpError(503, f"All {service.max_connections} connections are in use.", "overloaded"))

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        began_s = self._now()
        self._reader.feed(data, began_s)
        if self._exchange is None:
            self._serve()
            self._service.run_overdue()
            self._service.stalls.worked(began_s, self._now())
        elif self._reader.buffered_bytes > READ_AHEAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """A client that closes its side is gone: half-close is not supported."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.scheduler.cancel(self)
        self._service.gone(self)
        if self._exchange is not None:
            self._end(End.CLIENT_GONE, "" if exc is None else type(exc).__name__)

    def pause_writing(self) -> None:
        self._peer_behind = True
        self._since_s = now = self._now()
        if self._exchange is not None:
            waits = self._exchange.peer_waits
            if waits is None:
                waits = self._exchange.peer_waits = []
            waits.append(now)
        if self._playback is not None:
            self._playback.paused = True
            self._service.scheduler.cancel(self._playback)

    def resume_writing(self) -> None:
        self._peer_behind = False
        if self._exchange is None:
            return
        self._wait_ended(self._exchange, self._now())
        if self._all_written:
            self._completed()
        elif self._playback is not None:
            self._playback.paused = False
            self._service.start(self._playback, self._playback.due_s)

    @staticmethod
    def _wait_ended(exchange: Exchange, now: float) -> None:
        waits = exchange.peer_waits
        if waits is not None and len(waits) % 2:
            waits.append(now)

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

    def _refuse(self, error: RequestError, outcome: End = End.REFUSED) -> None:
        """Answer bytes that are no request; nothing after them is interpreted."""
        now = self._now()
        first_s = self._reader.first_byte_s
        request = Request("", "", "", {}, b"", now if first_s is None else first_s, now, keep_alive=False)
        exchange = self._service.app.exchange(request)
        exchange.outcome = outcome
        reply = self._service.app.refusal(error, exchange)
        reply.linger = True
        self._play(request, reply, exchange)

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
        due_s = playback.due_s
        now = self._now()
        if due_s > now:
            service.start(playback, due_s)
            return
        try:
            following_s = playback.fire(now)
        except Exception as error:
            self.broken(error)
            return
        if following_s is not None:
            service.start(playback, following_s)

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
        exchange.writes_s.append(written_s)
        exchange.writes_upto.append(upto)
        if last and not self._peer_behind:
            self._completed()

    def _write(self, events: list[bytes], last: bool) -> float:
        """Frame and write; returns when the kernel had the bytes (or the buffer, see `_peer_behind`)."""
        exchange = self._exchange
        reply = self._reply
        assert exchange is not None
        assert reply is not None
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
        if reply.linger:
            self._linger()
        elif reply.close:
            self._transport.close()
        elif not self._serving:
            self._serve()

    def _linger(self) -> None:
        """Say that no more comes, but read on for a while."""
        self._lingering = True
        self._since_s = now = self._now()
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        self._transport.write_eof()
        if self._reading_paused:
            self._transport.resume_reading()
        self._service.scheduler.cancel(self)
        self._service.start(self, now + LINGER_S)

    # ---- timeouts ----------------------------------------------------------------------------

    def fire(self, now: float) -> float | None:
        """Look whether the client takes too long; see `scheduler.Item`."""
        if self._transport.is_closing():
            return None
        deadline_s, timeouts = self._deadline(), self._service.timeouts
        if deadline_s is None or deadline_s > now:
            soon = now + timeouts.check_s
            return soon if deadline_s is None else min(soon, deadline_s)
        if self._exchange is not None:
            self.abort(End.TIMED_OUT)
        elif self._lingering or self._reader.phase is Phase.IDLE:
            self._transport.close()
        else:
            part = "head" if self._reader.phase is Phase.HEAD else "body"
            self._refuse(HttpError(408, f"The request's {part} did not arrive in time.", "timeout"), End.TIMED_OUT)
        return None if self._lingering or self._transport.is_closing() else now + timeouts.check_s

    def _deadline(self) -> float | None:
        """When the client's time is up; None while it is our turn."""
        timeouts = self._service.timeouts
        if self._lingering:
            return self._since_s + LINGER_S
        if self._exchange is not None:
            limit_s, since_s = timeouts.write_s if self._peer_behind else 0.0, self._since_s
        elif self._reader.phase is Phase.IDLE:
            limit_s, since_s = timeouts.keep_alive_s, self._since_s
        else:
            first_s = self._reader.first_byte_s
            since_s = self._since_s if first_s is None else first_s
            limit_s = timeouts.header_s
            if self._reader.phase is Phase.BODY:
                limit_s = timeouts.body_s and limit_s + timeouts.body_s
        return since_s + limit_s if limit_s else None

    def _end(self, outcome: End, reason: str = "") -> None:
        """The exchange is over, however it went."""
        exchange = self._exchange
        assert exchange is not None
        if self._playback is not None:
            self._service.scheduler.cancel(self._playback)
        self._playback = self._exchange = self._reply = self._head = None
        self._all_written = False
        exchange.end_s = self._since_s = self._now()
        if exchange.peer_waits is not None:
            self._wait_ended(exchange, exchange.end_s)
        # What the app made of it stands, unless the client did not even get that.
        if exchange.outcome is None or outcome is not End.COMPLETED:
            exchange.outcome = outcome
            exchange.close_reason = reason
        self._service.app.finished(exchange)
