"""The README's table of settings, written from the settings themselves.

Run `python -m tests.flag_table` after a setting has changed: it rewrites the table in the README.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from mockllm.config import CONFIG_FILE, Config, Option, options

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- flags: begin, written by tests/flag_table.py -->", "<!-- flags: end -->"
BAR = r"\|"  # a bar inside a cell, in code too (GitHub's tables)


def table() -> str:
    """All settings as a Markdown table, a heading row for each group."""
    lines = ["| flag | default | what it does |", "|---|---|---|"]
    for group, members in groupby((CONFIG_FILE, *options(Config)), key=lambda option: option.group):
        lines.append(f"| **{group}** | | |")
        lines += map(_row, members)
    return "\n".join(lines)


def with_table(text: str) -> str:
    """A README's text with the current table between its two marks.

    Raises:
        ValueError: A mark is missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README needs the two marks {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _row(option: Option) -> str:
    flag = option.flag.replace("--", "--[no-]", 1) if option.kind == "switch" else f"{option.flag} {option.metavar}"
    cells = (f"`{flag}`", option.default_text, option.help)
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
