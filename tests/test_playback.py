"""A playback: in order, never early, overdue steps together, nothing while paused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.clock import FakeClock
from mockllm.exchange import MAX_STEPS, Timeline
from mockllm.generation.latency import Even
from mockllm.playback import Playback


class Pipe:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.writes: list[list[bytes]] = []
        self.ended = False

    def emit(self, events: list[bytes], upto: int, last: bool) -> None:
        assert not self.ended
        self.writes.append(events)
        self.ended = last


def timeline(steps: int, gap_s: float = 0.01, offset_s: float = 0.1) -> Timeline:
    def render(first: int, upto: int) -> list[bytes]:
        return [b"%d" % step for step in range(first, upto)]

    return Timeline(steps, render, offset_s, Even(gap_s).upto(steps))


def numbers(pipe: Pipe) -> list[int]:
    return [int(event) for write in pipe.writes for event in write]


def test_ten_thousand_tokens_at_a_quarter_millisecond_do_not_drift() -> None:
    clock = FakeClock()
    pipe = Pipe()
    playback = Playback(timeline(10_000, 0.000_25), clock.now(), pipe)
    due: float | None = playback.due_s
    while due is not None:
        clock.advance_to(due)
        due = playback.fire(clock.now())
    assert len(pipe.writes) == 10_000, "each token left by itself"
    assert numbers(pipe) == list(range(10_000))
    assert abs(clock.now() - (1000.0 + 0.1 + 9_999 * 0.000_25)) < 1e-9


@given(st.integers(1, 50), st.lists(st.floats(0, 0.3), max_size=30))
def test_at_any_wakeups_steps_leave_in_order_and_never_early(steps: int, waits: list[float]) -> None:
    clock = FakeClock()
    pipe = Pipe()
    plan = timeline(steps)
    playback = Playback(plan, clock.now(), pipe)
    for wait in waits:
        clock.advance(wait)
        if pipe.ended:
            break
        before = len(numbers(pipe))
        if playback.due_s <= clock.now():
            playback.fire(clock.now())
        for step in numbers(pipe)[before:]:
            assert 1000.0 + plan.offset_s + plan.after_s[step] <= clock.now()
    assert numbers(pipe) == list(range(len(numbers(pipe))))


def test_overdue_steps_leave_in_one_write() -> None:
    clock = FakeClock()
    pipe = Pipe()
    playback = Playback(timeline(10), clock.now(), pipe)
    clock.advance(0.1451)
    assert playback.fire(clock.now()) == playback.due_s
    assert pipe.writes == [[b"0", b"1", b"2", b"3", b"4"]]


def test_an_early_wakeup_emits_nothing_and_returns_the_same_deadline() -> None:
    clock = FakeClock()
    pipe = Pipe()
    playback = Playback(timeline(2), clock.now(), pipe)
    due = playback.due_s
    clock.advance(0.05)
    assert playback.fire(clock.now()) == due
    assert pipe.writes == []


def test_a_long_overdue_reply_is_sent_in_parts() -> None:
    clock = FakeClock()
    pipe = Pipe()
    playback = Playback(timeline(1000, 0.0, 0.0), clock.now(), pipe)
    due: float | None = playback.due_s
    while due is not None:
        assert due <= clock.now()
        due = playback.fire(clock.now())
    assert [len(write) for write in pipe.writes] == [MAX_STEPS, MAX_STEPS, MAX_STEPS, 1000 - 3 * MAX_STEPS]
    assert pipe.ended


def test_paused_it_emits_nothing_and_resumed_it_catches_up() -> None:
    clock = FakeClock()
    pipe = Pipe()
    playback = Playback(timeline(10), clock.now(), pipe)
    playback.paused = True
    clock.advance(1.0)
    assert playback.fire(clock.now()) is None
    assert pipe.writes == []
    playback.paused = False
    assert playback.fire(clock.now()) is None
    assert numbers(pipe) == list(range(10))
