"""The whole server in virtual time: no socket, no waiting, every timing exact.

For tests of what consumes streams, and of a harness's arithmetic: an hour of streams passes in
milliseconds, byte by byte as the real server would send it, and the ledger reads as it would.
Even ids and dates repeat, so two runs are alike to the byte.

    server = VirtualServer(Config(ttft_ms=150, itl_ms=10, output_tokens=3))
    reply = server.post("/v1/chat/completions", {"model": "m", "messages": [], "stream": True})
    server.run()
    [at_s for at_s, chunk in reply.chunks]  # 0.15, 0.15, 0.16, 0.17, …
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, TypeVar

import h11
import msgspec

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.generation.ids import Ids
from mockllm.http.http11 import Limits
from mockllm.playback import Playback
from mockllm.protocol import Connection
from mockllm.scheduler import Item, Scheduler
from mockllm.scripting import Scripting
from mockllm.service import Service, Timeouts
from mockllm.truth import Ledger, Statistics

T = TypeVar("T")

WEEK_S = 7 * 86_400.0


class VirtualReply:
    """A reply as its client sees it.

    Attributes:
        status: 0 until the head has come.
        headers: Lower-case names.
        head_s: When it came, in seconds after the request was sent.
        chunks: (seconds after the request was sent, bytes) of each HTTP chunk, or of a body of known length.
        complete: The reply has come to its proper end.
        closed: The connection was closed, before or after that.
        malformed: What in it was no proper HTTP (an injected fault), or "".
    """

    def __init__(self, sent_s: float) -> None:
        self._sent_s = sent_s
        self._part = bytearray()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.head_s: float | None = None
        self.chunks: list[tuple[float, bytes]] = []
        self.complete = False
        self.closed = False
        self.malformed = ""

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join([data for _, data in self.chunks])

    def json(self) -> Any:
        """The decoded body."""
        return msgspec.json.decode(self.body)

    @property
    def events(self) -> list[tuple[float, str]]:
        """(seconds after the request was sent, data) of each server-sent event."""
        found = []
        for at_s, chunk in self.chunks:
            for event in chunk.decode().split("\n\n"):
                lines = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
                if lines:
                    found.append((at_s, "\n".join(lines)))
        return found

    def _after(self, now_s: float) -> float:
        """Seconds since the request was sent; to the nanosecond, so that 0.15 is 0.15."""
        return round(now_s - self._sent_s, 9)

    def _take(self, event: Any, now_s: float) -> None:
        if isinstance(event, h11.Response):
            self.status = event.status_code
            self.headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            self.head_s = self._after(now_s)
        elif isinstance(event, h11.Data):
            self._part += event.data
            if event.chunk_end or not self.headers.get("transfer-encoding"):
                self.chunks.append((self._after(now_s), bytes(self._part)))
                self._part.clear()
        elif isinstance(event, h11.EndOfMessage):
            self.complete = True


class VirtualClient(asyncio.Transport):
    """A client and its connection, which is also the transport that the server writes to.

    Attributes:
        received: (virtual time, bytes) of each piece that came.
        closed: The connection is closed.
    """

    def __init__(self, server: VirtualServer, make: Callable[[], Connection]) -> None:
        super().__init__()
        self._server = server
        self._http = h11.Connection(h11.CLIENT)
        self._reply: VirtualReply | None = None
        self._stalled = False
        self._closing = False
        self._buffer: list[bytes] = []
        self.received: list[tuple[float, bytes]] = []
        self.closed = False
        self._protocol = make()
        self._protocol.connection_made(self)

    # ---- the client's side -------------------------------------------------------------------

    def request(
        self, method: str, target: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> VirtualReply:
        """Send a request; one at a time on a connection.

        Args:
            body: Bytes as they are, None for none, anything else as JSON.

        Raises:
            h11.LocalProtocolError: The reply before it has not ended.
        """
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        lines = {"host": "virtual", "content-type": "application/json", "content-length": str(len(data))}
        lines |= {name.lower(): value for name, value in (headers or {}).items()}
        head = h11.Request(method=method, target=target, headers=list(lines.items()))
        wire = (self._http.send(head) or b"") + (self._http.send(h11.Data(data)) if data else b"")
        self._http.send(h11.EndOfMessage())
        self._reply = reply = VirtualReply(self._server.clock.now())
        self.send(wire)
        return reply

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if not self.closed:
            self._protocol.data_received(data)

    def stall(self) -> None:
        """Read nothing more: what the server writes waits in its buffer."""
        self._stalled = True

    def resume(self) -> None:
        """Read again, first of all what waits."""
        self._stalled = False
        waiting, self._buffer = self._buffer, []
        if waiting:
            self._deliver(b"".join(waiting))
            self._protocol.resume_writing()

    def hang_up(self) -> None:
        """Close the connection, whatever is under way."""
        self._lose()

    def _deliver(self, data: bytes) -> None:
        now_s = self._server.clock.now()
        self.received.append((now_s, data))
        if self._reply is None:
            return
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
                self._reply._take(event, now_s)
                if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    break
        except h11.RemoteProtocolError as error:
            self._reply.malformed = str(error)
            self._reply = None

    def _lose(self) -> None:
        if not self.closed:
            self.closed = True
            if self._reply is not None:
                self._reply.closed = True
            self._protocol.connection_lost(None)

    # ---- what the server's protocol asks of a transport ----------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self.closed or not data:
            return
        if not self._stalled:
            self._deliver(bytes(data))
            return
        self._buffer.append(bytes(data))
        if len(self._buffer) == 1:
            self._protocol.pause_writing()

    def close(self) -> None:
        self._closing = True
        self._server._soon(self._lose)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing or self.closed

    def write_eof(self) -> None:
        """The client reads the end, and closes its side."""
        self.close()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._buffer))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The buffer's limit is always 0."""

    def pause_reading(self) -> None:
        """Clients here are polite: they send one request at a time."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


class _NoTimer:
    """Virtual time is moved by whoever runs the server."""

    def wake_at(self, when_s: float) -> None: ...


class VirtualServer(Scripting):
    """A server under a clock that only moves when told.

    Args:
        config: The settings; those of addresses and files mean nothing here.
        clock: The clock; a new one by default.

    Attributes:
        clock: Virtual time.
    """

    def __init__(self, config: Config | None = None, clock: FakeClock | None = None) -> None:
        config = config if config is not None else Config()
        self.clock = clock if clock is not None else FakeClock()
        self._app = App(config, self.clock, ids=Ids("0" * 16))
        self._errors: list[Exception] = []
        self._actions: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0
        self._lost: list[Callable[[], None]] = []
        self._scheduler = Scheduler(self.clock.now, self._broken)
        self._service = Service(
            self._app,
            self._scheduler,
            _NoTimer(),
            self.clock,
            limits=Limits(config.max_request_line_bytes, config.max_header_bytes, config.max_body_bytes),
            timeouts=Timeouts(
                config.header_timeout_s, config.body_timeout_s, config.keep_alive_timeout_s, config.write_timeout_s
            ),
            max_connections=config.max_connections,
            fast_parser=config.fast_parser,
        )
        self._app.lifecycle.start(config.startup_delay_s)
        self._app.truth.open_connections = lambda: len(self._service.connections)
        self._app.truth.slot_s = lambda: self._scheduler.slot_s

    # ---- clients -----------------------------------------------------------------------------

    def connect(self) -> VirtualClient:
        """A new connection."""
        return VirtualClient(self, lambda: Connection(self._service))

    def post(self, target: str, body: object, headers: Mapping[str, str] | None = None) -> VirtualReply:
        """Send a POST on a connection of its own; the reply fills while the server runs."""
        return self.connect().request("POST", target, body, headers)

    def get(self, target: str, headers: Mapping[str, str] | None = None) -> VirtualReply:
        """Send a GET on a connection of its own."""
        return self.connect().request("GET", target, None, headers)

    # ---- time --------------------------------------------------------------------------------

    def at(self, delay_s: float, action: Callable[[], object]) -> None:
        """Call `action` in `delay_s` seconds: send a request, hang up, …"""
        self._count += 1
        heappush(self._actions, (self.clock.now() + delay_s, self._count, action))

    def run(self, most_s: float = WEEK_S) -> float:
        """Run until no action is left and no generation request is in flight.

        Returns:
            How much time has passed.

        Raises:
            TimeoutError: That takes longer than `most_s`.
        """
        began_s = self.clock.now()
        self._settle()
        while self._actions or self._app.truth.in_flight:
            if not self._step(began_s + most_s):
                raise TimeoutError(f"requests are still in flight after {most_s} s of virtual time")
        return self.clock.now() - began_s

    def advance(self, seconds: float) -> None:
        """Run for so long, in virtual time."""
        until_s = self.clock.now() + seconds
        self._settle()
        while self._step(until_s):
            pass
        self.clock.advance_to(until_s)

    def _step(self, until_s: float) -> bool:
        """Do what comes next, unless that is after `until_s`."""
        due_s = self._scheduler.next_s
        action_s = self._actions[0][0] if self._actions else None
        next_s = min([when for when in (due_s, action_s) if when is not None], default=None)
        if next_s is None or next_s > until_s:
            return False
        self.clock.advance_to(max(next_s, self.clock.now()))
        if action_s == next_s:
            heappop(self._actions)[2]()
        else:
            self._scheduler.run_due()
        self._settle()
        return True

    def _soon(self, lose: Callable[[], None]) -> None:
        self._lost.append(lose)

    def _settle(self) -> None:
        """Close what was to be closed, as an event loop does after each callback; raise what went wrong."""
        while self._lost:
            self._lost.pop(0)()
        if self._errors:
            raise self._errors.pop()

    def _broken(self, item: Item, error: Exception) -> None:
        if isinstance(item, Playback) and isinstance(item.sink, Connection):
            item.sink.broken(error)
        self._errors.append(error)

    # ---- what it did -------------------------------------------------------------------------

    def _with_app(self, do: Callable[[App], T]) -> T:
        return do(self._app)

    @property
    def ledger(self) -> Ledger:
        """See `Server.ledger`."""
        return self._app.truth.ledger

    def statistics(self) -> Statistics:
        """See `Server.statistics`."""
        return self._app.truth.statistics()

    def reset_statistics(self) -> Statistics:
        """See `Server.reset_statistics`."""
        return self._app.truth.reset()
