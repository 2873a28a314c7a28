"""Planned against actual times, by hand-made exchanges whose numbers are exact in binary."""

from __future__ import annotations

import pytest

from mockllm.exchange import End
from mockllm.truth.lateness import Tally
from mockllm.truth.steps import measure, token_times
from tests.exchanges import ARRIVAL_S, stream, whole


def test_a_write_for_each_step() -> None:
    exchange = stream(1, [(1.0, 1), (1.25 + 0.125, 2), (1.5, 3), (1.75 + 0.0625, 4)])
    tally = Tally()
    steps = measure(exchange, tally)
    assert (steps.first_planned_s, steps.first_s) == (ARRIVAL_S + 1, ARRIVAL_S + 1)
    assert (steps.last_planned_s, steps.last_s) == (ARRIVAL_S + 1.75, ARRIVAL_S + 1.8125)
    assert (steps.max_s, steps.p50_s, steps.p99_s) == (0.125, 0.0, 0.125)
    assert steps.gaps_s == [0.125, 0.3125, 0.375]
    assert steps.together == 0
    assert tally.count == 4
    assert tally.sum_s == 0.1875


def test_late_steps_that_left_in_one_write() -> None:
    steps = measure(stream(1, [(1.0, 1), (1.5 + 0.125, 3), (1.75, 4)]), Tally())
    assert (steps.max_s, steps.p50_s) == (0.375, 0.0)  # of 0, 0.375, 0.125, 0
    assert steps.gaps_s == [0.125, 0.625]
    assert steps.together == 1


def test_steps_that_were_all_due_at_once_are_weighted() -> None:
    exchange = stream(1, [(1.125, 256), (1.25, 300)], after_s=(0.0,) * 300)
    tally = Tally()
    steps = measure(exchange, tally)
    assert (steps.max_s, steps.p50_s, steps.p99_s) == (0.25, 0.125, 0.25)
    assert (tally.count, tally.sum_s, tally.max_s) == (300, 256 * 0.125 + 44 * 0.25, 0.25)
    assert steps.gaps_s == [0.125]
    assert steps.together == 298


def test_a_whole_reply_has_one_step() -> None:
    steps = measure(whole(1, 0.25), Tally())
    assert (steps.first_s, steps.last_s) == (ARRIVAL_S + 1.25, ARRIVAL_S + 1.25)
    assert (steps.max_s, steps.p50_s, steps.p99_s) == (0.25, 0.25, 0.25)
    assert steps.gaps_s == []


def test_a_stream_that_was_cut_is_measured_up_to_there() -> None:
    steps = measure(stream(1, [(1.0, 1), (1.25, 2)], outcome=End.CLIENT_GONE), Tally())
    assert steps.last_planned_s == ARRIVAL_S + 1.25


def test_what_waited_for_the_peer_is_not_our_lateness() -> None:
    # Step 1 leaves in time but the kernel does not take all of it until 2.0; steps 2 and 3 fall due meanwhile.
    exchange = stream(1, [(1.0, 1), (1.25, 2), (2.0, 4)], waits=[1.25, 2.0])
    tally = Tally()
    steps = measure(exchange, tally)
    assert steps.peer_delayed == 2
    assert steps.max_s == 0.0
    assert (tally.count, tally.peer_delayed) == (2, 2)


def test_what_was_due_before_the_wait_but_could_not_leave_is_the_peers_too() -> None:
    exchange = stream(1, [(1.0, 256), (3.0, 300)], after_s=(0.0,) * 300, waits=[1.0, 3.0])
    steps = measure(exchange, Tally())
    assert (steps.peer_delayed, steps.max_s) == (44, 0.0)


def test_our_lateness_after_a_wait_is_ours_again() -> None:
    exchange = stream(1, [(1.0, 1), (1.25, 2), (1.5 + 0.125, 3), (1.75, 4)], waits=[1.0, 1.125])
    steps = measure(exchange, Tally())
    assert (steps.peer_delayed, steps.max_s) == (0, 0.125)


def test_the_last_token_is_out_when_the_kernel_has_all_of_it() -> None:
    exchange = stream(1, [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)], waits=[1.75, 2.5])
    assert measure(exchange, Tally()).last_s == ARRIVAL_S + 2.5
    gone = stream(1, [(1.0, 1), (1.25, 2)], waits=[1.25, 2.5], outcome=End.CLIENT_GONE)
    assert measure(gone, Tally()).last_s == ARRIVAL_S + 1.25


@pytest.mark.parametrize("writes", [[(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)], [(1.0, 1), (1.75, 4)]])
def test_token_times(writes: list[tuple[float, int]]) -> None:
    times = token_times(stream(1, writes))
    assert times.planned_s.tolist() == [1.0, 1.25, 1.5, 1.75]
    assert times.actual_s.tolist() == ([1.0, 1.25, 1.5, 1.75] if len(writes) == 4 else [1.0, 1.75, 1.75, 1.75])
    assert times.nbytes == 64
