"""The layering holds, and the checker that says so would notice if it did not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.layers import violations

ROOT = Path(__file__).parent.parent
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 70


def test_the_package_is_layered() -> None:
    assert violations(ROOT / "mockllm") == []


def test_no_module_or_function_is_too_long() -> None:
    too_long = []
    for path in (path for folder in ("mockllm", "tests", "bench") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        sizes = [("the module", len(text.splitlines()), MAX_MODULE_LINES)]
        sizes += [(f.name, (f.end_lineno or 0) - f.lineno + 1, MAX_FUNCTION_LINES) for f in functions]
        too_long += [f"{path.relative_to(ROOT)}: {what} has {n} lines" for what, n, most in sizes if n > most]
    assert too_long == []


CLEAN = {
    "__init__.py": "from .config import Config\n",
    "errors.py": "class Error(Exception): pass\n",
    "clock.py": "import time\n",
    "http/__init__.py": "from .sse import encode\n",
    "http/sse.py": "from ..errors import Error\nfrom .framing import frame\n",
    "http/framing.py": "from mockllm.errors import Error\n",
    "generation/__init__.py": "",
    "generation/plan.py": "from .. import errors, clock\n",
    "config.py": "from .http.sse import encode\nfrom .http import framing\nfrom .generation import plan\n",
    "server.py": (
        "import asyncio, importlib\nfrom mockllm import config\n"
        "async def run() -> None: open('x')\nimportlib.import_module('extra')\n"
    ),
    "cli/__init__.py": "import os, signal, sys\nfrom ..server import run\nprint(os.environ, sys.argv)\n",
}

BREACHES = [
    ("errors.py", "from .clock import now", "errors: imports clock (rank 0), which is not below rank 0"),
    ("http/sse.py", "from ..generation.plan import Plan", "http.sse: imports generation.plan (rank 1)"),
    ("http/sse.py", "import mockllm.config", "http.sse: imports config (rank 2)"),
    ("http/sse.py", "from mockllm import Config", "http.sse: imports __init__ (rank 9)"),
    ("http/sse.py", "from .. import Config", "http.sse: imports __init__ (rank 9)"),
    ("http/__init__.py", "from .. import Config", "http: imports __init__ (rank 9)"),
    ("http/sse.py", "def f():\n    from ..server import run", "http.sse: imports server (rank 7)"),
    ("http/framing.py", "from .sse import encode", "imports in a circle"),
    ("http/framing.py", "from . import sse", "imports in a circle"),
    ("http/framing.py", "from . import encode", "imports in a circle"),
    ("strange.py", "", "strange: has no rank"),
    ("http/sse.py", "import asyncio.queues", "http.sse: imports asyncio"),
    ("config.py", "from socket import AF_INET", "config: imports socket"),
    ("config.py", "from threading import Lock", "config: imports threading"),
    ("server.py", "from time import monotonic", "server: imports time; only clock may"),
    ("server.py", "import time as t", "server: imports time; only clock may"),
    ("config.py", "async def f() -> None: pass", "config: is async at line"),
    ("config.py", "open('x')", "config: uses open"),
    ("server.py", "import os\nos.environ['X']", "server: uses os.environ"),
    ("server.py", "import os as o\no.environ['X']", "server: uses os.environ"),
    ("server.py", "from os import environ", "server: uses os.environ"),
    ("server.py", "import sys\nsys.argv", "server: uses sys.argv"),
    ("server.py", "import signal", "server: uses signal"),
    ("server.py", "loop.add_signal_handler(1, f)", "server: uses .add_signal_handler"),
    ("server.py", "import logging\nlogging.basicConfig()", "server: uses logging.basicConfig"),
    ("server.py", "logger.setLevel(10)", "server: uses .setLevel"),
    ("server.py", "import sys\nsys.exit(1)", "server: uses sys.exit"),
    ("server.py", "raise SystemExit(1)", "server: uses SystemExit"),
    ("server.py", "import importlib\nimportlib.import_module(name)", "server: imports by a computed or own name"),
    (
        "config.py",
        "import importlib\nimportlib.import_module('mockllm.server')",
        "config: imports by a computed or own",
    ),
    ("config.py", "import importlib\nimportlib.import_module('asyncio')", "config: imports by a computed or own name"),
]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_layered_tree_has_no_breach(tmp_path: Path) -> None:
    assert violations(write(tmp_path, CLEAN)) == []


@pytest.mark.parametrize(("module", "line", "expected"), BREACHES)
def test_a_breach_is_found(tmp_path: Path, module: str, line: str, expected: str) -> None:
    found = violations(write(tmp_path, CLEAN | {module: CLEAN.get(module, "") + line + "\n"}))
    assert len(found) == 1
    assert expected in found[0]
