"""A load of paced streams that stamps every token: one thread, one epoll, no event loop between.

Lateness of token k is its arrival after `sent + ttft + k · itl`. A stream's next request is sent
when its last one has ended; the first ones are spread over the length of a request, so that the
tokens of all streams are spread as well.
"""

from __future__ import annotations

import os
import selectors
import socket
from array import array
from heapq import heapify, heappop, heappush

from msgspec import Struct

from mockllm.clock import SystemClock

_TOKEN = b'"delta":{"content":"'  # the role chunk's delta begins with the role
_now = SystemClock.now
_END = b"data: [DONE]\n\n\r\n0\r\n\r\n"


class Load(Struct, frozen=True):
    """What every stream asks for: times in seconds, tokens of a reply."""

    ttft_s: float
    itl_s: float
    tokens: int

    @property
    def request_s(self) -> float:
        """How long one reply takes."""
        return self.ttft_s + self.itl_s * (self.tokens - 1)


class Measured(Struct, frozen=True):
    """What the client saw.

    Attributes:
        lateness_s: Of every token that arrived in the measured time; unordered.
        seconds: How long that was.
        errors: Replies that were not what they should be, and connections that broke.
        client_cpu: Share of one core that the client itself used; near 1 it was the limit.
    """

    lateness_s: array[float]
    seconds: float
    errors: int
    client_cpu: float

    @property
    def early(self) -> int:
        """Tokens that came more than 0.1 ms before their time."""
        return sum([late < -0.0001 for late in self.lateness_s])


class _Stream:
    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number = number
        self.sock = sock
        self.sent_s = 0.0
        self.tokens = 0
        self.tail = b""


def run(address: tuple[str, int], load: Load, streams: int, seconds: float) -> Measured:
    """Keep `streams` streams going and measure for `seconds`, after all have begun.

    Args:
        address: The server's host and port.
        load: What each stream asks for.
        streams: How many.
        seconds: How long to measure.
    """
    body = (
        b'{"model":"m","messages":[{"role":"user","content":"Calibrate."}],'
        b'"stream":true,"ignore_eos":true,"max_tokens":%d}'
    ) % load.tokens
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with selectors.DefaultSelector() as selector:
        client = _Client(selector, load, request)
        try:
            return client.run(address, streams, seconds)
        finally:
            client.close()


class _Client:
    def __init__(self, selector: selectors.BaseSelector, load: Load, request: bytes) -> None:
        self._selector = selector
        self._load = load
        self._request = request
        self._streams: list[_Stream] = []
        self._lateness_s = array("d")
        self._measuring = False
        self._errors = 0

    def run(self, address: tuple[str, int], streams: int, seconds: float) -> Measured:
        now = _now
        for number in range(streams):
            sock = socket.create_connection(address, timeout=10)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            stream = _Stream(number, sock)
            self._streams.append(stream)
            self._selector.register(sock, selectors.EVENT_READ, stream)
        begin = now()
        spread_s = self._load.request_s
        starts = [(begin + spread_s * number / streams, number) for number in range(streams)]
        heapify(starts)
        from_s = begin + spread_s
        until_s = from_s + seconds
        cpu_s = 0.0
        while (t := now()) < until_s:
            if not self._measuring and t >= from_s:
                self._measuring = True
                cpu_s = _cpu_s()
            while starts and starts[0][0] <= t:
                self._send(self._streams[heappop(starts)[1]])
                t = now()
            wait_s = (starts[0][0] if starts else until_s) - t
            for key, _ in self._selector.select(max(0.0, min(wait_s, until_s - t))):
                if self._read(key.data):
                    heappush(starts, (now(), key.data.number))
        return Measured(self._lateness_s, seconds, self._errors, (_cpu_s() - cpu_s) / seconds)

    def _send(self, stream: _Stream) -> None:
        stream.tokens = 0
        stream.tail = b""
        try:
            stream.sock.send(self._request)
        except OSError:
            self._broken(stream)
        stream.sent_s = _now()

    def _read(self, stream: _Stream) -> bool:
        """Take what arrived; true when the reply has ended."""
        try:
            data = stream.sock.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        now = _now()
        if not data:
            self._broken(stream)
            return False
        whole = stream.tail + data
        found = whole.count(_TOKEN)
        if self._measuring and found:
            load = self._load
            due_s = stream.sent_s + load.ttft_s + load.itl_s * stream.tokens
            for number in range(found):
                self._lateness_s.append(now - due_s - load.itl_s * number)
        stream.tokens += found
        if whole.endswith(_END):
            if stream.tokens != self._load.tokens:
                self._errors += 1
            return True
        # What may be the beginning of a mark stays, but nothing that was counted.
        last = whole.rfind(_TOKEN)
        stream.tail = whole[max(len(whole) - len(_END), last + len(_TOKEN) if last >= 0 else 0) :]
        return False

    def _broken(self, stream: _Stream) -> None:
        self._errors += 1
        self._selector.unregister(stream.sock)
        stream.sock.close()

    def close(self) -> None:
        for stream in self._streams:
            stream.sock.close()


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system
