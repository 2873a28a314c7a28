"""What one exchange's writes say: the planned and the actual time of its steps.

The planned time of step k is `arrival + offset + after[k]`; its actual time is that of the write
which brought it out, stamped when the kernel had taken the bytes. Steps that were due but had to
wait until the peer took earlier bytes are late by its doing, not ours, and are kept apart.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from mockllm.exchange import End, Exchange
from mockllm.truth.lateness import Tally, quantile


class Steps(Struct, gc=False):
    """Times and lateness of the steps that were written, in seconds.

    Attributes:
        first_planned_s, first_s: Of the first step, on the clock.
        last_planned_s, last_s: Of the last step that was written. A write that waited for the peer
            counts as done when the kernel had all of it.
        max_s, p50_s, p99_s: Lateness over all steps that were not the peer's delay.
        peer_delayed: How many steps had to wait until the peer took earlier bytes.
        gaps_s: Times between one step and the next, ascending; without the `together` zeros between
            steps that left in one write.
    """

    first_planned_s: float
    first_s: float
    last_planned_s: float
    last_s: float
    max_s: float
    p50_s: float
    p99_s: float
    peer_delayed: int
    gaps_s: list[float]
    together: int


if TYPE_CHECKING:
    Times = array[float]
else:
    Times = array  # which msgspec asks for at run time; before Python 3.12 arrays cannot be subscripted then


class TokenTimes(Struct, frozen=True, gc=False):
    """Planned and actual time of each step, in seconds after the arrival."""

    planned_s: Times
    actual_s: Times

    @property
    def nbytes(self) -> int:
        """How much memory the times take."""
        return len(self.planned_s) * 16


def measure(exchange: Exchange, tally: Tally) -> Steps:
    """Measure an exchange that wrote at least one step; its lateness is counted into `tally`.

    Measured on a 2-core AMD EPYC VM, CPython 3.11: 0.13 µs a step that left in a write of its own.
    """
    timeline = exchange.timeline
    assert timeline is not None
    start_s = exchange.arrival_s + timeline.offset_s
    after_s = timeline.after_s
    writes_s = exchange.writes_s
    sent = exchange.steps_sent
    first_planned_s = start_s + after_s[0]
    if len(writes_s) == 1 and exchange.peer_waits is None and after_s[sent - 1] == after_s[0]:
        # All due at once and out in one write, as a whole reply: 0.5 µs instead of 1.2.
        written_s = writes_s[0]
        late_s = written_s - first_planned_s
        tally.add_times(late_s, sent)
        return Steps(first_planned_s, written_s, first_planned_s, written_s, late_s, late_s, late_s, 0, [], sent - 1)
    last_planned_s = start_s + after_s[sent - 1]
    last_s = writes_s[-1]
    peer_delayed = 0
    gaps_s: list[float] = []
    if len(writes_s) > 1:
        gaps_s = [b - a for a, b in pairwise(writes_s)]
        gaps_s.sort()
    if exchange.peer_waits is not None:
        values = _own_lateness(exchange, start_s)
        peer_delayed = sent - len(values)
        tally.peer_delayed += peer_delayed
        if exchange.outcome is End.COMPLETED:
            last_s = max(last_s, exchange.peer_waits[-1])
    elif sent > 1 and after_s[sent - 1] == after_s[0]:
        max_s, p50_s, p99_s = _flat(exchange, start_s + after_s[0], tally)
        together = sent - len(writes_s)
        return Steps(first_planned_s, writes_s[0], last_planned_s, last_s, max_s, p50_s, p99_s, 0, gaps_s, together)
    else:
        actual_s = writes_s if len(writes_s) == sent else _expand(writes_s, exchange.writes_upto)
        values = [actual - after - start_s for actual, after in zip(actual_s, after_s, strict=False)]
        values.sort()
    if values:
        max_s, p50_s, p99_s = values[-1], quantile(values, 0.5), quantile(values, 0.99)
        tally.add(values, max_s)
    else:
        max_s = p50_s = p99_s = 0.0
    return Steps(
        first_planned_s,
        writes_s[0],
        last_planned_s,
        last_s,
        max_s,
        p50_s,
        p99_s,
        peer_delayed,
        gaps_s,
        sent - len(writes_s),
    )


def token_times(exchange: Exchange) -> TokenTimes:
    """Planned and actual times of the steps that were written."""
    timeline = exchange.timeline
    assert timeline is not None
    offset_s, arrival_s = timeline.offset_s, exchange.arrival_s
    planned = array("d", [offset_s + after for after in timeline.after_s[: exchange.steps_sent]])
    actual = array("d", [t - arrival_s for t in _expand(exchange.writes_s, exchange.writes_upto)])
    return TokenTimes(planned, actual)


def _expand(writes_s: Sequence[float], writes_upto: Sequence[int]) -> list[float]:
    """One time for each step, out of one for each write."""
    actual: list[float] = []
    for written_s, upto in zip(writes_s, writes_upto, strict=True):
        actual += [written_s] * (upto - len(actual))
    return actual


def _flat(exchange: Exchange, planned_s: float, tally: Tally) -> tuple[float, float, float]:
    """Lateness (max, p50, p99) where all steps were due at once: one value a write, however many steps it held."""
    writes_s, writes_upto = exchange.writes_s, exchange.writes_upto
    before = 0
    for written_s, upto in zip(writes_s, writes_upto, strict=True):
        tally.add_times(written_s - planned_s, upto - before)
        before = upto
    return (
        writes_s[-1] - planned_s,
        writes_s[bisect_left(writes_upto, 0.5 * before)] - planned_s,
        writes_s[bisect_left(writes_upto, 0.99 * before)] - planned_s,
    )


def _own_lateness(exchange: Exchange, start_s: float) -> list[float]:
    """Ascending lateness of the steps that no wait for the peer held up."""
    waits = exchange.peer_waits
    timeline = exchange.timeline
    assert waits is not None
    assert timeline is not None
    ended_s = waits[1::2]
    values = []
    for actual, after in zip(_expand(exchange.writes_s, exchange.writes_upto), timeline.after_s, strict=False):
        planned = start_s + after
        # Nothing is written during a wait, and the wait that a step's own write began ends after it.
        if bisect_right(ended_s, planned) == bisect_right(ended_s, actual):
            values.append(actual - planned)
    values.sort()
    return values
