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
    assert (process.returncode, out, err) == (0, "", "")


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
