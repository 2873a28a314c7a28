"""Prints rows: a table first, then every single run."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from bench import load, targets
from bench.machine import describe
from bench.measure import Row, Settings, number

README = Path(__file__).parent / "README.md"

METHOD = """\
The server runs alone on one core, the load on another. CPU time is the server process's, user and system, from the
operating system; it is far steadier than rates on a shared machine. Targets take turns, run after run; figures are
medians with the range of all runs behind them. Paced rows: {tool} keeps the mass of streams going, 20 more belong to
an open-loop probe that stamps every token. Lateness of token k is arrival - (send + TTFT + k · ITL), at the client;
"at the kernel" is the same by the kernel's time stamp of the packet, without the probe's own lag. Tokens of the mass
are counted from how long its streams took. Any error, a reply of the wrong length among them, makes a row invalid.
Routing, validation, ledger and metrics are on, as they are by default. Numbers compare only within one run."""


def render(rows: list[Row], settings: Settings, took_s: float) -> str:
    """The report as Markdown."""
    missing = []
    if not targets.has_fastapi():
        missing.append("fastapi (pip install '.[bench]')")
    if not targets.has_guidellm():
        missing.append("guidellm")
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {took_s:.0f} s. {describe()}. Load: {load.tool()}.",
        "",
        METHOD.format(tool=load.tool()),
        "",
    ]
    if missing:
        lines += [f"Not installed here, so not compared: {', '.join(missing)}.", ""]
    lines += ["| work | goal | mockllm | against the references | verdict |", "|---|---|---|---|---|"]
    lines += [f"| {row.work} | {row.goal} | {_summary(row)} | {row.ratio} | {row.verdict} |" for row in rows]
    lines.append("")
    for row in rows:
        lines += _details(row)
    return "\n".join(lines)


def _summary(row: Row) -> str:
    """The figures that are ours, in brief."""
    figures = list(row.figures.items())
    own = [(name, runs) for name, runs in figures if name.startswith("mockllm")] or figures
    if len(own) == 1:
        return str(own[0][1])
    return "; ".join([f"{name.removeprefix('mockllm ')} {number(runs.median)} {runs.unit}" for name, runs in own])


def _details(row: Row) -> list[str]:
    lines = [f"**{row.work}**", ""]
    lines += [f"- INVALID: {error}" for error in row.errors[:5]]
    lines += [f"- {note}" for note in row.notes]
    for name, runs in row.figures.items():
        lines.append(f"- {name}, {runs.unit}: {', '.join([number(run) for run in runs.runs])}")
    return [*lines, ""]


def to_json(rows: list[Row]) -> bytes:
    """Every run of every row."""
    return msgspec.json.format(msgspec.json.encode(rows))


def write(text: str) -> None:
    """Put a report into bench/README.md, below the part that is written by hand."""
    head, mark, _ = README.read_text().partition("<!-- results -->\n")
    README.write_text(head + mark + "\n" + text + "\n")
