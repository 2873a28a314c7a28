"""Does the server's ledger agree with what an independent client saw?

    python -m bench.agree [--streams 200] [--seconds 5]

Starts the server, puts paced streams on it (20 of them the probe's), and compares the probe's stamps
with the ledger's, request by request and token by token. Both read CLOCK_MONOTONIC, so their times
subtract. A token's lateness at the client is explained by four parts, which are printed:

    the request's way    from the probe's send to the server's read: the server's zero is later
    the server           its own lateness: its planned against its actual time, as the ledger has it
    the reply's way      from the write's return in the server to the packet's stamp in the kernel; the
                         kernel delivers within the write, so this part is mostly negative
    the probe            from the packet's stamp to the probe's

The run agrees when every request of the probe is in the ledger once, tokens and outcome are equal, no part
is impossible (a token that arrived before it was due, a request that was read before it was sent), and
the parts of every token add up to its lateness.
"""

from __future__ import annotations

import argparse
import http.client
import math
import subprocess
import sys
from collections import Counter

import msgspec
from msgspec import Struct

from bench import load, targets
from bench.machine import kept_awake, on_core, two_cores
from bench.probe import Distribution, Plan, Report, Seen, chat_body, distribution

PAGE = 500
ROUNDING_S = 2e-6
"""What the kernel's wall-clock stamps may be off against the monotonic clock, after one reading of both."""


class Times(Struct):
    """`token_times` of a ledger record: seconds after arrival."""

    planned_s: list[float]
    actual_s: list[float]


class Record(Struct):
    """What is compared of a ledger record."""

    seq: int
    request_id: str
    outcome: str
    tokens: int
    arrival_s: float
    token_times: Times | None = None


class Parts(Struct, frozen=True):
    """What a token's lateness at the client is made of, in seconds."""

    request_way: Distribution
    server: Distribution
    reply_way: Distribution
    probe: Distribution
    whole: Distribution


def ledger(port: int) -> list[Record]:
    """All records of a server, page by page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    records: list[Record] = []
    after = 0
    while True:
        connection.request("GET", f"/mockllm/requests?after={after}&limit={PAGE}")
        page = msgspec.json.decode(
            b"[" + b",".join(connection.getresponse().read().splitlines()) + b"]", type=list[Record]
        )
        records += page
        if len(page) < PAGE:
            connection.close()
            return records
        after = page[-1].seq


def compare(seen: list[Seen], records: list[Record], ttft_s: float, itl_s: float) -> tuple[list[str], Parts]:
    """Contradictions between the two sides, and the parts of the lateness."""
    contradictions: list[str] = []
    times = Counter([record.request_id for record in records])
    by_id = {record.request_id: record for record in records}
    contradictions += [f"{name} is in the ledger {count} times" for name, count in times.items() if count > 1]
    parts: dict[str, list[float]] = {name: [] for name in Parts.__struct_fields__}
    for one in seen:
        record = by_id.get(one.request_id)
        if record is None:
            contradictions.append(f"{one.request_id} is not in the ledger")
        elif record.outcome != "completed" or record.tokens != len(one.tokens_s):
            contradictions.append(f"{one.request_id}: {len(one.tokens_s)} tokens seen, ledger: {record}")
        elif record.token_times is None or len(record.token_times.actual_s) != record.tokens:
            contradictions.append(f"{one.request_id}: no times of its tokens")
        else:
            contradictions += _explain(one, record, record.token_times, ttft_s, itl_s, parts)
    return contradictions, Parts(**{name: distribution(values) for name, values in parts.items()})


def _explain(
    one: Seen, record: Record, times: Times, ttft_s: float, itl_s: float, parts: dict[str, list[float]]
) -> list[str]:
    request_way = record.arrival_s - one.sent_s
    wrong = [f"{one.request_id} was read {-request_way * 1e6:.0f} µs before it was sent"] if request_way < 0 else []
    for k, (arrived, lag, planned, actual) in enumerate(
        zip(one.tokens_s, one.lags_s, times.planned_s, times.actual_s, strict=True)
    ):
        if abs(planned - ttft_s - k * itl_s) > ROUNDING_S:
            wrong.append(f"{one.request_id}: token {k} was planned for {planned:.6f} s")
        at_kernel = arrived - lag
        server = actual - planned
        reply_way = at_kernel - record.arrival_s - actual
        whole = arrived - one.sent_s - ttft_s - k * itl_s
        if at_kernel - record.arrival_s < planned - ROUNDING_S:
            wrong.append(f"{one.request_id}: token {k} arrived before it was due")
        if abs(request_way + server + reply_way + lag - whole) > ROUNDING_S:
            wrong.append(f"{one.request_id}: the parts of token {k} do not add up")
        for name, value in zip(parts, (request_way, server, reply_way, lag, whole), strict=True):
            parts[name].append(value)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.agree")
    parser.add_argument("--streams", type=int, default=200, help="at once, 20 of them the probe's (default: 200)")
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    cores = two_cores()
    on_core(cores.load)
    ttft_s, itl_s, tokens = 0.1, 0.02, 100
    body = chat_body(tokens, stream=True)
    server = targets.mockllm("--ledger-tokens", "--ledger-size=100000", ttft_ms=ttft_s * 1e3, itl_ms=itl_s * 1e3)
    with targets.running([server], cores) as (running,), kept_awake(cores.load):
        plan = Plan(running.port, body, ttft_s, itl_s, tokens, duration_s=args.seconds, core=cores.load, keep=True)
        crowd = load.Load(
            running.port, body, True, args.streams - plan.streams, math.ceil(args.seconds + plan.stream_s), ramp_s=2.0
        )
        with load.Running(crowd) as crowd_run:
            command = [sys.executable, "-m", "bench.probe", "--plan", msgspec.json.encode(plan).decode()]
            out = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=targets.ROOT).stdout
            outcome = crowd_run.result()
        report = msgspec.json.decode(out, type=Report)
        records = ledger(running.port)
    contradictions, parts = compare(report.seen, records, ttft_s, itl_s)
    contradictions += report.errors
    completed = sum([record.outcome == "completed" for record in records])
    if completed < len(report.seen) + outcome.requests:
        contradictions.append(f"{completed} completed in the ledger, {len(report.seen) + outcome.requests} seen")
    print(
        f"{len(report.seen)} requests of the probe, {outcome.requests} of {load.tool()}; {len(records)} in the ledger, "
        f"{completed} of them completed; {parts.whole.count:,} tokens compared"
    )
    print(f"{'µs':<14}{'p50':>10}{'p99':>10}{'max':>10}")
    for name in Parts.__struct_fields__:
        part: Distribution = getattr(parts, name)
        print(f"{name.replace('_', ' '):<14}{part.p50 * 1e6:>10.0f}{part.p99 * 1e6:>10.0f}{part.max * 1e6:>10.0f}")
    for line in contradictions[:10]:
        print(line)
    print("the ledger agrees with the client" if not contradictions else f"{len(contradictions)} contradictions")
    return bool(contradictions)


if __name__ == "__main__":
    sys.exit(main())
