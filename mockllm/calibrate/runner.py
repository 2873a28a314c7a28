"""Starts a server on one core, loads it from another, and raises the load until it is late."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mockllm.calibrate.client import Load, run
from mockllm.calibrate.rows import Report, Row, make_row
from mockllm.calibrate.search import Search
from mockllm.version import VERSION

STOP_TIMEOUT_S = 10.0


class CalibrationError(Exception):
    """The server for the calibration did not start."""


def calibrate(
    load: Load,
    *,
    budget_ms: float,
    first: int,
    most: int,
    seconds: float,
    refinements: int,
    environ: Mapping[str, str],
    progress: Callable[[Row], None],
) -> Report:
    """Find the number of streams up to which p99 lateness stays in the budget.

    Args:
        load: What each stream asks for.
        budget_ms: The p99 lateness that is allowed, in ms.
        first, most: Where the search begins, and where it ends at the latest.
        seconds: How long each load is measured.
        refinements: How often the gap between held and not held is halved.
        environ: The environment; settings of the person's own server are kept from this one.
        progress: Gets each row when it is measured.

    Raises:
        CalibrationError: The server did not start.
    """
    server_cpu, client_cpu = _cores()
    before = os.sched_getaffinity(0) if client_cpu is not None else None
    rows: list[Row] = []
    search = Search(first, most, refinements)
    try:
        with _server(load, server_cpu, environ) as (address, pid):
            if client_cpu is not None:
                os.sched_setaffinity(0, {client_cpu})
            while (streams := search.next) is not None:
                used_s = _used_cpu_s(pid)
                measured = run(address, load, streams, seconds)
                after_s = _used_cpu_s(pid)
                wall_s = load.request_s + seconds
                share = (after_s - used_s) / wall_s if used_s is not None and after_s is not None else None
                row = make_row(load, streams, measured, share, budget_ms)
                rows.append(row)
                progress(row)
                search.tell(row.held)
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)
    return Report(
        machine=_machine(),
        versions=f"mockllm {VERSION}, {platform.python_implementation()} {platform.python_version()}",
        placement=f"server on core {server_cpu}, client on core {client_cpu}"
        if client_cpu is not None
        else "server and client share what cores there are",
        ttft_ms=load.ttft_s * 1e3,
        itl_ms=load.itl_s * 1e3,
        tokens=load.tokens,
        budget_ms=budget_ms,
        rows=tuple(rows),
        held_streams=search.held,
    )


def _cores() -> tuple[int | None, int | None]:
    """A core for the server and one for the client; None where they cannot be had."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[1]) if len(cores) > 1 else (None, None)


@contextmanager
def _server(load: Load, core: int | None, environ: Mapping[str, str]) -> Iterator[tuple[tuple[str, int], int]]:
    """A server process; its address and process id."""
    argv = [sys.executable, "-m", "mockllm", "--port", "0", "--max-connections", "0", "--log-level", "error"]
    argv += ["--ttft-ms", repr(load.ttft_s * 1e3), "--itl-ms", repr(load.itl_s * 1e3)]
    kept = {name: value for name, value in environ.items() if "MOCKLLM_" not in name and "GUIDELLM_" not in name}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://([\d.]+):(\d+)", line)
        if found is None:
            process.kill()
            _, errors = process.communicate()
            raise CalibrationError(errors.strip() or "it said nothing")
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        yield (found[1], int(found[2])), process.pid
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _used_cpu_s(pid: int) -> float | None:
    """CPU seconds that a process has used; None where the system does not tell.

    Source: proc(5), /proc/PID/stat, fields 14 and 15.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        model = found[1] if found else model
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def to_json(report: Report) -> bytes:
    """The report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
