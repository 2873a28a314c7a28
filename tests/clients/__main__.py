"""`python -m tests.clients [CLIENT ...]`: make the clients' environments, and run their checks; none is skipped."""

from __future__ import annotations

import os
import sys

import pytest

from tests.clients.environments import make_all
from tests.clients.matrix import HERE

if __name__ == "__main__":
    make_all(sys.argv[1:])
    os.environ["CLIENTS_REQUIRED"] = " ".join(sys.argv[1:]) or "all"
    sys.exit(pytest.main([str(HERE), "-q"]))
