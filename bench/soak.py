"""Soak the server: thousands of connections, good and bad, for minutes; then look at what is left behind.

    python -m bench.soak --minutes 10 --connections 2000

Half of the clients read streams as they should, the others ask for whole replies, disconnect in
mid-stream, read slowly or not at all, and send garbage. The server runs in a process of its own,
which measures itself. Prints a report; exits 1 when memory, descriptors, tasks or playbacks are
left over, outcomes do not add up, a good stream was not whole, or the good streams were late.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import random
import resource
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from mockllm import Config, Server

SAMPLE_S = 2.0
MAX_SLOPE_MB_PER_MIN = 0.5
BUDGET_MS = 20.0
"""The client shares the machine with the server, so the bound is wider than the server's own."""

CONFIG = Config(
    port=0,
    ttft_ms=200.0,
    itl_ms=250.0,
    output_tokens=40,
    request_latency=0.5,
    max_connections=0,
    ledger_size=5000,  # full after a minute
    write_timeout_s=10.0,
    keep_alive_timeout_s=10.0,
    header_timeout_s=5.0,
    body_timeout_s=5.0,
    lateness_budget_ms=BUDGET_MS,
    log_level="error",
)

SHARES = {"good": 0.5, "whole": 0.15, "leaver": 0.15, "slow": 0.1, "garbage": 0.1}


# ---- the server's process ------------------------------------------------------------------------


async def serve() -> None:
    """Serve; answer each line of stdin with a line of measurements."""
    loop = asyncio.get_running_loop()
    server = Server(CONFIG)
    await server.start()
    gc.collect()
    gc.freeze()
    _say({"port": server.port, **_measure(server)})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line == "sample\n":
            _say(_measure(server))
        else:
            gc.collect()
            _say({**_measure(server), **_account(server)})
    await server.aclose(0.0)


def _say(facts: dict[str, Any]) -> None:
    print(json.dumps(facts), flush=True)


def _measure(server: Server) -> dict[str, Any]:
    service = server._service
    assert service is not None
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "at_s": time.monotonic(),
        "rss_mb": pages * resource.getpagesize() / 1e6,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "connections": len(service.connections),
        "waiting": service.scheduler.waiting,
        "in_flight": server.statistics().in_flight,
        "requests": server.statistics().requests,
    }


def _account(server: Server) -> dict[str, Any]:
    statistics = server.statistics()
    good = sorted([r.lateness_max_s for r in server.ledger if r.request_id.startswith("good-")])
    return {
        "outcomes": statistics.outcomes,
        "numbered": server._app._seq,
        "lateness_p99_ms": statistics.lateness.p99_s * 1e3,
        "lateness_p50_ms": statistics.lateness.p50_s * 1e3,
        "good_records": len(good),
        "good_worst_ms": good[-1] * 1e3 if good else 0.0,
        "stalls": statistics.stalls.own.count,
        "longest_own_ms": statistics.stalls.own.longest_s * 1e3,
    }


# ---- the clients ---------------------------------------------------------------------------------


class Soak:
    """The clients of one run.

    Args:
        port: The server's.
        until_s: When they stop, on the monotonic clock.
        seed: Makes a run repeatable.
    """

    def __init__(self, port: int, until_s: float, seed: int) -> None:
        self._port = port
        self._until_s = until_s
        self._random = random.Random(seed)
        self.count: Counter[str] = Counter()

    async def run(self, connections: int) -> None:
        """Run all clients until the end."""
        clients: list[Awaitable[None]] = []
        for name, share in SHARES.items():
            act: Callable[[], Awaitable[None]] = getattr(self, "_" + name)
            clients += [self._repeat(name, act) for _ in range(int(connections * share))]
        await asyncio.gather(*clients)

    async def _repeat(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(self._random.uniform(0.0, 10.0))
        while time.monotonic() < self._until_s:
            try:
                async with asyncio.timeout(120.0):
                    await act()
            except (OSError, EOFError, asyncio.IncompleteReadError) as error:
                self.count[f"{name}: {type(error).__name__}"] += 1
            await asyncio.sleep(self._random.uniform(0.0, 1.0))

    async def _open(self, receive_bytes: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=sock)

    def _request(self, kind: str, **more: Any) -> bytes:
        text = f"{kind} {self._random.randrange(100)}"
        body = json.dumps({"messages": [{"role": "user", "content": text}], **more}).encode()
        return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: %b-\r\nContent-Length: %d\r\n\r\n%b" % (
            kind.encode(),
            len(body),
            body,
        )

    async def _good(self) -> None:
        reader, writer = await self._open()
        for _ in range(3):
            if time.monotonic() > self._until_s:
                break
            writer.write(self._request("good", stream=True))
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readuntil(b"\r\n0\r\n\r\n")
            whole = head.startswith(b"HTTP/1.1 200 ") and b"data: [DONE]" in body
            self.count["good streams" if whole else "broken good streams"] += 1
        await _shut(writer)

    async def _whole(self) -> None:
        reader, writer = await self._open()
        writer.write(self._request("whole", max_tokens=self._random.randrange(1, 40)))
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        self.count["whole replies"] += 1
        await _shut(writer)

    async def _leaver(self) -> None:
        """Goes at any moment: before the request is whole, in mid-stream, with FIN or RST."""
        reader, writer = await self._open()
        request = self._request("leaver", stream=True)
        writer.write(request[: self._random.randrange(len(request) + 1)] if self._random.random() < 0.3 else request)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._random.uniform(0.0, 6.0)):
                await reader.read(-1)
        self.count["left"] += 1
        if self._random.random() < 0.5:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await _shut(writer)

    async def _slow(self) -> None:
        """Asks for far more than it reads."""
        reader, writer = await self._open(4096)
        reader._limit = 1024  # type: ignore[attr-defined]  # the stream pauses its transport beyond twice that
        writer.write(self._request("slow", max_tokens=100, ignore_eos=True, logprobs=True, top_logprobs=20) * 4)
        for _ in range(self._random.randrange(1, 20)):
            await asyncio.sleep(1.0)
            if not await reader.read(self._random.choice([0, 512, 4096])):
                break
        self.count["slow readers"] += 1
        await _shut(writer)

    async def _garbage(self) -> None:
        reader, writer = await self._open()
        data = bytearray(self._request("garbage", stream=True) * 2)
        for _ in range(self._random.randrange(1, 8)):
            at = self._random.randrange(len(data))
            data[at : at + self._random.randrange(3)] = self._random.randbytes(self._random.randrange(4))
        for start in range(0, len(data), 100):
            writer.write(data[start : start + 100])
            await asyncio.sleep(self._random.choice([0.0, 0.01]))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(8.0):
                await reader.read(-1)
        self.count["garbage"] += 1
        await _shut(writer)


