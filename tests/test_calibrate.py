"""Calibration: the search, the judgement and the reports, without a server."""

from __future__ import annotations

import json
from array import array
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.calibrate.client import Load, Measured
from mockllm.calibrate.page import to_html
from mockllm.calibrate.rows import HEADINGS, Report, Row, cells, conclusion, line, make_row
from mockllm.calibrate.runner import to_json
from mockllm.calibrate.search import Search
from mockllm.cli import main

LOAD = Load(0.1, 0.02, 100)


def find(knee: int, *, first: int = 100, most: int = 100_000, refinements: int = 4) -> tuple[int, list[int]]:
    search = Search(first, most, refinements)
    tried: list[int] = []
    while (count := search.next) is not None:
        tried.append(count)
        search.tell(count <= knee)
    return search.held, tried


@given(st.integers(0, 50_000), st.integers(1, 500), st.integers(0, 8))
def test_the_search_ends_below_the_knee_and_closes_in_on_it(knee: int, first: int, refinements: int) -> None:
    held, tried = find(knee, first=first, refinements=refinements)
    assert held <= knee
    assert len(tried) == len(set(tried)), "no load is tried twice"
    failed = [count for count in tried if count > knee]
    if failed and refinements >= 8 and held >= 16:
        assert min(failed) - held <= max(1, held // 4), "to two digits"


def test_the_search_stops_at_the_most() -> None:
    held, tried = find(10**9, first=100, most=1000)
    assert (held, tried) == (1000, [100, 200, 400, 800, 1000])


def measured(lateness_ms: list[float], errors: int = 0, client_cpu: float = 0.2) -> Measured:
    return Measured(array("d", [late / 1e3 for late in lateness_ms]), 2.0, errors, client_cpu)


@pytest.mark.parametrize(
    ("lateness_ms", "errors", "client_cpu", "verdict"),
    [
        ([0.5] * 99 + [50.0], 0, 0.2, "held"),
        ([0.5] * 98 + [5.1, 50.0], 0, 0.2, "late"),
        ([0.5] * 98 + [5.1, 50.0], 0, 0.95, "client"),
        ([0.5] * 100, 1, 0.2, "errors"),
        ([], 0, 0.2, "errors"),
    ],
)
def test_a_row_is_judged_by_its_p99_and_its_errors(
    lateness_ms: list[float], errors: int, client_cpu: float, verdict: str
) -> None:
    row = make_row(LOAD, 10, measured(lateness_ms, errors, client_cpu), 0.5, 5.0)
    assert row.verdict == verdict
    assert row.held == (verdict == "held")


def test_a_rows_figures() -> None:
    row = make_row(LOAD, 50, measured([float(n) for n in range(1, 1001)]), 0.5, 5.0)
    assert (row.p50_ms, row.p99_ms, row.p999_ms, row.max_ms) == (500.0, 990.0, 999.0, 1000.0)
    assert row.tokens_per_s == 500.0
    assert row.asked_per_s == pytest.approx(50 * 100 / 2.08)
    assert list(row.cdf_ms) == sorted(row.cdf_ms)


def test_early_tokens_are_counted() -> None:
    assert make_row(LOAD, 1, measured([-0.2, -0.05, 1.0]), None, 5.0).early == 1


def report(rows: list[Row], held: int) -> Report:
    return Report("a <machine>", "mockllm", "core 0", 100.0, 20.0, 100, 5.0, tuple(rows), held)


ROWS = [
    make_row(LOAD, 100, measured([0.1, 0.2, 0.4]), 0.25, 5.0),
    make_row(LOAD, 200, measured([3.0, 9.0, 30.0]), None, 5.0),
]


def test_the_table_lines_up() -> None:
    lines = [line(HEADINGS), *[line(cells(row)) for row in ROWS]]
    assert len({len(text) for text in lines}) == 1
    assert "?" in lines[2], "no CPU share where the system does not tell"


def test_the_conclusion_says_what_is_held_and_whether_there_may_be_more() -> None:
    assert conclusion(report(ROWS, 100)).startswith("100 streams (2 tokens/s) stay within 5 ms (p99)")
    assert conclusion(report(ROWS[:1], 100)).endswith("; more were not tried.")
    assert conclusion(report(ROWS[1:], 0)) == "Not even 200 streams stay within 5 ms (p99)."


def test_the_reports_hold_every_row() -> None:
    data: dict[str, Any] = json.loads(to_json(report(ROWS, 100)))
    assert [row["streams"] for row in data["rows"]] == [100, 200]
    assert data["held_streams"] == 100

    class Page(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tags: list[str] = []
            self.links: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.tags.append(tag)
            self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    page = Page()
    text = to_html(report(ROWS, 100))
    page.feed(text)
    assert page.tags.count("tr") == 3
    assert page.tags.count("svg") == 2
    assert page.links == [], "nothing to load"
    assert "a &lt;machine&gt;" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--streams", "0"], "mockllm: --streams: '0' is not valid; allowed: a whole number >= 1\n"),
        (["--stream", "5"], "mockllm: --stream"),
    ],
)
def test_a_bad_setting_is_one_line(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *argv]) == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_help_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    assert "python -m mockllm calibrate" in capsys.readouterr().out
