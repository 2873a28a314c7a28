"""Who held the loop: made-up callbacks and collections at made-up times."""

from __future__ import annotations

import gc

from mockllm.clock import FakeClock
from mockllm.truth import Heartbeat, StallMeter
from mockllm.truth.stalls import BEAT_S, IDLE_BEAT_S


def meter_at(clock: FakeClock, due_s: float) -> StallMeter:
    meter = StallMeter(clock.now)
    meter.due_s = due_s
    return meter


def test_a_prompt_timer_is_no_stall() -> None:
    meter = meter_at(FakeClock(), 1000.5)
    meter.rang(1000.501, 1000.502)
    stalls = meter.take()
    assert (stalls.own.count, stalls.outside.count) == (0, 0)
    assert [round(lag, 6) for lag in meter.take_lags()] == [0.001]


def test_a_long_callback_of_ours_is_our_own() -> None:
    meter = meter_at(FakeClock(), 1000.5)
    meter.worked(1000.25, 1000.75)
    meter.rang(1000.75, 1000.7501)  # late, but it was our work that held it
    stalls = meter.take()
    assert (stalls.own.count, stalls.own.longest_s, stalls.outside.count) == (1, 0.5, 0)


def test_when_nothing_of_ours_ran_something_else_did() -> None:
    meter = meter_at(FakeClock(), 1000.5)
    meter.rang(1000.75, 1000.7501)
    stalls = meter.take()
    assert (stalls.own.count, stalls.outside.count, stalls.outside.total_s) == (0, 1, 0.25)


def test_a_burst_of_short_callbacks_is_no_stall_of_anybody() -> None:
    meter = meter_at(FakeClock(), 1000.0)
    for number in range(100):
        meter.worked(1000.0 + number / 1024, 1000.0 + (number + 0.9) / 1024)
    meter.rang(1000.1, 1000.1001)
    stalls = meter.take()
    assert (stalls.own.count, stalls.outside.count) == (0, 0)


def test_nothing_due_means_nobody_was_held_up() -> None:
    meter = StallMeter(FakeClock().now)
    meter.worked(2000.0, 2000.0001)
    assert meter.take().outside.count == 0


def test_what_was_served_before_the_timer_rang_counts_once() -> None:
    meter = meter_at(FakeClock(), 1000.0)
    meter.served_late(0.002, 1001.0)
    meter.rang(1000.5, 1000.5001)  # for a deadline that is served already
    assert meter.take_lags() == [0.002]
    assert meter.take().outside.count == 0


def test_a_collection_is_taken_out_of_what_it_fell_into() -> None:
    clock = FakeClock(1000.0)
    meter = meter_at(clock, 1000.5)
    meter._collector("start", {})
    clock.advance(0.25)
    meter._collector("stop", {})
    meter.worked(1000.0, 1000.25 + 0.001)
    stalls = meter.take()
    assert (stalls.collector.count, stalls.collector.longest_s) == (1, 0.25)
    assert (stalls.own.count, stalls.collections.count) == (0, 1)


def test_the_collector_is_watched_until_closed() -> None:
    before = list(gc.callbacks)
    meter = StallMeter(FakeClock().now)
    meter.watch_collector()
    gc.collect()
    meter.close()
    assert meter.take().collections.count >= 1
    assert gc.callbacks == before


def test_the_heart_beats_faster_while_there_is_work_and_marks_the_seconds() -> None:
    busy = [True]
    seconds: list[float] = []
    heart = Heartbeat(lambda: busy[0], seconds.append)
    assert heart.fire(10.0) == 10.0 + BEAT_S
    assert heart.fire(10.5) == 10.5 + BEAT_S
    busy[0] = False
    assert heart.fire(11.0) == 11.0 + IDLE_BEAT_S
    assert seconds == [10.0, 11.0]
