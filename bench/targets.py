"""The servers that are measured: each a process of its own, alone on the server's core."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from bench.machine import Cores, cpu_s

ROOT = Path(__file__).parent.parent
START_TIMEOUT_S = 30.0


class Target(Struct):
    """A server to be started.

    Attributes:
        name: For the table.
        arguments: What follows the Python interpreter; `{port}` is filled in.
        environment: Added to ours.
        health: Path that answers 200 when it is ready; None: a connection is enough.
    """

    name: str
    arguments: Sequence[str]
    environment: dict[str, str] = {}
    health: str | None = "/health"


class Running(Struct):
    """A server that runs."""

    name: str
    pid: int
    port: int

    @property
    def cpu_s(self) -> float:
        """CPU seconds it has used."""
        return cpu_s(self.pid)


def mockllm(*flags: str, ttft_ms: float = 0.0, itl_ms: float = 0.0, name: str = "mockllm") -> Target:
    """The server of this checkout; records, metrics and validation are on, as by default."""
    timing = (f"--ttft-ms={ttft_ms:g}", f"--itl-ms={itl_ms:g}")
    return Target(name, ("-m", "mockllm", "--port={port}", "--log-level=error", *timing, *flags))


def fastapi(*, ttft_ms: float = 0.0, itl_ms: float = 0.0) -> Target:
    """Reference (a): FastAPI and uvicorn, as a user would write it by hand."""
    environment = {"TTFT_MS": f"{ttft_ms:g}", "ITL_MS": f"{itl_ms:g}"}
    return Target("fastapi", (str(ROOT / "bench/reference/fastapi_mock.py"), "{port}"), environment)


def floor(*flags: str) -> Target:
    """Reference (b): canned bytes, nothing parsed."""
    return Target("floor", ("-m", "bench.reference.floor", "{port}", *flags), health=None)


def guidellm() -> Target:
    """Reference (c): guidellm's mock server, with no delay."""
    flags = ("--ttft-ms=0", "--itl-ms=0", "--workers=1")
    return Target("guidellm", ("-m", "guidellm", "mock-server", "--port={port}", *flags))


def has_fastapi() -> bool:
    """Whether reference (a) can run here."""
    return all(find_spec(name) for name in ("fastapi", "uvicorn", "httptools", "uvloop"))


def has_guidellm() -> bool:
    """Whether reference (c) can run here."""
    return find_spec("guidellm") is not None


@contextmanager
def running(targets: Sequence[Target], cores: Cores) -> Iterator[list[Running]]:
    """Start servers on the server's core, wait until all answer, and stop them at the end."""
    started: list[tuple[subprocess.Popen[bytes], Running]] = []
    try:
        for target in targets:
            port = free_port()
            command = [sys.executable, *[part.format(port=port) for part in target.arguments]]
            process = subprocess.Popen(
                # taskset becomes the server: the pid is its own. It inherits the real-time class, see `on_core`.
                ["taskset", "-c", str(cores.server), *command],
                env={**os.environ, **target.environment, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            server = Running(target.name, process.pid, port)
            started.append((process, server))
            _wait(process, server, target.health)
        yield [server for _, server in started]
    finally:
        for process, _ in started:
            process.terminate()
        for process, _ in started:
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """A TCP port that nobody uses just now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], server: Running, health: str | None) -> None:
    deadline = time.perf_counter() + START_TIMEOUT_S
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{server.name} ended with status {process.returncode} before it answered")
        try:
            if health is None:
                socket.create_connection(("127.0.0.1", server.port), 1.0).close()
                return
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=1.0)
            connection.request("GET", health)
            if connection.getresponse().status == 200:
                connection.close()
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise RuntimeError(f"{server.name} did not answer within {START_TIMEOUT_S:g} s")
