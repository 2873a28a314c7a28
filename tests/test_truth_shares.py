"""Several processes' books: their sum is that of one process which did it all; what the dead had said stays."""

from __future__ import annotations

import random
import threading

import msgspec
import pytest

from mockllm.clock import FakeClock
from mockllm.truth import SharedTruth, Truth
from mockllm.truth.shares import Share
from mockllm.workers.board import PAGE_BYTES, SharedBoard
from tests.exchanges import ARRIVAL_S, error, make_truth, stream, whole

SETTINGS = {"model": "m", "max_model_len": 1000, "ledger_size": 100, "ledger_tokens": False, "budget_s": 0.005}


def several(count: int, clock: FakeClock) -> tuple[SharedBoard, list[SharedTruth]]:
    board = SharedBoard.create(count, clock.now())
    truths = [SharedTruth(clock, board, place, records_at=None, **SETTINGS) for place in range(count)]
    for truth in truths:
        truth.begin()
    return board, truths


def feed(truth: Truth, seq: int, kind: int) -> None:
    """Let a request arrive and end."""
    arrival_s = ARRIVAL_S + seq * 0.25
    writes = [(1.001, 1), (1.25, 2), (1.5 + seq / 1000, 3), (1.76, 4)]
    make = [
        lambda: stream(seq, writes, arrival_s=arrival_s),
        lambda: whole(seq, 0.002, arrival_s=arrival_s),
        lambda: error(seq, 429, arrival_s=arrival_s),
    ]
    exchange = make[kind]()
    truth.arrived(exchange)
    truth.finished(exchange)


def test_the_sum_is_what_one_process_would_say_whoever_is_asked() -> None:
    clock = FakeClock(ARRIVAL_S)
    one = make_truth(clock)
    board, parts = several(3, clock)
    draw = random.Random(1)
    for seq in range(1, 200):
        kind = draw.randrange(3)
        feed(one, seq, kind)
        feed(draw.choice(parts), seq, kind)
    clock.advance(100.0)
    for part in parts:
        part.publish()
    expected = one.statistics()
    for part in parts:
        got = part.statistics()
        for name in ("requests", "outcomes", "statuses", "prompt_tokens", "tokens", "chunks", "bytes", "in_flight"):
            assert getattr(got, name) == getattr(expected, name)
        assert got.lateness.mean_s == pytest.approx(expected.lateness.mean_s)
        for name in ("count", "p50_s", "p99_s", "max_s"):
            assert getattr(got.lateness, name) == getattr(expected.lateness, name)
        assert got.stimulus.arrivals == expected.stimulus.arrivals
        assert got.stimulus.rate_per_s == pytest.approx(expected.stimulus.rate_per_s)
        assert [(s.second, s.arrivals) for s in got.stimulus.seconds] == [
            (s.second, s.arrivals) for s in expected.stimulus.seconds
        ]
        mine = [line for line in part.metrics().decode().splitlines() if "_sum" not in line]
        assert mine == [line for line in one.metrics().decode().splitlines() if "_sum" not in line]
    board.close()


def test_a_reset_by_one_ends_the_interval_of_all_and_totals_go_on() -> None:
    clock = FakeClock(ARRIVAL_S)
    board, (first, second) = several(2, clock)
    feed(first, 1, 0)
    feed(second, 2, 0)
    clock.advance(1.0)
    ended = first.resetting()
    feed(second, 3, 0)  # it has not seen the reset yet, but will before it publishes again
    clock.advance(0.1)
    second.publish_if_changed()
    assert ended().requests == 3
    assert first.statistics().requests == second.statistics().requests == 0
    feed(first, 4, 0)
    first.publish()
    assert second.statistics().requests == 1
    assert second.total().requests == 4
    board.close()


def test_what_a_dead_process_had_published_is_inherited() -> None:
    clock = FakeClock(ARRIVAL_S)
    board, (parent, child) = several(2, clock)
    feed(child, 1, 0)
    clock.advance(1.0)
    parent.reset()
    child.publish()
    feed(child, 2, 1)
    child.in_flight += 1  # one that never ends
    child.publish()
    before = parent.metrics()
    share = msgspec.msgpack.decode(board.at(1), type=Share)
    board.publish(1, b"")
    parent.inherit(share)
    assert parent.statistics().requests == 1
    assert parent.total().requests == 2
    assert (share.in_flight, parent.statistics().in_flight) == (1, 0)
    after = parent.metrics()
    running = b'num_requests_running{model_name="m"} %d'
    assert before.replace(running % 1, running % 0) == after
    board.close()


def test_nothing_is_published_twice() -> None:
    clock = FakeClock(ARRIVAL_S)
    board, (truth,) = several(1, clock)
    truth.publish_if_changed()
    before = board.at(0)
    clock.advance(1.0)
    truth.publish_if_changed()
    assert board.at(0) == before
    feed(truth, 1, 0)
    truth.publish_if_changed()
    assert board.at(0) != before
    board.close()


def test_a_reader_never_sees_half_of_what_is_written() -> None:
    board = SharedBoard.create(1, 0.0)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            board.publish(0, bytes([number % 256]) * (1000 + number % 5000))

    writer = threading.Thread(target=write)
    board.publish(0, b"\0" * 1000)
    writer.start()
    try:
        for _ in range(2000):
            seen = board.at(0)
            assert seen
            assert len(set(seen)) == 1
    finally:
        stop.set()
        writer.join()
        board.close()


def test_a_page_has_its_size_and_nothing_is_at_first() -> None:
    board = SharedBoard.create(2, 5.0)
    assert (board.read(), board.epoch) == ([], (0, 5.0))
    board.publish(1, b"x" * (PAGE_BYTES - 8))
    assert board.read() == [b"x" * (PAGE_BYTES - 8)]
    with pytest.raises(ValueError, match="larger than a page"):
        board.publish(1, b"x" * (PAGE_BYTES - 7))
    board.publish(1, b"")
    assert board.read() == []
    assert board.advance(7.0) == 1
    assert board.epoch == (1, 7.0)
    board.close()
    board.close()
