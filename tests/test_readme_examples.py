"""The README's Python examples run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.flag_table import README

EXAMPLES = re.findall(r"<!-- runs -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("source", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(source: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=README.parent,
    )
    assert done.returncode == 0, done.stderr
    # What a comment promises that a line prints is printed.
    for promised in re.findall(r"^print\(.*\)  # (.*)$", source, re.MULTILINE):
        assert promised in done.stdout
