"""Closed-loop load: wrk where it is installed, else a small client of our own.

Every connection sends its next request when the reply to the last one is whole. That measures
what a request costs; how late a reply is, is the probe's business.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.wire import post

PATH = "/v1/chat/completions"
MARK = "@" * 32
"""In a request: what is replaced by a number of its own, as 32 hex digits; once."""


class Load(Struct, frozen=True):
    """What is sent.

    Attributes:
        port: Port on 127.0.0.1.
        body: The same for every request, but for `MARK`: hex digits of their own take its place.
        stream: The replies are event streams.
        connections: How many at once.
        duration_s: For how long, the ramp included.
        own_ids: Every request has its own `X-Request-Id`.
        reconnect: Every request has its own connection.
        ramp_s: The first requests are spread over so many seconds.
    """

    port: int
    body: bytes
    stream: bool = False
    connections: int = 64
    duration_s: float = 1.5
    own_ids: bool = False
    reconnect: bool = False
    ramp_s: float = 0.0


class Outcome(Struct, frozen=True):
    """What came of it.

    Attributes:
        requests: Replies that were whole and had status 200.
        errors: Everything else, by kind.
        duration_s: How long it really took.
        bytes_read: Bytes of all replies.
        latency_s: Mean time from a request to the end of its reply.
    """

    requests: int
    errors: dict[str, int]
    duration_s: float
    bytes_read: int
    latency_s: float


def request_parts(load: Load) -> list[bytes]:
    """The request: in one part, or what stands before and after its own number."""
    lines = ["connection: close"] if load.reconnect else []
    if load.own_ids:
        lines.append(f"x-request-id: {MARK}")
    return post(PATH, load.body, *lines).split(MARK.encode(), 1)


def tool() -> str:
    """What makes the load: `wrk`, or `bench.mass`."""
    return "wrk" if shutil.which("wrk") else "bench.mass"


class Running:
    """A load under way, on this process's core."""

    def __init__(self, load: Load) -> None:
        if tool() == "wrk":
            self._script = _script(load)
            command = [
                "wrk",
                "--threads=1",
                f"--connections={load.connections}",
                f"--duration={max(1, round(load.duration_s))}s",
                "--timeout=120s",
                f"--script={self._script.name}",
                f"http://127.0.0.1:{load.port}{PATH}",
            ]
        else:
            command = [sys.executable, "-m", "bench.mass", msgspec.json.encode(load).decode()]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )

    def result(self) -> Outcome:
        """Wait for the end."""
        out, err = self._process.communicate()
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if self._process.returncode or not lines:
            raise RuntimeError(f"{tool()} failed: {err or out}")
        return msgspec.json.decode(lines[-1], type=Outcome)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def run(load: Load) -> Outcome:
    """Make the load and wait for its end."""
    with Running(load) as running:
        return running.result()


_SAME = """
local whole = %s
request = function() return whole end
"""
_OWN = """
local before, after, salt, number = %s, %s, os.time(), 0
request = function()
  number = number + 1
  return before .. string.format("%%016x%%016x", salt, number) .. after
end
"""
# wrk waits before a request where there is a `delay`, which is asked for each connection's first
# request first, in whole milliseconds.
_RAMP = """
local asked = 0
delay = function()
  asked = asked + 1
  return asked <= %d and math.floor((asked - 1) * %f) or 0
end
"""
_DONE = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},' ..
    '"duration_s":%.6f,"bytes_read":%d,"latency_s":%.6f}\\n',
    summary.requests - e.status, e.connect, e.read, e.write, e.status, e.timeout,
    summary.duration / 1e6, summary.bytes, latency.mean / 1e6))
end
"""


def _script(load: Load) -> Any:
    """A script for wrk, in a file that lives as long as the object returned."""
    parts = request_parts(load)
    text = _SAME % _lua(parts[0]) if len(parts) == 1 else _OWN % (_lua(parts[0]), _lua(parts[1]))
    if load.ramp_s:
        text += _RAMP % (load.connections, load.ramp_s * 1e3 / load.connections)
    file = tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="ascii")  # noqa: SIM115 # closed with the object
    file.write(text + _DONE)
    file.flush()
    return file


def _lua(data: bytes) -> str:
    """A Lua string literal."""
    return '"' + "".join([chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03d}" for b in data]) + '"'
