"""The statistics of an interval, and what they say about the server itself."""

from __future__ import annotations

from msgspec import Struct

from mockllm.truth.lateness import Lateness, LatenessHistogram
from mockllm.truth.stalls import Holds, Stalls
from mockllm.truth.stimulus import Stimulus

RequestCounts = dict[tuple[str, str, int], int]
"""How many requests ended, by endpoint, outcome and status."""


class Kept(Struct, frozen=True, gc=False):
    """What the ledger holds: records, records that fell out, and records that lost their chunks' times."""

    records: int = 0
    dropped: int = 0
    dropped_times: int = 0


class Statistics(Struct, frozen=True, gc=False):
    """An interval: from the start of the server, or the last reset, up to now.

    Attributes:
        since_s, until_s: Its bounds on the server's monotonic clock.
        since_unix_s: Its start on the wall clock.
        requests: How many requests ended in it; the sum of `outcomes`.
        outcomes: How many ended how.
        statuses: How many were answered with which HTTP status.
        in_flight: Generation requests that have not ended.
        prompt_tokens, tokens, chunks, bytes: What the requests that ended were and were sent.
        lateness: Of all chunks of generation replies.
        budget_s: The p99 lateness up to which the interval can be trusted.
        trustworthy: Whether it can.
        stimulus: What the clients did.
        stalls: What held the event loop.
        ledger: What is kept.
        write_errors: Lines that could not be written to the ledger's file.
        slot_s: The widest grid that deadlines were rounded up to under load, in seconds; 0 for none.
    """

    since_s: float
    until_s: float
    since_unix_s: float
    requests: int
    outcomes: dict[str, int]
    statuses: dict[str, int]
    in_flight: int
    prompt_tokens: int
    tokens: int
    chunks: int
    bytes: int
    lateness: Lateness
    budget_s: float
    trustworthy: bool
    stimulus: Stimulus
    stalls: Stalls
    ledger: Kept
    write_errors: int = 0
    slot_s: float = 0.0


class Pulse(Struct, frozen=True, gc=False):
    """A cheap reading: totals since the start, and the lateness of the last second."""

    at_s: float
    requests: int
    tokens: int
    in_flight: int
    p99_s: float
    overloaded: bool


class Sums:
    """What is counted over an interval, to be merged into the one before."""

    __slots__ = ("bytes", "chunks", "lateness", "prompt_tokens", "requests", "slot_s", "stalls", "tokens")

    def __init__(self) -> None:
        self.requests: RequestCounts = {}
        self.prompt_tokens = 0
        self.tokens = 0
        self.chunks = 0
        self.bytes = 0
        self.lateness = LatenessHistogram()
        self.stalls = Stalls()
        self.slot_s = 0.0

    def merge(self, other: Sums) -> None:
        """Add another interval's."""
        for key, count in other.requests.items():
            self.requests[key] = self.requests.get(key, 0) + count
        self.prompt_tokens += other.prompt_tokens
        self.tokens += other.tokens
        self.chunks += other.chunks
        self.bytes += other.bytes
        self.lateness.merge(other.lateness)
        self.stalls = merge_stalls(self.stalls, other.stalls)
        self.slot_s = max(self.slot_s, other.slot_s)

    def by(self, part: int) -> dict[str, int]:
        """Requests by one part of their key: 0 the endpoint, 1 the outcome, 2 the status."""
        counts: dict[str, int] = {}
        for key, count in self.requests.items():
            name = str(key[part])
            counts[name] = counts.get(name, 0) + count
        return dict(sorted(counts.items()))


def merge_stalls(a: Stalls, b: Stalls) -> Stalls:
    """Both together."""
    return Stalls(
        _merge_holds(a.own, b.own),
        _merge_holds(a.outside, b.outside),
        _merge_holds(a.collector, b.collector),
        _merge_holds(a.collections, b.collections),
    )


def _merge_holds(a: Holds, b: Holds) -> Holds:
    return Holds(a.count + b.count, a.total_s + b.total_s, max(a.longest_s, b.longest_s))


def describe(statistics: Statistics) -> str:
    """A few lines for a person: requests by outcome, tokens, lateness, stalls, verdict."""
    s = statistics
    outcomes = ", ".join([f"{count:,} {outcome}" for outcome, count in s.outcomes.items()]) or "none"
    late = s.lateness
    lines = [
        f"requests: {s.requests:,} ({outcomes}) in {s.until_s - s.since_s:,.1f} s",
        f"tokens:   {s.tokens:,} in {_chunks(s.chunks)}, {s.bytes:,} bytes; prompts {s.prompt_tokens:,}",
    ]
    if late.count:
        lines.append(
            f"lateness: p50 {late.p50_s * 1e3:.3f} ms, p90 {late.p90_s * 1e3:.3f}, p99 {late.p99_s * 1e3:.3f}, "
            f"p99.9 {late.p999_s * 1e3:.3f}, max {late.max_s * 1e3:.3f}, of {_chunks(late.count)}"
            + (f"; {late.peer_delayed:,} more waited for the client" if late.peer_delayed else "")
        )
    if s.slot_s:
        lines.append(f"grid:     deadlines were rounded up to a grid of {s.slot_s * 1e3:g} ms, as the load asked for")
    held = [
        f"{name} {_times(holds.count)}, {holds.longest_s * 1e3:.0f} ms at most"
        for name, holds in (
            ("our own work", s.stalls.own),
            ("garbage collection", s.stalls.collector),
            ("something else in this process or machine", s.stalls.outside),
        )
        if holds.count
    ]
    if held:
        lines.append("stalls:   the event loop was held by " + "; by ".join(held))
    lines.append("verdict:  " + verdict(s))
    return "\n".join(lines)


def _chunks(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count:,} chunks"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def verdict(statistics: Statistics) -> str:
    """Whether the server's timing can be trusted, in a sentence."""
    budget = f"the budget of {statistics.budget_s * 1e3:g} ms"
    if not statistics.lateness.count:
        return "no generation reply was sent, so there is no lateness to judge"
    late = f"p99 lateness {statistics.lateness.p99_s * 1e3:.3f} ms"
    if statistics.trustworthy:
        return f"trustworthy: {late} is within {budget}"
    return f"NOT trustworthy: {late} is over {budget}; the server was the bottleneck"
