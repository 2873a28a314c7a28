"""`python -m bench`: measure the server, print a table, and write bench/README.md on request."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import report
from bench.machine import on_core, two_cores
from bench.measure import Row, Settings
from bench.rows import growth, paced, start, throughput

ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    "whole": throughput.whole,
    "stream": throughput.stream,
    "reconnect": throughput.reconnect,
    "paced-100": paced.hundred,
    "paced-500": paced.five_hundred,
    "paced-1000": paced.thousand,
    "paced-2000": paced.two_thousand,
    "tokens": growth.tokens,
    "prompt": growth.prompt,
    "start": start.start,
}


def main() -> int:
    """Run the rows that were asked for; 1 when one is invalid."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which rows: {', '.join(ROWS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="few and short runs: to see that it works")
    parser.add_argument("--json", metavar="FILE", help="write every run to FILE")
    parser.add_argument("--write", action="store_true", help="write bench/README.md")
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}")
    if sys.platform != "linux":
        parser.error("CPU time, memory and cores are read from Linux's /proc")
    cores = two_cores()
    on_core(cores.load)
    settings = Settings(cores, repeats=2, paced_repeats=1, paced_seconds=2.0) if args.quick else Settings(cores)
    began = time.perf_counter()
    rows: list[Row] = []
    for name in args.rows or ROWS:
        print(f"{time.perf_counter() - began:4.0f} s  {name} …", file=sys.stderr, flush=True)
        try:
            rows += ROWS[name](settings)
        except Exception as error:  # one row that cannot run must not take the others along
            rows.append(Row(name, "", {}, errors=[f"{type(error).__name__}: {error}"]))
    text = report.render(rows, settings, time.perf_counter() - began)
    print(text)
    if args.json:
        Path(args.json).write_bytes(report.to_json(rows))
    if args.write:
        report.write(text)
    return any(row.errors for row in rows)


if __name__ == "__main__":
    sys.exit(main())
