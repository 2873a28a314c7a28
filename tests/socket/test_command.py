"""`python -m mockllm` as a process: its one line, its signals and its exit codes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 30


@contextmanager
def mockllm(*argv: str) -> Iterator[subprocess.Popen[str]]:
    """The command, killed at the end if it still runs."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(("MOCKLLM_", "GUIDELLM_"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "mockllm", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=own,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    """Its one line; readable once the server listens."""
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [[], ["serve"]])
def test_it_prints_one_line_serves_and_stops_cleanly(number: signal.Signals, command: list[str]) -> None:
    with mockllm(*command, "--port", "0", "--ttft-ms", "20", "--ttft-ms-std", "5", "--itl-ms", "0.25") as process:
        line = first_line(process)
        match = re.fullmatch(
            r"mockllm \S+ at (http://127\.0\.0\.1:\d+)/v1, model llama-3\.1-8b-instruct: "
            r"TTFT 20 ms \(std 5\), ITL 0\.25 ms, 128 tokens\n",
            line,
        )
        assert match, line
        with urllib.request.urlopen(f"{match[1]}/health", timeout=TIMEOUT_S) as response:
            assert response.status == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("requests: 1 (1 completed) in ")
    assert out.endswith("verdict:  no generation reply was sent, so there is no lateness to judge\n")


def streaming(port: int) -> socket.socket:
    """A client whose stream's head has come."""
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    client = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    client.sendall(head.encode() + body)
    assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    return client


def port_of(process: subprocess.Popen[str]) -> int:
    match = re.search(r":(\d+)/v1", first_line(process))
    assert match
    return int(match[1])


def test_a_signal_lets_running_streams_finish() -> None:
    argv = ("--port", "0", "--ttft-ms", "300", "--itl-ms", "1", "--output-tokens", "5", "--lateness-budget-ms", "1e4")
    with mockllm(*argv) as process:
        with streaming(port_of(process)) as client:
            process.send_signal(signal.SIGTERM)
            received = b"".join(iter(lambda: client.recv(4096), b""))
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert b"data: [DONE]" in received
    assert received.endswith(b"0\r\n\r\n")
    assert (process.returncode, err) == (0, "")
    assert "1 completed" in out
    assert "tokens:   5 in 8 chunks" in out
    assert "verdict:  trustworthy" in out


def test_a_second_signal_ends_at_once() -> None:
    argv = ("--port", "0", "--ttft-ms", "3600000", "--shutdown-timeout-s", "3600")
    with mockllm(*argv) as process:
        with streaming(port_of(process)) as client:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            received = b"".join(iter(lambda: client.recv(4096), b""))
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert b"0\r\n\r\n" not in received  # nobody takes it for complete
    assert process.returncode == 1
    assert "1 aborted_by_shutdown" in out
    assert err == "mockllm: a second signal: stopped without waiting\n"


def test_a_port_in_use_is_one_line_and_exit_code_1() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with mockllm("--port", str(port)) as process:
            out, err = process.communicate(timeout=TIMEOUT_S)
    message = f"mockllm: cannot listen on 127.0.0.1 port {port}: the port is in use; --port 0 picks a free one\n"
    assert (process.returncode, out, err) == (1, "", message)


def test_a_host_that_is_not_there_is_one_line_and_exit_code_1() -> None:
    with mockllm("--host", "no.such.host.invalid") as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (1, "")
    assert re.fullmatch(r"mockllm: cannot listen on no\.such\.host\.invalid port 8000: [^\n]+\n", err)


def test_a_wrong_flag_is_one_line_and_exit_code_2() -> None:
    with mockllm("--ttft-ms", "soon") as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    message = "mockllm: --ttft-ms: 'soon' is not valid; allowed: a finite number >= 0\n"
    assert (process.returncode, out, err) == (2, "", message)


def test_help_and_version_exit_with_0() -> None:
    for flag, start in (("--help", "usage: "), ("--version", "mockllm ")):
        with mockllm(flag) as process:
            out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, "")
        assert out.startswith(start)
