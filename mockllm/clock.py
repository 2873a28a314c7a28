"""Time as an argument: one monotonic clock, and a fake one that tests push forward.

Times are floats in seconds. At the magnitudes that `perf_counter` reaches in a year of
uptime a float still resolves 4 ns, finer than any deadline here.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells monotonic time, and where it stands against the wall clock."""

    def now(self) -> float:
        """Monotonic seconds since an arbitrary zero."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's clocks; `now` is `time.perf_counter`, called without a frame of ours between."""

    __slots__ = ()

    now = staticmethod(time.perf_counter)
    wall = staticmethod(time.time)


class FakeClock:
    """A clock that stands still until it is told otherwise.

    Args:
        start_s: First value of `now`.
        wall_s: What `wall` says at that moment.
    """

    def __init__(self, start_s: float = 1000.0, wall_s: float = 1_700_000_000.0) -> None:
        self._now = start_s
        self._wall_offset = wall_s - start_s

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now + self._wall_offset

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` ≥ 0."""
        self.advance_to(self._now + seconds)

    def advance_to(self, when_s: float) -> None:
        """Move on to `when_s`, which must not lie in the past.

        Raises:
            ValueError: `when_s` is before now.
        """
        if when_s < self._now:
            raise ValueError(f"time does not go back: {when_s} < {self._now}")
        self._now = when_s
