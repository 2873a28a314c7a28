"""Notices when the event loop was held, and by whom.

Theory of operation. The timer says when it is to be woken (`due_s`), and every callback of ours
reports when it began and ended. A callback that ran long is a stall of our own. Where none of ours
ran although one was due, something else held the loop: other code of the embedding process, or a
machine that did not run us. A heartbeat sees to it that something is due every few milliseconds.
Garbage collections, which may fall into either, report themselves through `gc.callbacks`, and their
time is taken out of the others'.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from math import inf

from msgspec import Struct
from msgspec.structs import replace

STALL_S = 0.005
"""A hold of the loop that is longer than this is a stall."""

BEAT_S = 0.01
"""How often something is due while requests are in flight."""
IDLE_BEAT_S = 0.05
"""The same while there are none: then a stall only delays the arrival of the next."""


class Holds(Struct, frozen=True, gc=False):
    """Stalls of one cause, in seconds."""

    count: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0

    def __add__(self, held_s: float) -> Holds:
        return Holds(self.count + 1, self.total_s + held_s, max(self.longest_s, held_s))


class Stalls(Struct, frozen=True, gc=False):
    """When the loop was held for more than 5 ms at once.

    Attributes:
        own: By our own work: a large prompt to be counted, say.
        outside: By other code on the same loop, or because the machine did not run the process.
        collector: By the garbage collector.
        collections: All garbage collections, the short ones too.
    """

    own: Holds = Holds()
    outside: Holds = Holds()
    collector: Holds = Holds()
    collections: Holds = Holds()


class StallMeter:
    """Gets the reports.

    Args:
        now: The clock.

    Attributes:
        due_s: When the timer is to ring next; set by the timer.
        lags_s: How late it rang, since they were taken last.
    """

    __slots__ = ("_collected_s", "_collecting_s", "_free_s", "_now", "_seen_s", "due_s", "lags_s", "stalls")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._free_s = now()
        self._collecting_s = 0.0
        self._collected_s = 0.0  # in collections, in all
        self._seen_s = 0.0  # as much of that as earlier reports have accounted for
        self.due_s = inf
        self.lags_s: list[float] = []
        self.stalls = Stalls()

    def worked(self, began_s: float, ended_s: float) -> None:
        """A callback of ours ran."""
        free_s = self._free_s
        due_s = self.due_s
        if began_s - (free_s if free_s > due_s else due_s) > STALL_S:
            self._outside(began_s - max(free_s, due_s))
        if ended_s - began_s > STALL_S:
            self._own(ended_s - began_s)
        self._free_s = ended_s

    def rang(self, began_s: float, ended_s: float) -> None:
        """The timer's callback ran, before it was set anew."""
        lag_s = began_s - self.due_s
        if lag_s >= 0.0:
            self.lags_s.append(lag_s)
        self.worked(began_s, ended_s)

    def served_late(self, lag_s: float, next_s: float | None) -> None:
        """What had been due for `lag_s` was served before the timer rang; `next_s` is due next."""
        self.lags_s.append(lag_s)
        self.due_s = inf if next_s is None else next_s

    def take(self) -> Stalls:
        """The stalls since the last call."""
        stalls, self.stalls = self.stalls, Stalls()
        return stalls

    def take_lags(self) -> list[float]:
        """How late the timer rang, each time since the last call."""
        lags_s, self.lags_s = self.lags_s, []
        return lags_s

    def _outside(self, held_s: float) -> None:
        held_s -= self._collections_s()
        if held_s > STALL_S:
            self.stalls = replace(self.stalls, outside=self.stalls.outside + held_s)

    def _own(self, held_s: float) -> None:
        held_s -= self._collections_s()
        if held_s > STALL_S:
            self.stalls = replace(self.stalls, own=self.stalls.own + held_s)

    def _collections_s(self) -> float:
        """Time in collections that no earlier report has accounted for."""
        fresh_s = self._collected_s - self._seen_s
        self._seen_s = self._collected_s
        return fresh_s

    # ---- garbage collections -----------------------------------------------------------------

    def watch_collector(self) -> None:
        """Begin to hear of collections."""
        gc.callbacks.append(self._collector)

    def close(self) -> None:
        """Hear no more of them."""
        if self._collector in gc.callbacks:
            gc.callbacks.remove(self._collector)

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_s = self._now()
            return
        held_s = self._now() - self._collecting_s
        self._collected_s += held_s
        stalls = self.stalls
        collector = stalls.collector + held_s if held_s > STALL_S else stalls.collector
        self.stalls = replace(stalls, collections=stalls.collections + held_s, collector=collector)


class Heartbeat:
    """An item of the scheduler that is due every few milliseconds, so that no stall goes unseen.

    Args:
        busy: Whether requests are in flight.
        each_second: Called once a second with the time.
    """

    def __init__(self, busy: Callable[[], bool], each_second: Callable[[float], None]) -> None:
        self._busy = busy
        self._each_second = each_second
        self._second_s = 0.0
        self.slot = 0.0

    def fire(self, now: float) -> float:
        """Do what is to be done once a second; return the next beat."""
        if now >= self._second_s:
            self._second_s = now + 1.0
            self._each_second(now)
        return now + (BEAT_S if self._busy() else IDLE_BEAT_S)
