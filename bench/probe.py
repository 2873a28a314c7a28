"""An open-loop SSE client that knows how late every token is.

Each of its streams has a schedule that was fixed before the run: a request is due at a time of its own, whatever
became of the ones before. Where the server had not finished the stream before, lateness counts
from that *intended* time (the correction for coordinated omission); where the probe itself woke
up late, from the time it really sent, and the lag is reported as the probe's own.

Lateness of token k = arrival - (send + TTFT + k · ITL), stamped right after the recv that brought
it. Everything that was readable is stamped before anything is parsed. The kernel's own time stamp
of the last packet tells how long the bytes lay before the probe took them: that part of a lateness
is the probe's, and where it is not small the probe says that it was the limit itself.

    python -m bench.probe --port 8000 --ttft-ms 100 --itl-ms 20 --tokens 100 [--streams 20] [--seconds 6]
"""

from __future__ import annotations

import argparse
import select
import socket
import struct
import sys
import time
from array import array
from collections.abc import Sequence
from operator import sub

import msgspec
from msgspec import Struct

from bench.load import PATH
from bench.machine import on_core
from bench.wire import ReplyReader, WrongReplyError, post

READ_BYTES = 1 << 16
SO_TIMESTAMPNS = 35  # <asm-generic/socket.h>
SPIN_S = 0.003
"""epoll waits whole milliseconds, rounded up: the last ones before a send are spun away."""
GAP_S = 0.1
"""Planned pause between a stream's end and the next request of the same schedule."""

LAG_LIMIT_S = 0.000_2
"""p99 of the probe's own lag from which it calls itself the limit: a tenth of what is to be shown."""
CPU_LIMIT = 0.7


class Plan(Struct, frozen=True):
    """What the probe sends, and what it expects.

    Attributes:
        port: Port on 127.0.0.1.
        body: One body for all; asks for a stream of `tokens` tokens.
        ttft_s, itl_s: The server's timing.
        streams: How many schedules run side by side, evenly out of step.
        settle_s: Requests in this first part of the run do not count.
        duration_s: How long requests are sent after that.
        first: Run ahead of every other process of the core, where that is allowed.
        core: Pin to this core; None leaves it.
        keep: Report every request with its times.
    """

    port: int
    body: bytes
    ttft_s: float
    itl_s: float
    tokens: int
    streams: int = 20
    settle_s: float = 0.0
    duration_s: float = 6.0
    first: bool = True
    core: int | None = None
    keep: bool = False

    @property
    def stream_s(self) -> float:
        """How long a stream takes when nothing is late."""
        return self.ttft_s + (self.tokens - 1) * self.itl_s


class Distribution(Struct, frozen=True):
    """Quantiles, in seconds."""

    count: int
    min: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class Seen(Struct, frozen=True):
    """One request as the client saw it; times are `time.perf_counter` seconds (CLOCK_MONOTONIC)."""

    request_id: str
    intended_s: float
    sent_s: float
    tokens_s: list[float]
    lags_s: list[float]
    end_s: float


class Report(Struct, frozen=True):
    """What the probe saw.

    Attributes:
        requests, tokens: Whole streams, and their tokens.
        errors: What went wrong; any makes the run invalid.
        lateness: Of every token, corrected.
        wire: The same by the kernel's time stamps: without the probe's own lag.
        early: Tokens before their time.
        rate: Planned over measured time from first to last token, mean over the streams.
        delayed_sends: Requests that left late since the stream before had not ended.
        send_lag: How late the probe sent what it could have sent.
        read_lag: From the kernel's time stamp to the probe's.
        cpu_share: CPU time over elapsed time of the probe.
        limit: Why the probe was the limit itself, or "".
    """

    requests: int
    tokens: int
    errors: list[str]
    lateness: Distribution
    wire: Distribution
    early: int
    rate: float
    delayed_sends: int
    send_lag: Distribution
    read_lag: Distribution
    cpu_share: float
    limit: str
    seen: list[Seen] = []


def distribution(values: Sequence[float]) -> Distribution:
    """Quantiles of some values; zeros where there is none."""
    ordered = sorted(values) or [0.0]

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return Distribution(len(values), ordered[0], at(0.5), at(0.9), at(0.99), at(0.999), ordered[-1])


