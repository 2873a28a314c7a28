"""Every parameter of chat, completions and Responses: what becomes of it, what it takes, and what it refuses.

The README's table is written from here (`python -m tests.parameter_table` after a change), and
`test_parameters` proves each row.
"""

from __future__ import annotations

from tests import parameter_honoured, parameter_responses, parameter_validated
from tests.answers import RESPONSES
from tests.flag_table import README
from tests.parameter_rows import BOTH, UNKNOWN, Row

BEGIN, END = "<!-- parameters: begin, written by tests/parameter_table.py -->", "<!-- parameters: end -->"

ROWS = [*parameter_honoured.ROWS, *parameter_validated.ROWS, *parameter_responses.ROWS]


def table() -> str:
    """All parameters as Markdown: those of chat and completions side by side, then those of Responses.

    A parameter that chat and completions take differently has two rows.
    """
    lines = ["| parameter | chat | completions | takes |", "|---|---|---|---|"]
    for row in ROWS:
        if row.endpoints != (RESPONSES,) and (same := _same(row))[0] is row:
            paths = {path for other in same for path in other.endpoints}
            cells = [row.kind if path in paths else _elsewhere(row, path) for path in BOTH]
            lines.append(f"| `{row.name}` | {' | '.join(cells)} | {row.takes} |")
    lines += ["", "Of `/v1/responses`:", "", "| parameter | | takes |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {row.kind} | {row.takes} |" for row in ROWS if row.endpoints == (RESPONSES,)]
    return "\n".join(lines)


def with_table(text: str) -> str:
    """A README's text with the current table between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README needs the two marks {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _same(row: Row) -> list[Row]:
    """The rows that say the same of a parameter, of one endpoint or another: one row of the table."""
    return [other for other in ROWS if (other.name, other.kind, other.takes) == (row.name, row.kind, row.takes)]


def _elsewhere(row: Row, path: str) -> str:
    """The cell of the other endpoint: empty where that has a row of its own."""
    return "" if any(other.name == row.name and path in other.endpoints for other in ROWS) else UNKNOWN


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
