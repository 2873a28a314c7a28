"""Distributions of lateness: how long after its due time a chunk was with the kernel.

A value falls into the bucket of its bfloat16, the upper half of its float32: sign, eight bits of
exponent and seven of mantissa. Buckets are thus at most 1/128 of their value wide, a quantile is
off by 0.4 % at most, and finding the buckets of a whole stream takes three calls into C.
Counting: `Tally` counts into one slot per bfloat16 and is emptied once a second into a
`LatenessHistogram`, which keeps the 4,352 buckets from 1 µs to 4.5 hours.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from operator import add

from msgspec import Struct

_UPPER = 1 if sys.byteorder == "little" else 0  # which half of a float32 holds its exponent
_NEGATIVE = 0x8000


_pack_float = struct.Struct(">f").pack
_unpack_upper = struct.Struct(">H").unpack_from


def bucket(value_s: float) -> int:
    """Number of a value's bucket; ascending with the value for values ≥ 0."""
    key: int = _unpack_upper(_pack_float(value_s))[0]
    return key


def _start(key: int) -> float:
    """Least value of a bucket."""
    value: float = struct.unpack(">f", struct.pack(">HH", key, 0))[0]
    return value


_LOW = bucket(2.0**-20)  # below 1 µs nothing is told apart
_HIGH = bucket(2.0**14)
_EARLY = bucket(-(2.0**-20))  # rounding of floats stays far below this

_MIDDLES = [(_start(key) + _start(key + 1)) / 2 for key in range(_LOW, _HIGH)]


def quantile(ordered: Sequence[float], q: float) -> float:
    """Nearest-rank quantile: the least of `ordered` that is not exceeded by a share of `q`."""
    return ordered[max(0, ceil(q * len(ordered)) - 1)]


class Lateness(Struct, frozen=True, gc=False):
    """A distribution of lateness, in seconds. Quantiles are nearest-rank, to within 0.4 %; `max_s` is exact.

    Attributes:
        count: Chunks (steps of replies) that were due and were written.
        early: How many were written more than 1 µs before they were due.
        peer_delayed: Further chunks that had to wait until the client took earlier bytes: their
            lateness is the peer's and not in the distribution.
    """

    count: int = 0
    mean_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    p999_s: float = 0.0
    max_s: float = 0.0
    early: int = 0
    peer_delayed: int = 0


class PackedLateness(Struct, gc=False):
    """A histogram as it goes from one process to another: only the buckets that hold something."""

    count: int
    below: int
    early: int
    sum_s: float
    max_s: float
    peer_delayed: int
    counts: dict[int, int]


class LatenessHistogram:
    """Counts of lateness in buckets, to be merged and asked for quantiles."""

    __slots__ = ("_counts", "below", "count", "early", "max_s", "peer_delayed", "sum_s")

    def __init__(self) -> None:
        self._counts = [0] * (_HIGH - _LOW)
        self.count = 0
        self.below = 0
        self.early = 0
        self.sum_s = 0.0
        self.max_s = 0.0
        self.peer_delayed = 0

    def fill(self, counts: list[int]) -> None:
        """Take in counts of one slot per bfloat16."""
        negative = sum(counts[_NEGATIVE:])
        self.early += sum(counts[_EARLY:])
        self.below += sum(counts[:_LOW]) + negative
        self._counts = list(map(add, self._counts, counts[_LOW:_HIGH]))
        self._counts[-1] += sum(counts[_HIGH:_NEGATIVE])

    def merge(self, other: LatenessHistogram) -> None:
        """Add another's counts."""
        self._counts = list(map(add, self._counts, other._counts))
        self.count += other.count
        self.below += other.below
        self.early += other.early
        self.sum_s += other.sum_s
        self.max_s = max(self.max_s, other.max_s)
        self.peer_delayed += other.peer_delayed

    def pack(self) -> PackedLateness:
        """For another process."""
        filled = {bucket: count for bucket, count in enumerate(self._counts) if count} if self.count else {}
        return PackedLateness(self.count, self.below, self.early, self.sum_s, self.max_s, self.peer_delayed, filled)

    @classmethod
    def unpack(cls, packed: PackedLateness) -> LatenessHistogram:
        """From another process."""
        self = cls()
        for bucket, count in packed.counts.items():
            self._counts[bucket] = count
        self.count, self.below, self.early = packed.count, packed.below, packed.early
        self.sum_s, self.max_s, self.peer_delayed = packed.sum_s, packed.max_s, packed.peer_delayed
        return self

    def quantiles(self, *shares: float) -> list[float]:
        """Nearest-rank quantiles; zeros while nothing was counted."""
        running = list(accumulate(self._counts, initial=self.below))
        found = []
        for share in shares:
            # running[i] values lie before bucket i, so the first i with running[i] ≥ rank closes the one sought.
            at = bisect_left(running, max(1, ceil(share * self.count)))
            found.append(0.0 if at == 0 or self.count == 0 else min(_MIDDLES[at - 1], self.max_s))
        return found

    def upto(self, edges_s: Sequence[float]) -> list[int]:
        """How many values are ≤ each edge, to the width of a bucket."""
        running = list(accumulate(self._counts, initial=self.below))
        return [running[bisect_left(_MIDDLES, edge)] for edge in edges_s]

    def summary(self) -> Lateness:
        """The distribution as a record."""
        p50, p90, p99, p999 = self.quantiles(0.5, 0.9, 0.99, 0.999)
        mean_s = self.sum_s / self.count if self.count else 0.0
        return Lateness(self.count, mean_s, p50, p90, p99, p999, self.max_s, self.early, self.peer_delayed)


class Tally:
    """The last second's lateness, counted cheaply.

    Measured on a 2-core AMD EPYC VM, CPython 3.11: 40 ns a value.
    """

    __slots__ = ("_counts", "count", "max_s", "peer_delayed", "sum_s")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._counts = [0] * 65_536
        self.count = 0
        self.sum_s = 0.0
        self.max_s = 0.0
        self.peer_delayed = 0

    def add(self, values_s: Sequence[float], max_s: float) -> None:
        """Count values, of which `max_s` is the greatest."""
        counts = self._counts
        for key in array("H", array("f", values_s).tobytes())[_UPPER::2]:
            counts[key] += 1
        self.count += len(values_s)
        self.sum_s += sum(values_s)
        if max_s > self.max_s:
            self.max_s = max_s

    def add_times(self, value_s: float, times: int) -> None:
        """Count one value `times` times."""
        self._counts[bucket(value_s)] += times
        self.count += times
        self.sum_s += value_s * times
        if value_s > self.max_s:
            self.max_s = value_s

    def drain(self) -> LatenessHistogram:
        """What was counted since the last call."""
        histogram = LatenessHistogram()
        if self.count or self.peer_delayed:
            histogram.count = self.count
            histogram.sum_s = self.sum_s
            histogram.max_s = self.max_s
            histogram.peer_delayed = self.peer_delayed
            histogram.fill(self._counts)
            self._clear()
        return histogram
