"""Makes the clients' environments: one for each requirements file, since their pins contradict each other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from tests.clients.matrix import CLIENTS, HERE

ROOT = HERE.parent.parent / ".clients"
AT_ONCE = 4
"""Environments that are made side by side: each waits for the network and the disk most of the time."""


def node() -> str | None:
    """Node, if it is there with its package manager."""
    return shutil.which("node") if shutil.which("npm") else None


def python_of(name: str) -> Path:
    """The interpreter of a client's environment."""
    return ROOT / name / "bin" / "python"


def is_made(name: str) -> bool:
    """Whether an environment is there, with the pins of today."""
    stamp = _stamp(name)
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _wanted(name)


def make_all(names: Iterable[str] = ()) -> None:
    """Make the environments that are missing or out of date.

    Args:
        names: Which; all, if empty.

    Raises:
        CalledProcessError: pip failed; what it said is on standard error. Without what npm brings we go on.
    """
    names = tuple(names)
    known = dict.fromkeys(client.name for client in CLIENTS if not client.npm or node())
    missing = [name for name in known if (not names or name in names) and not is_made(name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name in pool.map(_make, missing):
            told = "made the environment of" if is_made(name) else "could not make the environment of"
            print(f"{told} {name}", flush=True)


def _make(name: str) -> str:
    place = ROOT / name
    shutil.rmtree(place, ignore_errors=True)
    if name == "node":
        place.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / file, place)
        if subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=place).returncode:
            return name
    else:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        install = [sys.executable, "-m", "pip", "--python", str(python_of(name)), "install", "--quiet", "--no-deps"]
        subprocess.run([*install, "-r", str(HERE / "requirements" / f"{name}.txt")], check=True)
    _stamp(name).write_text(_wanted(name), encoding="utf-8")
    return name


def _stamp(name: str) -> Path:
    return ROOT / name / ".made"


def _wanted(name: str) -> str:
    pins = HERE / "node" / "package-lock.json" if name == "node" else HERE / "requirements" / f"{name}.txt"
    return f"{sys.version_info.major}.{sys.version_info.minor} {sha256(pins.read_bytes()).hexdigest()}"
