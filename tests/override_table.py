"""The README's table of overrides, written from the struct that reads them.

Run `python -m tests.override_table` after a key has changed: it rewrites the table in the README.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import Meta

from mockllm.dialects.overrides import FAULT_HEADER, HEADERS
from mockllm.generation.overrides import KEYS, Override
from tests.flag_table import README
from tests.override_rows import ROWS

BEGIN, END = "<!-- overrides: begin, written by tests/override_table.py -->", "<!-- overrides: end -->"


def description(key: str) -> str:
    """What the struct says of a key."""
    hint: Any = get_type_hints(Override, include_extras=True)[key]
    assert get_origin(hint) is Annotated
    (text,) = [meta.description for meta in get_args(hint)[1:] if isinstance(meta, Meta)]
    assert text
    return str(text)


def table() -> str:
    """All keys as a Markdown table."""
    types = {row.key: row.type for row in ROWS}
    lines = ["| key of `mockllm` | header | value | what it does |", "|---|---|---|---|"]
    for key in KEYS:
        headers = HEADERS | {"fault": FAULT_HEADER.decode()}
        header = f"`{headers[key]}`" if key in headers else ""
        lines.append(f"| `{key}` | {header} | {types[key]} | {description(key)} |")
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


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