async def _shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


# ---- the report ----------------------------------------------------------------------------------


async def soak(minutes: float, connections: int, seed: int) -> int:
    """Run, print the report; returns the exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.soak", "--serve"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    async def ask(what: str) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(what.encode() + b"\n")
        answer: dict[str, Any] = json.loads(await process.stdout.readline())
        return answer

    first = json.loads(await process.stdout.readline())
    clients = Soak(first["port"], time.monotonic() + minutes * 60, seed)
    running = asyncio.ensure_future(clients.run(connections))
    samples = []
    while not running.done():
        await asyncio.wait([running], timeout=SAMPLE_S)
        samples.append(await ask("sample"))
    running.result()
    # What the clients have left must have timed out, too.
    await asyncio.sleep(max(CONFIG.write_timeout_s, CONFIG.keep_alive_timeout_s) * 2 + 2)
    last = await ask("account")
    process.stdin.close()
    await process.wait()
    faults = _report(first, samples, last, clients.count, minutes, connections)
    print("\n".join([f"FAULT: {fault}" for fault in faults]) or "no faults")
    return 1 if faults else 0


def _slope(samples: Sequence[dict[str, Any]]) -> float:
    """MB a minute, by least squares."""
    xs = [sample["at_s"] / 60 for sample in samples]
    ys = [sample["rss_mb"] for sample in samples]
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum([(x - x0) ** 2 for x in xs])
    return sum([(x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)]) / spread if spread else 0.0


def _report(
    first: dict[str, Any],
    samples: list[dict[str, Any]],
    last: dict[str, Any],
    count: Counter[str],
    minutes: float,
    connections: int,
) -> list[str]:
    """Print the report; what is wrong."""
    filled = next((i for i, sample in enumerate(samples) if sample["requests"] > CONFIG.ledger_size), len(samples))
    # From when the ledger is full until the clients begin to stop.
    end_s = samples[0]["at_s"] + minutes * 60
    steady = [s for s in samples[max(filled, len(samples) // 3) :] if s["at_s"] < end_s]
    slope = _slope(steady) if len(steady) > 5 else float("nan")
    outcomes = last["outcomes"]
    print(
        f"soak: {connections:,} connections, {minutes:g} min, {platform.platform()}, CPython {sys.version.split()[0]}"
    )
    print("clients: " + ", ".join([f"{n:,} {what}" for what, n in sorted(count.items())]))
    print(f"requests: {last['requests']:,}: " + ", ".join([f"{n:,} {o}" for o, n in outcomes.items()]))
    peak = max(samples, key=lambda s: float(s["connections"]))
    print(f"peak: {peak['connections']:,} connections, {max([s['waiting'] for s in samples]):,} waiting deadlines")
    steady_mb = [s["rss_mb"] for s in steady] or [0.0]
    print(
        f"RSS: {first['rss_mb']:.1f} MB at start, {min(steady_mb):.1f} to {max(steady_mb):.1f} MB in the steady part"
        f" ({len(steady) * SAMPLE_S:.0f} s), slope {slope:+.2f} MB/min; {last['rss_mb']:.1f} MB at the end"
    )
    for name in ("descriptors", "tasks", "connections", "waiting", "in_flight"):
        print(f"{name}: {first[name]} before, {last[name]} after")
    print(
        f"lateness: p50 {last['lateness_p50_ms']:.3f} ms, p99 {last['lateness_p99_ms']:.3f} ms of all chunks; stalls"
        f" by our own work {last['stalls']}, longest {last['longest_own_ms']:.1f} ms"
    )
    left = [name for name in ("connections", "in_flight") if last[name]]
    left += [name for name in ("descriptors", "tasks", "waiting") if last[name] > first[name]]
    checks = {
        f"left over: {', '.join(left)}": not left,
        "the outcomes do not add up": sum(outcomes.values()) == last["requests"] == last["numbered"],
        "bugs of ours were answered": not outcomes.get("error"),
        "good streams were broken": not any(name.startswith(("broken", "good:")) for name in count),
        f"memory grows by {slope:.2f} MB a minute": not slope > MAX_SLOPE_MB_PER_MIN,
        f"chunks were late: p99 {last['lateness_p99_ms']:.1f} ms": last["lateness_p99_ms"] <= BUDGET_MS,
    }
    return [fault for fault, right in checks.items() if not right]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Soak the server with good and bad clients.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if flags.serve:
        asyncio.run(serve())
        return 0
    return asyncio.run(soak(flags.minutes, flags.connections, flags.seed))


if __name__ == "__main__":
    sys.exit(main())
