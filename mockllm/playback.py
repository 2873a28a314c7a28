"""Plays one timeline to one sink.

A playback owns its cursor and nothing else: the deadlines are the timeline's, the writes go into
the exchange. Chunks of one stream that are due together leave in one write, in order, never early.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Protocol

from mockllm.exchange import Timeline


class Sink(Protocol):
    """Where a playback's events go."""

    def emit(self, events: list[bytes], upto: int, last: bool) -> None:
        """Write the events of the steps before `upto`; with `last`, end the reply."""
        ...


class Playback:
    """One reply in flight; an item of the scheduler.

    Args:
        timeline: What is due when.
        arrival_s: The timeline's zero.
        sink: Gets the events.
    """

    __slots__ = ("_after_s", "_burst", "_cursor", "_prepare", "_render", "_start_s", "_steps", "paused", "sink", "slot")

    def __init__(self, timeline: Timeline, arrival_s: float, sink: Sink) -> None:
        self._render = timeline.render
        self._after_s = timeline.after_s
        self._steps = timeline.steps
        self._burst = timeline.burst
        self._prepare = timeline.prepare
        self._start_s = arrival_s + timeline.offset_s
        self.sink = sink
        self._cursor = 0
        self.slot = 0.0
        self.paused = False

    @property
    def due_s(self) -> float:
        """Deadline of the next step; long past while there is something to prepare."""
        if self._prepare is not None:
            return 0.0
        return self._start_s + self._after_s[self._cursor]

    def fire(self, now: float) -> float | None:
        """Emit every step that is due at `now`; nothing while paused (the owner starts it again)."""
        if self.paused:
            return None
        if self._prepare is not None:
            for _ in self._prepare:
                return now  # queued behind what is due by now
            self._prepare = None
        first = self._cursor
        after_s = self._after_s
        steps = self._steps
        upto = bisect_right(after_s, now - self._start_s, first, steps)
        if upto == first:
            # `now - start` and `start + after` round differently: the sum, which set the timer, decides.
            due = self._start_s + after_s[first]
            if due > now:
                return due
            upto = first + 1
        elif upto > first + self._burst:
            upto = first + self._burst
        self._cursor = upto
        last = upto == steps
        self.sink.emit(self._render(first, upto), upto, last)
        if last or self.paused:
            return None
        due = self._start_s + after_s[upto]
        return due if due > now else now  # what is overdue queues behind what is due by now
