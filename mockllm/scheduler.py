"""One heap of absolute deadlines for everything that waits.

Theory of operation. Items that are due at the same instant share a bucket; the heap holds only
the distinct instants, as plain floats, so its comparisons stay in C. A deadline is never moved
forward in time, so nothing fires early. When very many deadlines fall due per second, waking up
for each one costs more than sending what it announces: then instants are rounded *up* to a grid
(`slot_s`), which trades a bounded part of a millisecond for fewer wake-ups. The grid is as fine as
the load allows and off while the load is light.

Nothing here waits or knows of an event loop: the owner calls `run_due` when `next_s` has come.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Protocol

BUDGET_S = 0.002
"""Longest run of one `run_due`; what is still due then waits for the next call."""

SLOTS: tuple[tuple[float, float], ...] = ((30_000.0, 0.0), (60_000.0, 0.000_5))
"""(deadlines per second up to which, slot width in s); beyond the last row `WIDEST_SLOT_S`."""
WIDEST_SLOT_S = 0.001

WINDOW_S = 0.1
"""How long deadlines are counted before the slot width is chosen anew."""


class Item(Protocol):
    """Something that waits for an instant."""

    slot: float
    """Where the scheduler keeps it; 0.0 while it is not waiting. Only the scheduler writes it."""

    def fire(self, now: float) -> float | None:
        """Do what is due at `now`; return the next deadline, or None when there is none."""
        ...


class Scheduler:
    """Fires items at their deadlines.

    Args:
        now: Tells the time, in seconds.
        on_error: Called with an item whose `fire` raised, and the exception; the item is dropped.
    """

    def __init__(self, now: Callable[[], float], on_error: Callable[[Item, Exception], None]) -> None:
        self._now = now
        self._on_error = on_error
        self._instants: list[float] = []
        self._buckets: dict[float, list[Item]] = {}
        self._waiting = 0
        self._fired = 0
        self._window_from = now()
        self.slot_s = 0.0

    @property
    def next_s(self) -> float | None:
        """The next deadline, or None while nothing waits."""
        return self._instants[0] if self._instants else None

    @property
    def waiting(self) -> int:
        """How many items wait."""
        return self._waiting

    def start(self, item: Item, when_s: float) -> bool:
        """Let `item` fire at `when_s`; an item waits for one instant at a time.

        Returns:
            True if `when_s` is now the earliest deadline, so that the owner's timer must be set anew.
        """
        slot_s = self.slot_s
        if slot_s:
            when_s = ceil(when_s / slot_s) * slot_s
        item.slot = when_s
        self._waiting += 1
        bucket = self._buckets.get(when_s)
        if bucket is not None:
            bucket.append(item)
            return False
        self._buckets[when_s] = [item]
        heappush(self._instants, when_s)
        return self._instants[0] == when_s

    def cancel(self, item: Item) -> None:
        """Forget `item` at once; harmless when it does not wait."""
        if not item.slot:
            return
        bucket = self._buckets.get(item.slot)
        item.slot = 0.0
        self._waiting -= 1
        if bucket is None:  # its instant is being served: `run_due` skips it
            return
        bucket.remove(item)
        # The instant stays in the heap until it comes, unless empty ones pile up.
        if not bucket and len(self._instants) > 2 * self._waiting + 64:
            self._prune()

    def _prune(self) -> None:
        for when in [when for when, bucket in self._buckets.items() if not bucket]:
            del self._buckets[when]
        self._instants[:] = self._buckets
        heapify(self._instants)

    def run_due(self) -> float | None:
        """Fire what is due, earliest first, for `BUDGET_S` at most.

        Returns:
            The next deadline, which has already come if the time did not suffice; None for none.
        """
        instants = self._instants
        t = self._now()
        stop = t + BUDGET_S
        while instants and instants[0] <= t <= stop:
            t = self._serve(heappop(instants), t, stop)
        if t - self._window_from >= WINDOW_S:
            self._choose_slot(t)
        return instants[0] if instants else None

    def _serve(self, when_s: float, t: float, stop: float) -> float:
        """Fire the items of one instant until `stop`; returns the time after the last."""
        bucket = self._buckets.pop(when_s)
        for index, item in enumerate(bucket):
            if item.slot != when_s:  # cancelled since the instant came
                continue
            self._fire(item, t)
            t = self._now()
            if t > stop:
                self._put_back(when_s, bucket[index + 1 :])
                break
        return t

    def _fire(self, item: Item, now: float) -> None:
        item.slot = 0.0
        self._waiting -= 1
        self._fired += 1
        try:
            following = item.fire(now)
        except Exception as error:  # one item's bug must not stop the others
            self._on_error(item, error)
            return
        if following is not None:
            self.start(item, following)

    def _put_back(self, when: float, items: list[Item]) -> None:
        if not items:
            return
        bucket = self._buckets.get(when)
        if bucket is None:
            self._buckets[when] = items
            heappush(self._instants, when)
        else:
            bucket.extend(items)

    def _choose_slot(self, now: float) -> None:
        rate = self._fired / (now - self._window_from)
        self.slot_s = next((slot for limit, slot in SLOTS if rate <= limit), WIDEST_SLOT_S)
        self._fired = 0
        self._window_from = now
