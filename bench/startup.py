"""How long mockllm takes to be there: `python -m bench.startup`.

Measures, each in fresh processes and as the median of several:

- `import mockllm`, and its settings, server and command line: inside the process, from before the
  import to after it;
- exec to the first 200 reply: from before the process is made to the end of a reply of `/health`,
  by a client that tries to connect every millisecond;
- the packages that a `pip install .` brings, by the requirements of mockllm and of what they need.

A bare interpreter's start (`python -c pass`) is printed beside them: it is a part of exec to reply.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
TIMEOUT_S = 20.0
POLL_S = 0.001
MODULES = ("mockllm", "mockllm.config", "mockllm.server", "mockllm.cli.serve, mockllm.cli.run")

# An installed package is compiled; with this variable each process would compile the checkout anew.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

IMPORT = "import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="fresh processes per figure (default: 15)")
    repeats = parser.parse_args().repeats
    print(f"{platform.platform()}, {cpu()}, CPython {platform.python_version()}; median (min-max) of {repeats}")
    rows: list[tuple[str, Callable[[], float]]] = [("python -c pass", bare_s)]
    rows += [(f"import {modules}", lambda modules=modules: import_s(modules)) for modules in MODULES]  # type: ignore[misc]
    rows.append(("exec to the first 200 reply", reply_s))
    for name, measure in rows:
        measure()  # writes the bytecode caches and warms the disk's
        times_ms = [1000 * measure() for _ in range(repeats)]
        print(f"{name:<50} {statistics.median(times_ms):7.1f} ms ({min(times_ms):.1f}-{max(times_ms):.1f})")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = sorted(packages(project["dependencies"]))
    print(f"{'packages beside mockllm itself':<50} {len(brought):7} ({', '.join(brought)})")


def cpu() -> str:
    """The processor's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def bare_s() -> float:
    """Seconds that an interpreter takes to start and end."""
    started_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=ENVIRON)
    return time.perf_counter() - started_s


def import_s(modules: str) -> float:
    """Seconds that an import takes in a fresh interpreter."""
    code = IMPORT.format(modules=modules)
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT, env=ENVIRON
    )
    return float(done.stdout)


def reply_s() -> float:
    """Seconds from exec of the server to the end of its first 200 reply."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started_s = time.perf_counter()
    command = [sys.executable, "-m", "mockllm", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=ENVIRON) as server:
        try:
            while not healthy(port):
                if server.poll() is not None or time.perf_counter() - started_s > TIMEOUT_S:
                    raise RuntimeError("the server did not come up")
                time.sleep(POLL_S)
            return time.perf_counter() - started_s
        finally:
            server.terminate()


def healthy(port: int) -> bool:
    """Whether `/health` answers 200."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return client.recv(4096).startswith(b"HTTP/1.1 200 ")
    except ConnectionRefusedError:
        return False


def packages(wanted: Iterable[str]) -> set[str]:
    """The packages that a `pip install` of these requirements brings, extras left out, as installed here."""
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in wanted if "extra ==" not in requirement}
    return names.union(*(packages(distribution(name).requires or ()) for name in names))


if __name__ == "__main__":
    main()
