"""The load where wrk is missing: the same closed loop, from one Python process.

It is the slower of the two by far (some 10,000 requests a second), so a row that it measures
says more about CPU per request than about rates. Run by `bench.load` with a `Load` as JSON.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import Counter

import msgspec

from bench.load import Load, Outcome, request_parts
from bench.wire import ReplyReader, WrongReplyError

READ_BYTES = 1 << 18


class _Mass:
    """All connections of one load."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._poll = select.epoll()
        self._open: dict[int, tuple[socket.socket, ReplyReader, float]] = {}
        self._parts = request_parts(load)
        self._sent = 0
        self._requests = 0
        self._bytes = 0
        self._latency_s = 0.0
        self._errors: Counter[str] = Counter()

    def run(self) -> Outcome:
        """Send for as long as the load says."""
        load = self._load
        began = time.perf_counter()
        stop = began + load.duration_s
        started = 0
        while (now := time.perf_counter()) < stop:
            while started < load.connections and now >= began + load.ramp_s * started / load.connections:
                self._connect()
                started += 1
            for descriptor, _ in self._poll.poll(0.001 if started < load.connections else stop - now):
                self._readable(descriptor)
        took_s = time.perf_counter() - began
        for sock, _, _ in self._open.values():
            sock.close()
        mean_s = self._latency_s / self._requests if self._requests else 0.0
        return Outcome(self._requests, dict(self._errors), took_s, self._bytes, mean_s)

    def _connect(self) -> None:
        sock = socket.create_connection(("127.0.0.1", self._load.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll.register(sock.fileno(), select.EPOLLIN)
        self._send(sock, ReplyReader(self._load.stream))

    def _send(self, sock: socket.socket, reader: ReplyReader) -> None:
        self._sent += 1
        request = self._parts[0]
        if len(self._parts) == 2:
            request += b"%032x" % self._sent + self._parts[1]
        self._open[sock.fileno()] = sock, reader, time.perf_counter()
        sock.sendall(request)

    def _readable(self, descriptor: int) -> None:
        sock, reader, sent_s = self._open[descriptor]
        try:
            data = sock.recv(READ_BYTES)
            if not data:
                raise WrongReplyError("closed within a reply")
            reader.feed(data)
        except (OSError, WrongReplyError) as error:
            self._errors[str(error)] += 1
            self._replace(sock)
            return
        if not reader.complete:
            return
        self._requests += 1
        self._bytes += reader.bytes_read
        self._latency_s += time.perf_counter() - sent_s
        if self._load.reconnect:
            self._replace(sock)
        else:
            reader.reset()
            self._send(sock, reader)

    def _replace(self, sock: socket.socket) -> None:
        del self._open[sock.fileno()]
        sock.close()  # leaves the epoll by itself
        self._connect()


if __name__ == "__main__":
    print(msgspec.json.encode(_Mass(msgspec.json.decode(sys.argv[1], type=Load)).run()).decode())
