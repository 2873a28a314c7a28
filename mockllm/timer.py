"""Wakes the scheduler, finer than the event loop can.

asyncio rounds a wait up to epoll's whole millisecond and uvloop rounds to the nearest, which may
be early. Where Linux's timerfd exists it wakes the loop like any descriptor, to the microsecond;
elsewhere `call_at` does, and a wake-up that came too early is set again.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from mockllm.scheduler import Scheduler
from mockllm.truth import StallMeter

_TFD_TIMER_ABSTIME = 1  # <linux/timerfd.h>
_CLOCK_MONOTONIC = 1  # <linux/time.h>; what `time.perf_counter` reads on Linux


class Alarm(Protocol):
    """Rings once, at the time that was set last."""

    def set(self, when_s: float) -> None:
        """Ring at `when_s` on the monotonic clock; at once when that has passed."""
        ...

    def clear(self) -> None:
        """Do not ring."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class _Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class TimerfdAlarm:
    """An alarm on Linux's timerfd (timerfd_create(2)), through libc: `os` has it from Python 3.13."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._spec = _Itimerspec()
        self._value = self._spec.value
        self._reference = ctypes.byref(self._spec)
        self._settime = self._libc.timerfd_settime
        loop.add_reader(self._fd, ring)

    def set(self, when_s: float) -> None:
        # Setting also takes back a ring that was not read, so the descriptor is never read.
        value = self._value
        value.sec = sec = int(when_s)
        value.nsec = min(int((when_s - sec) * 1e9) + 1, 999_999_999)
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._reference, None)

    def clear(self) -> None:
        self._value.sec = self._value.nsec = 0
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._reference, None)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class LoopAlarm:
    """An alarm on the loop's own timers: a millisecond late at worst, and set again when early."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None], now: Callable[[], float]) -> None:
        self._loop = loop
        self._ring = ring
        self._now = now
        self._handle: asyncio.TimerHandle | None = None

    def set(self, when_s: float) -> None:
        self.clear()
        self._handle = self._loop.call_later(max(0.0, when_s - self._now()), self._ring)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        self.clear()


class SchedulerTimer:
    """Runs a scheduler from an event loop with one alarm.

    Args:
        loop: The running loop.
        scheduler: What is run.
        now: The scheduler's clock.
        stalls: Hears when it is to ring and when it did.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, scheduler: Scheduler, now: Callable[[], float], stalls: StallMeter
    ) -> None:
        self._scheduler = scheduler
        self._now = now
        self._stalls = stalls
        self._armed_s: float | None = None
        self._running = False
        self._alarm: Alarm = make_alarm(loop, self._ring, now)

    def wake_at(self, when_s: float) -> None:
        """Run the scheduler at `when_s`, or earlier."""
        if self._running or (self._armed_s is not None and self._armed_s <= when_s):
            return
        self._armed_s = self._stalls.due_s = when_s
        self._alarm.set(when_s)

    def _ring(self) -> None:
        began_s = self._now()
        self._running = True
        try:
            next_s = self._scheduler.run_due()
        finally:
            self._running = False
        self._stalls.rang(began_s, self._now())
        # When the budget ran out `next_s` has passed: the alarm rings at once, but I/O comes first.
        self._armed_s = next_s
        if next_s is None:
            self._stalls.due_s = inf
            self._alarm.clear()
        else:
            self._stalls.due_s = next_s
            self._alarm.set(next_s)

    def close(self) -> None:
        """Free the alarm."""
        self._alarm.close()


def make_alarm(loop: asyncio.AbstractEventLoop, ring: Callable[[], None], now: Callable[[], float]) -> Alarm:
    """The finest alarm that the platform has."""
    if sys.platform == "linux":
        try:
            return TimerfdAlarm(loop, ring)
        except (OSError, AttributeError, NotImplementedError):
            pass  # an old kernel, a libc without it, or a loop without add_reader
    return LoopAlarm(loop, ring, now)
