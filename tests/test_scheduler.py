"""The scheduler: absolute deadlines, never early, one bug stops one item."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.clock import FakeClock
from mockllm.scheduler import BUDGET_S, Item, Scheduler


class Recorder:
    """An item that fires at each of its deadlines and writes down when."""

    def __init__(self, clock: FakeClock, deadlines: list[float], cost_s: float = 0.0) -> None:
        self.slot = 0.0
        self.fired: list[tuple[float, float]] = []
        self._clock = clock
        self._deadlines = deadlines
        self._cost_s = cost_s

    def fire(self, now: float) -> float | None:
        self.fired.append((self._deadlines.pop(0), now))
        self._clock.advance(self._cost_s)
        return self._deadlines[0] if self._deadlines else None


def raise_it(_item: Item, error: Exception) -> None:
    raise error


def play(clock: FakeClock, scheduler: Scheduler) -> None:
    """Run until nothing waits, waking exactly at each deadline."""
    while (when := scheduler.next_s) is not None:
        clock.advance_to(max(when, clock.now()))
        scheduler.run_due()


offsets = st.lists(st.floats(0, 5), min_size=1, max_size=20).map(sorted)


@given(st.lists(offsets, min_size=1, max_size=10))
def test_every_deadline_is_met_in_order_and_at_its_time(plans: list[list[float]]) -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    items = [Recorder(clock, [clock.now() + offset for offset in plan]) for plan in plans]
    wanted = [[clock.now() + offset for offset in plan] for plan in plans]
    for item, times in zip(items, wanted, strict=True):
        scheduler.start(item, times[0])
    play(clock, scheduler)
    assert [[due for due, _ in item.fired] for item in items] == wanted
    assert all(due == now for item in items for due, now in item.fired)
    assert scheduler.waiting == 0


@given(st.lists(offsets, min_size=1, max_size=10), st.sampled_from([0.000_25, 0.000_5, 0.001]))
def test_a_grid_delays_by_less_than_a_slot_and_never_fires_early(plans: list[list[float]], slot_s: float) -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    scheduler.slot_s = slot_s
    items = [Recorder(clock, [clock.now() + offset for offset in plan]) for plan in plans]
    for item in items:
        scheduler.start(item, item._deadlines[0])
    while (when := scheduler.next_s) is not None:
        clock.advance_to(max(when, clock.now()))
        scheduler.run_due()
        scheduler.slot_s = slot_s  # whatever the load was
    for item in items:
        assert all(0 <= now - due <= slot_s * 1.001 for due, now in item.fired)


def test_the_grid_follows_the_load() -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    for rate, widest in ((25_000, 0.0), (50_000, 0.000_5), (80_000, 0.001)):
        start = clock.now()
        items = [Recorder(clock, [start + k / rate]) for k in range(rate)]
        for item in items:
            scheduler.start(item, item._deadlines[0])
        play(clock, scheduler)
        assert scheduler.slot_s == widest


def test_start_tells_whether_the_timer_must_be_set() -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    assert scheduler.start(Recorder(clock, [1010.0]), 1010.0)
    assert not scheduler.start(Recorder(clock, [1011.0]), 1011.0)
    assert not scheduler.start(Recorder(clock, [1010.0]), 1010.0)
    assert scheduler.start(Recorder(clock, [1009.0]), 1009.0)
    assert scheduler.next_s == 1009.0


def test_a_cancelled_item_does_not_fire_and_holds_nothing() -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    items = [Recorder(clock, [1000.0 + k]) for k in range(1000)]
    for item in items:
        scheduler.start(item, item._deadlines[0])
    for item in items[1:]:
        scheduler.cancel(item)
        scheduler.cancel(item)
    assert scheduler.waiting == 1
    assert len(scheduler._instants) < 200, "empty instants are pruned"
    play(clock, scheduler)
    assert [len(item.fired) for item in items] == [1] + [0] * 999


def test_an_item_cancelled_by_another_of_the_same_instant_does_not_fire() -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    victim = Recorder(clock, [1001.0])

    class Killer:
        slot = 0.0

        def fire(self, now: float) -> float | None:
            scheduler.cancel(victim)
            return None

    scheduler.start(Killer(), 1001.0)
    scheduler.start(victim, 1001.0)
    play(clock, scheduler)
    assert victim.fired == []
    assert scheduler.waiting == 0


def test_work_beyond_the_budget_waits_for_the_next_call_and_none_is_lost() -> None:
    clock = FakeClock()
    scheduler = Scheduler(clock.now, raise_it)
    items = [Recorder(clock, [1001.0], cost_s=BUDGET_S / 4) for _ in range(20)]
    for item in items:
        scheduler.start(item, 1001.0)
    clock.advance_to(1001.0)
    next_s = scheduler.run_due()
    first = sum(len(item.fired) for item in items)
    assert first == 5
    assert next_s == 1001.0
    play(clock, scheduler)
    assert all(len(item.fired) == 1 for item in items)


def test_one_items_bug_does_not_stop_the_others() -> None:
    clock = FakeClock()
    failed: list[tuple[Item, Exception]] = []
    scheduler = Scheduler(clock.now, lambda item, error: failed.append((item, error)))

    class Buggy:
        slot = 0.0

        def fire(self, now: float) -> float | None:
            raise ZeroDivisionError

    buggy, healthy = Buggy(), Recorder(clock, [1001.0])
    scheduler.start(buggy, 1001.0)
    scheduler.start(healthy, 1001.0)
    play(clock, scheduler)
    assert [item for item, _ in failed] == [buggy]
    assert len(healthy.fired) == 1


def test_time_does_not_go_back() -> None:
    clock = FakeClock()
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1.0)
