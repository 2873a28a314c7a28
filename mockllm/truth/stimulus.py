"""What the harness really sent: arrivals a second, their spacing, and how many were in flight."""

from __future__ import annotations

from math import floor, sqrt

from msgspec import Struct

KEPT_SECONDS = 3600
"""How many seconds of the curve are kept; older ones are counted in `seconds_dropped`."""


class Second(Struct, frozen=True, gc=False):
    """One second of the curve.

    Attributes:
        second: Its number, from the start of the interval.
        arrivals: Requests that arrived in it.
        in_flight: Mean number of requests in flight during it, so far.
        in_flight_end: How many were in flight at its end, and until the next second of the curve.
    """

    second: int
    arrivals: int
    in_flight: float
    in_flight_end: int


class Stimulus(Struct, frozen=True, gc=False):
    """The load of an interval: requests to generation endpoints, whatever they were answered.

    Attributes:
        arrivals: How many arrived.
        rate_per_s: Arrivals by the time from the first to the last one.
        interarrival_mean_s: Mean time between two arrivals.
        interarrival_cv: Its standard deviation divided by its mean: 0 for a metronome, 1 for a
            Poisson process. Over several processes it is not known (null in JSON).
        in_flight: How many are in flight now.
        in_flight_peak: Most that were in flight at once; over several processes the sum of theirs, a bound.
        seconds: The curve; seconds in which nothing arrived or ended are left out.
        seconds_dropped: How many older seconds were let go.
    """

    arrivals: int = 0
    rate_per_s: float = 0.0
    interarrival_mean_s: float = 0.0
    interarrival_cv: float = 0.0
    in_flight: int = 0
    in_flight_peak: int = 0
    seconds: tuple[Second, ...] = ()
    seconds_dropped: int = 0


PackedLoad = tuple[float, float, float, int, float, float, int, int, dict[int, list[float]]]
"""What a meter holds, in the order of `StimulusMeter.pack`."""


class StimulusMeter:
    """Measures the load.

    Args:
        since_s: Start of the interval.
        in_flight: How many requests are in flight at that moment.
    """

    def __init__(self, since_s: float, in_flight: int = 0) -> None:
        self._since_s = since_s
        self._first_s = self._last_s = since_s
        self._arrivals = 0
        self._sum = self._sum_squares = 0.0
        self._started = in_flight  # in flight when the oldest kept second began
        # By second: arrivals, ends, and the part of the second that each of them had still to come.
        self._seconds: dict[int, list[float]] = {}
        self._dropped = 0

    def arrived(self, times_s: list[float]) -> None:
        """Requests arrived at these times, ascending."""
        if not times_s:
            return
        if self._arrivals == 0:
            self._first_s = self._last_s = times_s[0]
        last_s = self._last_s
        for t in times_s:
            gap = t - last_s
            self._sum_squares += gap * gap
            last_s = t
            second = floor(t - self._since_s)
            cell = self._seconds.get(second) or self._new(second)
            cell[0] += 1
            cell[2] += second + 1 + self._since_s - t
        self._sum += last_s - self._last_s
        self._last_s = last_s
        self._arrivals += len(times_s)

    def ended(self, times_s: list[float]) -> None:
        """Requests ended at these times."""
        for t in times_s:
            second = floor(t - self._since_s)
            cell = self._seconds.get(second) or self._new(second)
            cell[1] += 1
            cell[3] += second + 1 + self._since_s - t

    def _new(self, second: int) -> list[float]:
        cell = self._seconds[second] = [0, 0, 0.0, 0.0]
        if len(self._seconds) > KEPT_SECONDS:
            oldest = min(self._seconds)
            arrivals, ends, _, _ = self._seconds.pop(oldest)
            self._started += int(arrivals - ends)
            self._dropped += 1
        return cell

    def pack(self) -> PackedLoad:
        """For another process."""
        gaps = (self._first_s, self._last_s, self._arrivals, self._sum, self._sum_squares)
        return self._since_s, *gaps, self._started, self._dropped, self._seconds

    @classmethod
    def unpack(cls, packed: PackedLoad, lost: int = 0) -> StimulusMeter:
        """From another process; `lost` requests in flight ended with it."""
        self = cls(packed[0], packed[6] - lost)
        self._first_s, self._last_s, self._arrivals, self._sum, self._sum_squares = packed[1:6]
        self._dropped, self._seconds = packed[7], packed[8]
        return self

    def merge(self, other: StimulusMeter) -> None:
        """Count in the load of another process over the same interval.

        The mean time between arrivals is right afterwards, their variance is not: it cannot be
        told from the two.
        """
        if other._arrivals:
            first = [meter._first_s for meter in (self, other) if meter._arrivals]
            last = [meter._last_s for meter in (self, other) if meter._arrivals]
            self._first_s, self._last_s = min(first), max(last)
            self._arrivals += other._arrivals
            self._sum, self._sum_squares = self._last_s - self._first_s, 0.0
        self._started += other._started
        self._dropped = max(self._dropped, other._dropped)
        for second, cell in other._seconds.items():
            mine = self._seconds.get(second)
            self._seconds[second] = cell if mine is None else [a + b for a, b in zip(mine, cell, strict=True)]

    def summary(self, now_s: float, in_flight: int, peak: int) -> Stimulus:
        """The load up to now."""
        gaps = self._arrivals - 1
        mean = self._sum / gaps if gaps > 0 else 0.0
        variance = max(0.0, self._sum_squares / gaps - mean * mean) if gaps > 0 else 0.0
        return Stimulus(
            arrivals=self._arrivals,
            rate_per_s=1 / mean if mean else 0.0,
            interarrival_mean_s=mean,
            interarrival_cv=sqrt(variance) / mean if mean else 0.0,
            in_flight=in_flight,
            in_flight_peak=peak,
            seconds=self._curve(now_s),
            seconds_dropped=self._dropped,
        )

    def _curve(self, now_s: float) -> tuple[Second, ...]:
        level = self._started
        elapsed = now_s - self._since_s
        curve = []
        for second, (arrivals, ends, arrivals_part, ends_part) in sorted(self._seconds.items()):
            # A second that is not over has no part to come.
            missing = max(0.0, second + 1 - elapsed)
            length = 1.0 - missing
            busy = level * length + arrivals_part - arrivals * missing - ends_part + ends * missing
            level += int(arrivals - ends)
            curve.append(Second(second, int(arrivals), max(0.0, busy / length) if length > 0.0 else 0.0, level))
        return tuple(curve)
