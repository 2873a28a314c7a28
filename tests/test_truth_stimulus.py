"""The load meter, with arrivals whose figures are known."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.truth.stimulus import KEPT_SECONDS, StimulusMeter


def test_a_metronome_has_no_variation() -> None:
    meter = StimulusMeter(100.0)
    meter.arrived([100.0, 100.25])
    meter.arrived([100.5, 100.75, 101.0])
    stimulus = meter.summary(101.0, 5, 5)
    assert stimulus.arrivals == 5
    assert stimulus.rate_per_s == 4.0
    assert (stimulus.interarrival_mean_s, stimulus.interarrival_cv) == (0.25, 0.0)


def test_bunches_have_variation() -> None:
    meter = StimulusMeter(0.0)
    meter.arrived([0.0, 0.0, 1.0, 1.0, 2.0])
    stimulus = meter.summary(2.0, 0, 5)
    # Gaps 0, 1, 0, 1: mean 1/2, standard deviation 1/2.
    assert (stimulus.interarrival_mean_s, stimulus.interarrival_cv) == (0.5, 1.0)


def test_the_curve_is_the_mean_in_flight_of_each_second() -> None:
    meter = StimulusMeter(10.0)
    meter.arrived([10.0, 10.5, 12.25])
    meter.ended([11.5, 12.0])  # the first was there for 1.5 s, the second for 1.5 s
    curve = meter.summary(12.5, 1, 2).seconds
    assert [(s.second, s.arrivals, s.in_flight) for s in curve] == [(0, 2, 1.5), (1, 0, 1.5), (2, 1, 0.5)]


def test_requests_from_before_a_reset_stay_in_flight() -> None:
    meter = StimulusMeter(10.0, in_flight=2)
    meter.ended([10.5])
    (second,) = meter.summary(12.0, 1, 2).seconds
    assert (second.in_flight, second.in_flight_end) == (1.5, 1)


def test_old_seconds_are_let_go_and_counted() -> None:
    meter = StimulusMeter(0.0)
    meter.arrived([float(second) for second in range(KEPT_SECONDS + 5)])
    stimulus = meter.summary(KEPT_SECONDS + 4.5, KEPT_SECONDS + 5, KEPT_SECONDS + 5)
    assert stimulus.seconds_dropped == 5
    assert stimulus.seconds[0].second == 5
    assert stimulus.seconds[0].in_flight == 6.0  # five from before, and its own
    assert stimulus.arrivals == KEPT_SECONDS + 5


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.floats(0.0, 20.0)), max_size=40))
def test_the_curve_adds_up_to_the_time_in_flight(spans: list[tuple[float, float]]) -> None:
    meter = StimulusMeter(0.0)
    meter.arrived(sorted([start for start, _ in spans]))
    meter.ended(sorted([start + length for start, length in spans]))
    curve = meter.summary(50.0, 0, 0).seconds
    busy = sum(second.in_flight for second in curve)
    busy += sum(before.in_flight_end * (after.second - before.second - 1) for before, after in pairwise(curve))
    assert busy == pytest.approx(sum(length for _, length in spans), abs=1e-6)
