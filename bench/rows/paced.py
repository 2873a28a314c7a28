"""Rows about paced streams: how late tokens are, and what they cost, while many streams run."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from bench import load, probe, targets
from bench.machine import kept_awake, rss_bytes
from bench.measure import Figures, Row, Settings, Window, checked_reply_bytes

PROBES = 20
SETTLE_S = 0.4
"""After the ramp, which lasts as long as a stream so that the streams are evenly out of step."""


class Pace(Struct, frozen=True):
    """What the streams look like."""

    streams: int
    ttft_ms: float = 100.0
    itl_ms: float = 20.0
    tokens: int = 100

    @property
    def stream_s(self) -> float:
        return (self.ttft_ms + (self.tokens - 1) * self.itl_ms) / 1e3


class Run(Struct):
    """One run: the probe's report, and the server's cost."""

    report: probe.Report
    cpu_us: float
    rate: float
    core_share: float
    foreign: float
    stream_bytes: float
    errors: list[str]


def run(server: targets.Running, pace: Pace, settings: Settings) -> Run:
    """Put `pace.streams` streams on a server, 20 of them the probe's, and watch."""
    body = probe.chat_body(pace.tokens, stream=True)
    ramp_s = pace.stream_s
    settle_s = ramp_s + SETTLE_S
    crowd = pace.streams - PROBES
    work = load.Load(
        server.port,
        body,
        stream=True,
        connections=crowd,
        duration_s=math.ceil(settle_s + settings.paced_seconds + pace.stream_s),  # until the probe's last stream ends
        ramp_s=ramp_s,
    )
    plan = probe.Plan(
        server.port,
        body,
        pace.ttft_ms / 1e3,
        pace.itl_ms / 1e3,
        pace.tokens,
        PROBES,
        settle_s,
        settings.paced_seconds,
        core=settings.cores.load,
    )
    rss = rss_bytes(server.pid)
    with kept_awake(settings.cores.load), load.Running(work) as crowd_run:
        watcher = subprocess.Popen(
            [sys.executable, "-m", "bench.probe", "--plan", msgspec.json.encode(plan).decode()],
            stdout=subprocess.PIPE,
            cwd=targets.ROOT,
        )
        time.sleep(settle_s + 0.2)  # the probe has to start as well
        window = Window(server, settings.cores.server)
        time.sleep(settings.paced_seconds)
        took_s, cpu_s, foreign = window.close()
        grown = rss_bytes(server.pid) - rss
        out, _ = watcher.communicate()
        outcome = crowd_run.result()
    report = msgspec.json.decode(out, type=probe.Report)
    errors = report.errors + [f"{count} × {kind}" for kind, count in outcome.errors.items() if count]
    if not outcome.requests:
        errors.append("no stream of the crowd ended")
        return Run(report, 0.0, 0.0, cpu_s / took_s, foreign, grown / pace.streams, errors)
    # Every connection of a closed loop always has one stream under way, so the tokens of a while
    # follow from how long a stream takes.
    tokens = crowd * pace.tokens * took_s / outcome.latency_s
    tokens += PROBES * pace.tokens * took_s / (pace.stream_s + probe.GAP_S)
    rate = min(report.rate, pace.stream_s / outcome.latency_s)
    return Run(report, cpu_s / tokens * 1e6, rate, cpu_s / took_s, foreign, grown / pace.streams, errors)


def _runs(
    cases: Sequence[targets.Target], counts: Sequence[int], pace: Pace, settings: Settings
) -> dict[str, list[Run]]:
    """Interleaved runs of several servers, each as often as its count says."""
    runs: dict[str, list[Run]] = {target.name: [] for target in cases}
    body = probe.chat_body(pace.tokens, stream=True)
    with targets.running(cases, settings.cores) as servers:
        for server in servers:
            checked_reply_bytes(server.port, body, True, pace.tokens)
        for turn in range(max(counts)):
            for server, count in zip(servers, counts, strict=True):
                if turn < count:
                    runs[server.name].append(run(server, pace, settings))
    return runs


