"""The server's connections without sockets: a transport that takes what a test lets it, under a fake clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import h11

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Exchange, Reply, Request
from mockllm.http.http11 import Limits
from mockllm.playback import Playback
from mockllm.protocol import Connection
from mockllm.scheduler import Item, Scheduler
from mockllm.service import Service, Timeouts

STEP_S = 2.0**-10  # the fake clock's steps stay exact sums


class Wire(asyncio.Transport):
    """One connection as its client and its kernel see it. It behaves as asyncio's socket transport does.

    Attributes:
        sent: What the kernel took.
        room_bytes: How much more it takes; None for all.
        eof: The server has ended its side.
        closed: `connection_lost` has been called.
        paused: The server does not read.
        tls: It cannot send an end of file.
    """

    def __init__(self, world: World, *, room_bytes: int | None = None, tls: bool = False) -> None:
        super().__init__()
        self._world = world
        self._waiting = bytearray()
        self._closing = False
        self._pausing = False
        self._resuming = False
        self.sent = bytearray()
        self.room_bytes = room_bytes
        self.eof = False
        self.closed = False
        self.paused = False
        self.tls = tls
        self.protocol = Connection(world.service)
        self.protocol.connection_made(self)
        world.settle()

    # ---- the client's side -------------------------------------------------------------------

    def send(self, *pieces: bytes) -> None:
        """The client sends; nothing is read on a closing connection."""
        for piece in pieces:
            if not self._closing and piece:
                self.protocol.data_received(piece)
                self._world.settle()

    def take(self, room_bytes: int | None) -> None:
        """The client reads, so that the kernel has room for so many bytes more."""
        if room_bytes is None or self.room_bytes is None:
            self.room_bytes = None
        else:
            self.room_bytes += room_bytes
        if self._waiting:
            self._hand_over()
            if not self._waiting:
                if self._pausing:
                    self._pausing = False
                    self._resuming = True
                    self.protocol.resume_writing()
                    self._resuming = False
                if self._closing:
                    self._world.soon(self._lost)
        self._world.settle()

    def end(self) -> None:
        """The client shuts its side down."""
        if not self._closing:
            self.protocol.eof_received()
            self.close()
        self._world.settle()

    def reset(self) -> None:
        """The connection is reset, as a read tells."""
        self._lost(ConnectionResetError())

    def break_pipe(self) -> None:
        """The connection is gone, and the next write will tell."""
        self.room_bytes = -1

    # ---- what the server asks ----------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data or self.closed or (self._closing and not self._waiting and self.room_bytes == -1):
            return
        if self.room_bytes == -1:
            self._closing = True
            self._world.soon(lambda: self._lost(BrokenPipeError()))
            return
        self._waiting += data
        self._hand_over()
        if self._waiting and not self._pausing:
            self._pausing = True
            self.protocol.pause_writing()

    def _hand_over(self) -> None:
        count = len(self._waiting) if self.room_bytes is None else min(self.room_bytes, len(self._waiting))
        if self.room_bytes is not None:
            self.room_bytes -= count
        self.sent += self._waiting[:count]
        del self._waiting[:count]

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def close(self) -> None:
        self._check_may_close()
        if not self._closing:
            self._closing = True
            if not self._waiting:
                self._world.soon(self._lost)

    def abort(self) -> None:
        self._check_may_close()
        self._closing = True
        self._waiting.clear()
        self._world.soon(self._lost)

    def _lost(self, error: Exception | None = None) -> None:
        if not self.closed:
            self._closing = self.closed = True
            self._waiting.clear()
            self.protocol.connection_lost(error)

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return not self.tls

    def _check_may_close(self) -> None:
        """asyncio's socket transport looks behind `resume_writing` whether it is to be closed, and so closes twice."""
        assert not self._resuming

    def write_eof(self) -> None:
        self._check_may_close()
        assert not self.tls
        assert not self._waiting
        if self.room_bytes == -1:
            raise OSError(107, "Transport endpoint is not connected")
        self.eof = True

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    # ---- what it got -------------------------------------------------------------------------

    def replies(self, *methods: str) -> list[tuple[int, dict[str, str], bytes]]:
        """What h11's client side reads: (status, headers, body) of each whole reply.

        Args:
            methods: Of the requests; GET where omitted.
        """
        data = bytes(self.sent)
        found: list[tuple[int, dict[str, str], bytes]] = []
        while data:
            reply, data = one_reply(data, methods[len(found)] if len(found) < len(methods) else "GET", self.over)
            found.append(reply)
        return found

    @property
    def over(self) -> bool:
        """No more can come."""
        return self.eof or self._closing


