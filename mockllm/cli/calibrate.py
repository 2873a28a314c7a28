"""`python -m mockllm calibrate`: how many paced streams this machine can hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from mockllm.cli.parser import read_flags
from mockllm.config import Settings, load, setting

LOAD = "Load"
SEARCH = "Search"
REPORT = "Report"


class Calibration(Settings, frozen=True, kw_only=True):
    """The settings of a calibration."""

    ttft_ms: Annotated[float, setting("Time to first token, in ms.", group=LOAD, ge=0)] = 100.0
    itl_ms: Annotated[float, setting("Time from one token to the next, in ms.", group=LOAD, ge=0)] = 20.0
    output_tokens: Annotated[int, setting("Tokens of a reply.", group=LOAD, ge=2)] = 100
    lateness_budget_ms: Annotated[float, setting("The p99 lateness that is allowed, in ms.", group=SEARCH, gt=0)] = 5.0
    streams: Annotated[int, setting("Number of streams to begin with.", group=SEARCH, ge=1)] = 100
    max_streams: Annotated[int, setting("Never try more streams.", group=SEARCH, ge=1)] = 10_000
    seconds: Annotated[float, setting("How long each load is measured, in seconds.", group=SEARCH, gt=0)] = 3.0
    refinements: Annotated[
        int, setting("How often the gap between held and not held is halved.", group=SEARCH, ge=0)
    ] = 3
    json: (
        Annotated[str, setting("Write the report to this file, as JSON.", group=REPORT, metavar="FILE", min_length=1)]
        | None
    ) = None
    html: (
        Annotated[str, setting("Write the report to this file, as a page.", group=REPORT, metavar="FILE", min_length=1)]
        | None
    ) = None


USAGE = "python -m mockllm calibrate [--SETTING VALUE ...]"
DESCRIPTION = """\
Find how many paced streams this machine can hold: a server on one core, a
client on another."""
EPILOG = """\
Exit codes: 0 a load was held; 1 not even the first one was, or a report could
not be written; 2 a setting that cannot be used."""


def main(argv: Sequence[str]) -> int:
    """Calibrate, print a table as it grows, write the reports.

    Returns:
        The exit code.

    Raises:
        ConfigError: A setting cannot be used.
    """
    flags = read_flags(Calibration, argv, usage=USAGE, description=DESCRIPTION, epilog=EPILOG)
    settings = load(Calibration, flags=flags, environ={}, read_file=lambda path: Path(path).read_bytes())
    # Imported here, like the server: a wrong flag is answered without waiting for it.
    from mockllm.calibrate.client import Load
    from mockllm.calibrate.page import to_html
    from mockllm.calibrate.rows import HEADINGS, Row, cells, conclusion, line
    from mockllm.calibrate.runner import CalibrationError, calibrate, to_json

    def show(row: Row) -> None:
        print(line(cells(row)), flush=True)

    wanted = Load(settings.ttft_ms / 1e3, settings.itl_ms / 1e3, settings.output_tokens)
    each_s = wanted.request_s + settings.seconds
    print(f"Each load takes {each_s:.1f} s; lateness is what the client sees, in ms.")
    print(line(HEADINGS), flush=True)
    try:
        report = calibrate(
            wanted,
            budget_ms=settings.lateness_budget_ms,
            first=settings.streams,
            most=settings.max_streams,
            seconds=settings.seconds,
            refinements=settings.refinements,
            environ=os.environ,
            progress=show,
        )
    except (CalibrationError, OSError) as error:
        print(f"mockllm: the calibration stopped: {error}", file=sys.stderr)
        return 1
    print(conclusion(report))
    print(f"{report.machine}; {report.versions}; {report.placement}.")
    for path, text in ((settings.json, to_json(report)), (settings.html, to_html(report).encode())):
        if path is not None:
            try:
                Path(path).write_bytes(text)
            except OSError as error:
                print(f"mockllm: cannot write {path}: {error.strerror}", file=sys.stderr)
                return 1
    return 0 if report.held_streams else 1
