"""What the operating system knows: cores, CPU time, memory, other people's load. Linux only."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from msgspec import Struct

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


class Cores(Struct, frozen=True):
    """The core of the server and the core of the load."""

    server: int
    load: int


def two_cores() -> Cores:
    """The first two cores that this process may use.

    Raises:
        SystemExit: There is only one.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise SystemExit("bench needs two cores: one for the server and one for the load")
    return Cores(allowed[0], allowed[1])


def cpu_s(pid: int) -> float:
    """CPU seconds, user and system, that a process has used, in all its threads.

    Source: `/proc/PID/task/TID/schedstat` (nanoseconds); kernels without it give the 10 ms ticks of `/proc/PID/stat`.
    """
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum([int((task / "schedstat").read_bytes().split()[0]) for task in tasks]) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S  # utime, stime: proc_pid_stat(5)


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy_s(core: int) -> float:
    """Seconds that a core has been busy or stolen since boot, whoever used it (10 ms ticks)."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{core}":
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, ticks[:8])
            return (user + nice + system + irq + softirq + steal) / TICKS_PER_S
    raise ValueError(f"no core {core}")


def on_core(core: int, *, first: bool = False) -> None:
    """Keep this process and those that it starts on one core, where root's go before other people's.

    A real-time class, since a nice value counts within a session alone (sched(7), "autogroup").

    Args:
        first: Before the rest of the load as well.
    """
    os.sched_setaffinity(0, {core})
    with suppress(OSError):  # not root
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2 if first else 1))


@contextmanager
def kept_awake(core: int) -> Iterator[None]:
    """Keep a core from going to sleep, with work that gives way to any other.

    A client that sleeps on an idle core has to be woken by an interrupt for nearly every token,
    which on a virtual machine costs the *sender* 10 µs and more: it would be charged to the server.
    """
    command = ["chrt", "--idle", "0", "taskset", "-c", str(core), sys.executable, "-S", "-E", "-c", _SPIN]
    with subprocess.Popen([*command, str(os.getpid())]) as spinner:
        try:
            yield
        finally:
            spinner.kill()


def describe() -> str:
    """Machine and versions, in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
    names = ("h11", "msgspec", "fastapi", "uvicorn", "httptools", "uvloop")
    versions = ", ".join([f"{name} {version_of(name)}" for name in names])
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} × {model}, Linux {platform.release()}, {python}, {versions}"


def version_of(name: str) -> str:
    """Installed version of a package, or `-`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