def statuses(wire: Wire, *methods: str) -> list[int]:
    """The statuses of its whole replies."""
    return [status for status, _, _ in wire.replies(*methods)]


def one_reply(data: bytes, method: str, over: bool) -> tuple[tuple[int, dict[str, str], bytes], bytes]:
    """The first reply in `data`, and what follows it.

    Raises:
        AssertionError: It is not whole.
    """
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    if over:
        client.receive_data(b"")
    status, headers, body = 0, {}, b""
    while True:
        event = client.next_event()
        if isinstance(event, h11.InformationalResponse):
            return (event.status_code, {}, b""), data[data.index(b"\r\n\r\n") + 4 :]
        if isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return (status, headers, body), client.trailing_data[0]
        else:
            raise AssertionError(f"the reply is not whole: {event!r} after {status} {body[-100:]!r}")


class NoTimer:
    """Time is moved by the test."""

    def wake_at(self, when_s: float) -> None: ...


class OwnApp(App):
    """An application that a test may give a handler of its own."""

    handler: Callable[[Request, Exchange], Reply] | None = None

    def handle(self, request: Request, exchange: Exchange) -> Reply:
        return super().handle(request, exchange) if self.handler is None else self.handler(request, exchange)


class World:
    """A server of `Connection`s without sockets, whose time stands still until `advance`."""

    def __init__(self, **settings: Any) -> None:
        given: dict[str, Any] = {"ttft_ms": 1000.0, "itl_ms": 1000.0, "output_tokens": 4}
        config = Config(**(given | settings))
        self.clock = FakeClock()
        self.ended: list[Exchange] = []
        self.app = OwnApp(config, self.clock, [self.ended.append])
        self.scheduler = Scheduler(self.clock.now, self._broken)
        self._soon: list[Callable[[], None]] = []
        self.service = Service(
            self.app,
            self.scheduler,
            NoTimer(),
            self.clock,
            limits=Limits(config.max_request_line_bytes, config.max_header_bytes, config.max_body_bytes),
            timeouts=Timeouts(
                config.header_timeout_s, config.body_timeout_s, config.keep_alive_timeout_s, config.write_timeout_s
            ),
            max_connections=config.max_connections,
            fast_parser=config.fast_parser,
        )

    def connect(self, *, room_bytes: int | None = None, tls: bool = False) -> Wire:
        return Wire(self, room_bytes=room_bytes, tls=tls)

    def soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def settle(self) -> None:
        """What the event loop does before it waits again."""
        while self._soon:
            self._soon.pop(0)()

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due is done."""
        until_s = self.clock.now() + seconds
        while (due_s := self.scheduler.next_s) is not None and due_s <= until_s:
            self.clock.advance_to(max(due_s, self.clock.now()))
            self.scheduler.run_due()
            self.settle()
        self.clock.advance_to(until_s)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many requests ended how; every request that began has ended once."""
        statistics = self.app.truth.statistics()
        assert sum(statistics.outcomes.values()) == statistics.requests == self.app._seq - self.in_flight
        return statistics.outcomes

    @property
    def in_flight(self) -> int:
        ours = [client for client in self.service.connections if isinstance(client, Connection)]
        return sum([client._exchange is not None for client in ours])

    def nothing_remains(self) -> bool:
        """No connection, no item of the scheduler, nothing in flight."""
        return not (self.service.connections or self.scheduler.waiting or self.app.truth.in_flight)

    def _broken(self, item: Item, error: Exception) -> None:
        assert isinstance(item, Playback), error
        assert isinstance(item.sink, Connection)
        item.sink.broken(error)


def get(target: str = "/health", *lines: str, version: str = "1.1") -> bytes:
    """A GET request."""
    return "".join(
        [f"GET {target} HTTP/{version}\r\n", *(f"{line}\r\n" for line in ("Host: x", *lines)), "\r\n"]
    ).encode()


def chat(*lines: str, stream: bool = False, text: str = "Hello", version: str = "1.1") -> bytes:
    """A POST to /v1/chat/completions."""
    body = json.dumps({"messages": [{"role": "user", "content": text}], "stream": stream}).encode()
    return post("/v1/chat/completions", body, *lines, version=version)


def post(target: str, body: bytes, *lines: str, version: str = "1.1") -> bytes:
    """A POST request."""
    head = [f"POST {target} HTTP/{version}", "Host: x", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body
