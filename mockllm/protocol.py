"""One connection: bytes in, whole requests to the app, replies out as they fall due.

State has one owner each: the reader owns what was received, the playback its cursor, the exchange
what happened. A connection has at most one reply in flight; requests behind it wait, as bytes, in
the reader, and the transport stops reading when they grow too many.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import cast

from mockllm.exchange import End, Exchange, Reply, Request, Wire
from mockllm.http.framing import LAST_CHUNK, chunked, status_line
from mockllm.http.http11 import Continue, HttpError, Phase, Reader
from mockllm.playback import Playback
from mockllm.service import Service
from mockllm.tap import Tap, Writable

log = logging.getLogger("mockllm.protocol")

READ_AHEAD_BYTES = 65_536
"""How much of the following requests is read while a reply is in flight."""

BURST_S = 0.001
"""How long one connection's pipelined requests are answered before others have their turn."""

LINGER_S = 1.0
"""How long a refused client's further bytes are read and dropped, so that a reset does not destroy
the reply on its way (RFC 9112 §9.6)."""

_LINGER_NOT = struct.pack("ii", 1, 0)
"""SO_LINGER on, for 0 s: closing resets the connection (POSIX `struct linger`)."""


class Connection(asyncio.Protocol):
    """One client's connection.

    Args:
        service: What it shares with the others.
    """

    # One piece of memory less to bring into the cache at each of a thousand streams' turns.
    __slots__ = (
        "_all_written", "_body_allowed", "_chunked", "_exchange", "_head", "_lingering", "_now", "_out",
        "_peer_behind", "_playback", "_reader", "_reading_paused", "_reply", "_service", "_serving", "_since_s",
        "_tap", "_transport", "_turned_away", "_unsent_bytes", "_yielded", "slot",
    )  # fmt: skip

    def __init__(self, service: Service) -> None:
        self._service = service
        self._now = service.clock.now
        self._reader = Reader(service.limits, fast=service.fast_parser)
        self._transport: asyncio.Transport
        self._out: Writable  # the transport, or a tap before it
        self._tap: Tap | None = None  # while a fault spoils the reply on the wire
        self._playback: Playback | None = None
        self._reply: Reply | None = None
        self._exchange: Exchange | None = None
        self._reading_paused = False
        self._yielded = False  # the reader may hold requests, and others have their turn first
        self._turned_away = False  # it was one connection too many
        self._head: bytes | None = None  # still to be written
        self._chunked = False
        self._body_allowed = True
        self._peer_behind = False  # the kernel would not take all bytes
        self._unsent_bytes = 0  # what waited for the peer when that was looked at last
        self._all_written = False  # of the reply in flight
        self._serving = False
        self._since_s = 0.0  # when it became idle, or the peer took bytes last, or it began to linger
        self._lingering = False
        self.slot = 0.0  # as an item of the scheduler: its timeouts

    # ---- the transport's calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's are none by their class
        self._transport = self._out = transport
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # With a high-water mark of 0 every byte that the kernel did not take pauses the writer,
        # so nothing piles up in user space and the peer's delay is told from ours. Over TLS the
        # mark itself already pauses, and the layer below holds up to 64 KiB unseen.
        transport.set_write_buffer_limits(high=0 if transport.get_extra_info("sslcontext") is None else 1)
        service = self._service
        service.connections.add(self)
        self._since_s = now = self._now()
        if service.timeouts.check_s:
            service.start(self, now + service.timeouts.check_s)
        if service.full:
            self._turned_away = True
            service.turned_away += 1
            self._refuse(HttpError(503, f"All {service.max_connections} connections are in use.", "overloaded"))

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        began_s = self._now()
        self._reader.feed(data, began_s)
        if self._exchange is None and not self._yielded and not self._peer_behind:
            self._serve()
            self._service.run_overdue()
            self._service.stalls.worked(began_s, self._now())
        elif self._reader.buffered_bytes > READ_AHEAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """A client that closes its side is gone: half-close is not supported."""
        # Closing would wait until the client takes what the buffer holds, which it may never do.
        self.abort(End.CLIENT_GONE)

    def connection_lost(self, exc: Exception | None) -> None:
        service = self._service
        service.scheduler.cancel(self)
        service.turned_away -= self._turned_away
        service.gone(self)
        self._cut(End.CLIENT_GONE, "" if exc is None else type(exc).__name__)

    def pause_writing(self) -> None:
        self._peer_behind = True
        self._unsent_bytes = self._transport.get_write_buffer_size()
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
        if self._exchange is not None:
            self._wait_ended(self._exchange, self._now())
        if self._exchange is None or self._all_written:
            # Not here: asyncio's transport loses a connection twice that is closed within this call.
            self._yield()
        elif self._playback is not None:
            self._playback.paused = False
            self._service.start(self._playback, self._playback.due_s)

    @staticmethod
    def _wait_ended(exchange: Exchange, now: float) -> None:
        waits = exchange.peer_waits
        if waits is not None and len(waits) % 2:
            waits.append(now)

    def close_when_idle(self) -> None:
        """Close now, or after the reply to the request whose head has come."""
        if self._tap is not None and self._tap.cut:  # there is no end to wait for
            self.abort(End.ABORTED)
        elif self._reply is not None:
            self._reply.close = True
        elif self._reader.phase is not Phase.BODY:
            self._transport.close()

    def abort(self, outcome: End) -> None:
        """Cut the connection; a reply in flight ends with `outcome` and without its end."""
        self._cut(outcome)
        self._transport.abort()

    def _cut(self, outcome: End, reason: str = "") -> None:
        """End what is under way: a reply, or a request whose head has come."""
        if self._exchange is None and (request := self._reader.incomplete(self._now())) is not None:
            self._reader.close()
            self._exchange = self._service.app.unhandled(request)
        if self._exchange is not None:
            self._end(outcome, reason)

    # ---- requests ----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Answer what the reader holds, until a reply takes time or the bytes run out."""
        self._serving = True
        began_s = self._now()
        while self._exchange is None and not self._peer_behind and not self._transport.is_closing():
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
            if self._since_s - began_s > BURST_S and self._reader.buffered_bytes and self._exchange is None:
                self._yield()
                break
        self._serving = False
        if self._reading_paused and not (self._exchange or self._yielded or self._peer_behind):
            self._reading_paused = False
            self._transport.resume_reading()

    def _yield(self) -> None:
        """Go on with the reply's end or the reader's requests when what is due by now has been done."""
        self._yielded = True
        self._service.scheduler.cancel(self)
        self._service.start(self, self._now())

    def _answer(self, request: Request) -> None:
        app = self._service.app
        exchange = app.exchange(request)
        try:
            reply = app.handle(request, exchange)
        except Exception:
            log.exception("%s %s failed; answering 500", request.method, request.target)
            reply = app.failure(exchange)
        self._play(request, reply, exchange)

    def _refuse(self, error: HttpError, outcome: End = End.REFUSED) -> None:
        """Answer bytes that are no request; nothing after them is interpreted."""
        now = self._now()
        first_s = now if error.first_byte_s is None else error.first_byte_s
        request = Request(error.method, error.target, "", {}, b"", first_s, now, keep_alive=False)
        exchange = self._service.app.unhandled(request)
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
        try:
            self._head = self._format_head(request, reply)
            if reply.wire is not None:
                self._tap_wire(reply, reply.wire, exchange)
            elif timeline.steps == 1 and timeline.offset_s == 0.0 and timeline.prepare is None:
                # Due at once: 0.9 µs less than by a playback.
                self.emit(timeline.render(0, 1), 1, last=True)
                return
            self._playback = playback = Playback(timeline, exchange.arrival_s, self)
            due_s = playback.due_s
            now = self._now()
            if due_s > now and reply.head_at_arrival:
                self._write([], last=False)
                if self._peer_behind:  # `resume_writing` starts it
                    return
            following_s = due_s if due_s > now else playback.fire(now)
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
        if exchange.bytes_sent:
            self.abort(End.ERROR)
            return
        self._reply = reply = self._service.app.failure(exchange)
        exchange.status = reply.status
        exchange.timeline = reply.timeline
        exchange.finish_reason = ""  # nothing of the plan was sent, so there is no lateness to measure
        request = Request(exchange.method, exchange.path, "", {}, b"", exchange.first_byte_s, exchange.arrival_s)
        self._head = self._format_head(request, reply)
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
        if self._transport.is_closing():  # a write failed: `connection_lost` is on its way
            if self._playback is not None:
                self._playback.paused = True
            return
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
        if head is not None and reply.timeline.preamble:
            events = reply.timeline.preamble + events
        if not self._body_allowed:
            data = b""
        elif self._chunked:
            data = chunked(events)
            if last and (reply.wire is None or not reply.wire.unfinished):
                data += LAST_CHUNK
        else:
            data = events[0] if len(events) == 1 else b"".join(events)
        if head is not None:
            self._head = None
            data = head + data
        self._all_written = last
        self._out.write(data)
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
        if self._transport.is_closing():  # it has not: the last write failed
            return
        if self._tap is not None and not self._tap.proper_end():
            return
        self._end(End.COMPLETED)
        if reply.linger:
            self._linger()
        elif reply.close:
            self._transport.close()
        elif not self._serving:
            self._serve()

    # ---- injected faults ---------------------------------------------------------------------

    def _tap_wire(self, reply: Reply, wire: Wire, exchange: Exchange) -> None:
        assert self._head is not None
        service = self._service
        self._out = self._tap = Tap(
            wire, reply, len(self._head), exchange.arrival_s, self._transport, self._now, service.start, self._tapped
        )

    def _tapped(self) -> None:
        """The tap has let out what it kept, or the reply is at its faulty end."""
        assert self._tap is not None
        assert self._reply is not None
        if not self._tap.cut:
            if not self._peer_behind:
                self._completed()
            return
        wire = self._reply.wire
        self._end(End.FAULTED)
        if wire is None or wire.end != "reset":
            self._transport.close()
            return
        sock = self._transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._transport.abort()

    def _linger(self) -> None:
        """Say that no more comes, but read on for a while."""
        self._lingering = True
        self._since_s = now = self._now()
        try:
            if self._transport.can_write_eof():  # TLS cannot: the reply's length tells its end
                self._transport.write_eof()
        except OSError:  # reset since the last write
            self._transport.abort()
            return
        if self._reading_paused:
            self._transport.resume_reading()
        self._service.scheduler.cancel(self)
        self._service.start(self, now + LINGER_S)

    # ---- timeouts ----------------------------------------------------------------------------

    def fire(self, now: float) -> float | None:
        """Go on after others had their turn, or look whether the client takes too long; see `scheduler.Item`."""
        if self._transport.is_closing():
            return None
        if self._yielded:
            self._yielded = False
            if not self._all_written:
                self._serve()
            elif not self._peer_behind:
                self._completed()
        elif (deadline_s := self._deadline()) is not None and deadline_s <= now and not self._took_bytes(now):
            if not self._begun:
                self._give_up()
                return None
            part = "head" if self._reader.phase is Phase.HEAD else "body"
            error = HttpError(408, f"The request's {part} did not arrive in time.", "timeout")
            self._reader.refuse(error)
            self._refuse(error, End.TIMED_OUT)
        if self.slot or self._transport.is_closing():
            return None
        check_s, deadline_s = self._service.timeouts.check_s, self._deadline()
        soon = now + check_s if check_s else None
        return soon if deadline_s is None else deadline_s if soon is None else min(soon, deadline_s)

    @property
    def _begun(self) -> bool:
        """A request has begun to arrive, and nothing else is under way."""
        busy = self._exchange is not None or self._peer_behind or self._lingering
        return not busy and self._reader.phase in (Phase.HEAD, Phase.BODY)

    def _give_up(self) -> None:
        """The client's time is up, and there is nothing to tell it."""
        if self._exchange is not None or self._peer_behind:
            self.abort(End.TIMED_OUT)
        else:
            self._transport.close()

    def _took_bytes(self, now: float) -> bool:
        """Whether a slow peer took some of what waits for it since that was looked at last."""
        before_bytes = self._unsent_bytes
        if not self._peer_behind:
            return False
        self._unsent_bytes = self._transport.get_write_buffer_size()
        if self._unsent_bytes < before_bytes:
            self._since_s = now
        return self._unsent_bytes < before_bytes

    def _deadline(self) -> float | None:
        """When the client's time is up; None while it is our turn."""
        timeouts, since_s = self._service.timeouts, self._since_s
        if self._lingering:
            return since_s + LINGER_S
        if self._exchange is not None or self._peer_behind:
            return since_s + timeouts.write_s if timeouts.write_s and self._peer_behind else None
        phase = self._reader.phase
        first_s = self._reader.first_byte_s
        if phase is Phase.IDLE or first_s is None:
            return since_s + timeouts.keep_alive_s if timeouts.keep_alive_s else None
        if phase is Phase.BODY:
            return first_s + timeouts.header_s + timeouts.body_s if timeouts.body_s else None
        if not timeouts.header_s:
            return None
        if timeouts.keep_alive_s:  # empty lines before a request must not keep a connection for ever
            first_s = min(first_s, since_s + timeouts.keep_alive_s)
        return first_s + timeouts.header_s

    def _end(self, outcome: End, reason: str = "") -> None:
        """The exchange is over, however it went."""
        exchange = self._exchange
        assert exchange is not None
        if self._playback is not None:
            self._service.scheduler.cancel(self._playback)
        if self._tap is not None:
            self._service.scheduler.cancel(self._tap)
            self._tap.settle(exchange)
            self._tap, self._out = None, self._transport
        self._playback = self._exchange = self._reply = self._head = None
        self._all_written = False
        exchange.end_s = self._since_s = self._now()
        if exchange.peer_waits is not None:
            self._wait_ended(exchange, exchange.end_s)
        # What the app made of it stands, unless the client did not even get that.
        if exchange.outcome is End.FAULTED:
            exchange.close_reason = reason if outcome in (End.COMPLETED, End.FAULTED) else reason or outcome
        elif exchange.outcome is None or outcome is not End.COMPLETED:
            exchange.outcome = outcome
            exchange.close_reason = reason
        self._service.app.finished(exchange)