def _row(work: str, goal: str, runs: dict[str, list[Run]]) -> Row:
    figures: dict[str, Figures] = {}
    for name, own in runs.items():
        reports = [each.report for each in own]
        figures[f"{name} p50"] = Figures("ms", [report.lateness.p50 * 1e3 for report in reports])
        figures[f"{name} p99"] = Figures("ms", [report.lateness.p99 * 1e3 for report in reports])
        figures[f"{name} max"] = Figures("ms", [report.lateness.max * 1e3 for report in reports])
        figures[f"{name} p99 at the kernel"] = Figures("ms", [report.wire.p99 * 1e3 for report in reports])
        figures[f"{name} CPU"] = Figures("µs/token", [each.cpu_us for each in own])
        figures[f"{name} rate"] = Figures("of planned", [each.rate for each in own])
    row = Row(work, goal, figures)
    ours = runs["mockllm"]
    row.errors = [f"{name}: {error}" for name, own in runs.items() for each in own for error in each.errors]
    row.ratio = ", ".join(
        [
            f"CPU {figures['mockllm CPU'].median / figures[f'{name} CPU'].median:.2f} × {name}"
            for name in runs
            if name != "mockllm" and figures[f"{name} CPU"].median
        ]
    )
    early = sum([each.report.early for each in ours])
    share = max([each.core_share for each in ours])
    tokens = sum([each.report.tokens for each in ours])
    row.notes.append(f"{early} of {tokens:,} tokens early; the server used up to {share:.0%} of its core")
    foreign = max([each.foreign for each in ours])
    if foreign > 0.02:
        row.notes.append(f"others took up to {foreign:.0%} of the server's core")
    row.notes += sorted({f"the probe was the limit: {each.report.limit}" for each in ours if each.report.limit})
    return row


def _floor(pace: Pace) -> targets.Target:
    timing = (f"--ttft-ms={pace.ttft_ms:g}", f"--itl-ms={pace.itl_ms:g}")
    return targets.floor("--stream", f"--tokens={pace.tokens}", *timing)


def _mockllm(pace: Pace) -> targets.Target:
    return targets.mockllm(ttft_ms=pace.ttft_ms, itl_ms=pace.itl_ms)


def _light(pace: Pace, cases: Sequence[targets.Target], counts: Sequence[int], settings: Settings) -> Row:
    runs = _runs([_mockllm(pace), *cases], [settings.paced_repeats, *counts], pace, settings)
    row = _row(
        f"paced, {pace.streams} streams, TTFT {pace.ttft_ms:g} ms, ITL {pace.itl_ms:g} ms, {pace.tokens} tokens",
        "lateness p50 ≤ 0.3 ms, p99 ≤ 2 ms (best run), none early, rate 1.00",
        runs,
    )
    ours = runs["mockllm"]
    row.reached = (
        row.figures["mockllm p50"].best <= 0.3
        and row.figures["mockllm p99"].best <= 2.0
        and not any(each.report.early for each in ours)
        and max([each.rate for each in ours]) >= 0.995
    )
    return row


def hundred(settings: Settings) -> list[Row]:
    """100 paced streams."""
    pace = Pace(100)
    cases = [_floor(pace)]
    if targets.has_fastapi():
        cases.append(targets.fastapi(ttft_ms=pace.ttft_ms, itl_ms=pace.itl_ms))
    return [_light(pace, cases, [1] * len(cases), settings)]


def five_hundred(settings: Settings) -> list[Row]:
    """500 paced streams."""
    return [_light(Pace(500), [_floor(Pace(500))], [1], settings)]


def thousand(settings: Settings) -> list[Row]:
    """1,000 paced streams, against the floor under the same scheduler."""
    pace = Pace(1000)
    runs = _runs([_mockllm(pace), _floor(pace)], [settings.paced_repeats] * 2, pace, settings)
    row = _row("the same, 1,000 streams", "p99 ≤ 5 ms (best run), CPU per token ≤ 1.25 × floor", runs)
    row.reached = (
        row.figures["mockllm p99"].best <= 5.0
        and row.figures["mockllm CPU"].median <= 1.25 * row.figures["floor CPU"].median
    )
    return [row]


def two_thousand(settings: Settings) -> list[Row]:
    """2,000 paced streams at 50 ms; memory per stream from the first run of a fresh server."""
    pace = Pace(2000, itl_ms=50.0)
    runs = _runs([_mockllm(pace), _floor(pace)], [settings.paced_repeats, 1], pace, settings)
    row = _row("paced, 2,000 streams, ITL 50 ms", "no errors, rate ≥ 0.97, ≤ 8 KB a stream", runs)
    first = runs["mockllm"][0].stream_bytes / 1024
    row.figures["mockllm memory"] = Figures("KB/stream", [first])
    row.reached = first <= 8.0 and row.figures["mockllm rate"].median >= 0.97
    return [row]