class _Stream:
    """One schedule, and the connection that serves it."""

    def __init__(self, plan: Plan, number: int, began_s: float) -> None:
        self.number = number
        self.turn = 0
        self._period_s = plan.stream_s + GAP_S
        self._first_s = began_s + self._period_s * number / plan.streams
        self.reader = ReplyReader(stream=True)
        self.sock: socket.socket | None = None
        self.busy = False
        self.intended_s = self.sent_s = self.base_s = 0.0
        self.tokens_s = array("d")
        self.lags_s = array("d")

    @property
    def next_s(self) -> float:
        """When its next request is to be sent."""
        return self._first_s + self._period_s * self.turn


class Probe:
    """Runs a plan once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._poll = select.epoll()
        self._began_s = time.perf_counter() + 0.05
        self._stop_s = self._began_s + plan.settle_s + plan.duration_s
        self._streams = [_Stream(plan, number, self._began_s) for number in range(plan.streams)]
        self._by_descriptor: dict[int, _Stream] = {}
        self._salt = f"{time.time_ns():x}"
        self._lateness = array("d")
        self._wire = array("d")
        self._send_lags = array("d")
        self._read_lags = array("d")
        self._rates: list[float] = []
        self._errors: list[str] = []
        self._delayed_sends = 0
        self._requests = 0
        self._seen: list[Seen] = []

    def run(self) -> Report:
        """Send, receive and judge."""
        for stream in self._streams:  # before the first is due, so that no send waits for its connection
            stream.sock = self._connect(stream)
        cpu_s, began_s = time.process_time(), time.perf_counter()
        while (now := time.perf_counter()) < self._stop_s and len(self._errors) < 20:
            next_s = self._send_due(now)
            wait_s = next_s - time.perf_counter()
            self._receive(0.0 if wait_s <= SPIN_S else wait_s - SPIN_S)
        patience_s = self._stop_s + 2 * self._plan.stream_s + 5.0
        while any(stream.busy for stream in self._streams) and time.perf_counter() < patience_s:
            self._receive(0.1)
        for stream in self._streams:
            if stream.busy:
                self._errors.append(f"stream {stream.number} did not end")
            self._drop(stream)
        share = (time.process_time() - cpu_s) / (time.perf_counter() - began_s)
        return self._report(share)

    # ---- sending -----------------------------------------------------------------------------

    def _send_due(self, now: float) -> float:
        """Send what is due; returns the time of the next send."""
        following = self._stop_s
        for stream in self._streams:
            next_s = stream.next_s
            if next_s <= now and not stream.busy:
                self._send(stream, next_s)
                next_s = stream.next_s
            if not stream.busy:
                following = min(following, next_s)
        return following

    def _send(self, stream: _Stream, intended_s: float) -> None:
        ended_s = stream.tokens_s[-1] if stream.tokens_s else 0.0
        if stream.sock is None:
            stream.sock = self._connect(stream)
        lines = (f"x-request-id: probe-{self._salt}-{stream.number}-{stream.turn}",)
        request = post(PATH, self._plan.body, *lines)
        stream.turn += 1
        stream.busy = True
        stream.reader.reset()
        stream.tokens_s = array("d")
        stream.lags_s = array("d")
        stream.intended_s = intended_s
        stream.sent_s = sent_s = time.perf_counter()
        stream.sock.sendall(request)
        waited = ended_s > intended_s
        stream.base_s = (intended_s if waited else sent_s) + self._plan.ttft_s
        if waited:
            self._delayed_sends += 1
        else:
            self._send_lags.append(sent_s - intended_s)

    def _connect(self, stream: _Stream) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self._plan.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setblocking(False)
        self._by_descriptor[sock.fileno()] = stream
        self._poll.register(sock.fileno(), select.EPOLLIN)
        return sock

    def _drop(self, stream: _Stream) -> None:
        stream.busy = False
        if stream.sock is not None:
            del self._by_descriptor[stream.sock.fileno()]
            stream.sock.close()
            stream.sock = None

    # ---- receiving ---------------------------------------------------------------------------

    def _receive(self, wait_s: float) -> None:
        """Stamp everything that is readable, then parse it."""
        arrived: list[tuple[_Stream, bytes, float, float]] = []
        for descriptor, _ in self._poll.poll(wait_s):
            stream = self._by_descriptor[descriptor]
            assert stream.sock is not None
            try:
                data, ancillary, _, _ = stream.sock.recvmsg(READ_BYTES, 64)
            except BlockingIOError:
                continue
            except OSError as error:
                data, ancillary = b"", []
                self._errors.append(f"{type(error).__name__} in stream {stream.number}")
            now, wall_s = time.perf_counter(), time.time()
            arrived.append((stream, data, now, _lag(wall_s, ancillary)))
        for stream, data, now, lag_s in arrived:
            self._take(stream, data, now, lag_s)

    def _take(self, stream: _Stream, data: bytes, now: float, lag_s: float) -> None:
        try:
            if not data:
                raise WrongReplyError("closed within a reply" if stream.busy else "closed")
            brought = stream.reader.feed(data)
        except (WrongReplyError, ValueError, msgspec.MsgspecError) as error:
            if stream.busy:
                self._errors.append(f"stream {stream.number}: {error}")
            self._drop(stream)
            return
        for _ in range(brought):
            stream.tokens_s.append(now)
            stream.lags_s.append(lag_s)
        if stream.reader.complete:
            self._ended(stream, now)

    def _ended(self, stream: _Stream, now: float) -> None:
        plan = self._plan
        stream.busy = False
        times = stream.tokens_s
        if len(times) != plan.tokens:
            self._errors.append(f"{len(times)} tokens in place of {plan.tokens}")
            return
        if stream.sent_s < self._began_s + plan.settle_s:
            return
        self._requests += 1
        base_s, itl_s = stream.base_s, plan.itl_s
        late = [at - base_s - k * itl_s for k, at in enumerate(times)]
        self._lateness.extend(late)
        self._wire.extend(map(sub, late, stream.lags_s))
        self._read_lags.extend(stream.lags_s)
        if plan.tokens > 1 and times[-1] > times[0]:
            self._rates.append((plan.tokens - 1) * itl_s / (times[-1] - times[0]))
        if plan.keep:
            request_id = f"probe-{self._salt}-{stream.number}-{stream.turn - 1}"
            self._seen.append(Seen(request_id, stream.intended_s, stream.sent_s, list(times), list(stream.lags_s), now))

    # ---- judging -----------------------------------------------------------------------------

    def _report(self, cpu_share: float) -> Report:
        send_lag = distribution(self._send_lags)
        read_lag = distribution(self._read_lags)
        limits = []
        if send_lag.p99 > LAG_LIMIT_S:
            limits.append(f"it sent {send_lag.p99 * 1e3:.2f} ms late (p99)")
        if read_lag.p99 > LAG_LIMIT_S:
            limits.append(f"bytes lay {read_lag.p99 * 1e3:.2f} ms before it read them (p99)")
        if cpu_share > CPU_LIMIT:
            limits.append(f"it used {cpu_share:.0%} of its core")
        return Report(
            self._requests,
            len(self._lateness),
            self._errors,
            distribution(self._lateness),
            distribution(self._wire),
            len([late for late in self._lateness if late < 0.0]),
            sum(self._rates) / len(self._rates) if self._rates else 0.0,
            self._delayed_sends,
            send_lag,
            read_lag,
            cpu_share,
            " and ".join(limits),
            self._seen,
        )


def _lag(wall_s: float, ancillary: list[tuple[int, int, bytes]]) -> float:
    """How long the last bytes lay in the kernel; 0 where it does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("ll", data)
            lag_s: float = wall_s - seconds - nanoseconds / 1e9
            return max(0.0, lag_s)
    return 0.0


def probe(plan: Plan) -> Report:
    """Run a plan in this process."""
    if plan.core is not None:
        on_core(plan.core, first=plan.first)
    return Probe(plan).run()


def chat_body(tokens: int, stream: bool, prompt: str = "Say something.") -> bytes:
    """A chat request for exactly so many tokens."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "ignore_eos": True,
        "stream": stream,
    }
    return msgspec.json.encode(body)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.probe")
    parser.add_argument("--plan", help="a whole plan as JSON, in place of what follows")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--ttft-ms", type=float, default=150.0)
    parser.add_argument("--itl-ms", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    if args.plan:
        plan = msgspec.json.decode(args.plan, type=Plan)
    else:
        body = chat_body(args.tokens, stream=True)
        plan = Plan(
            args.port, body, args.ttft_ms / 1e3, args.itl_ms / 1e3, args.tokens, args.streams, 0.0, args.seconds
        )
    sys.stdout.write(msgspec.json.encode(probe(plan)).decode() + "\n")


if __name__ == "__main__":
    main()
