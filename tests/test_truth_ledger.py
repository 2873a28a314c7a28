"""The ring of records: what it keeps, what it lets go, and how it is read."""

from __future__ import annotations

import msgspec
import pytest

from mockllm.exchange import End
from mockllm.truth import RECORDS, Truth
from tests.exchanges import ARRIVAL_S, error, make_truth, stream, whole


def filled(*seqs: int, **options: object) -> Truth:
    truth = make_truth(None, **options)
    for seq in seqs:
        truth.finished(whole(seq))
    return truth


def test_a_record_says_what_was_planned_and_what_happened() -> None:
    truth = make_truth()
    truth.finished(stream(3, [(1.0, 1), (1.5, 3), (1.75, 4)]))
    (record,) = truth.ledger
    assert (record.seq, record.request_id, record.outcome, record.status) == (3, "id-3", "completed", 200)
    assert (record.prompt_tokens, record.planned_tokens, record.tokens, record.chunks, record.bytes) == (
        7,
        4,
        4,
        4,
        400,
    )
    assert record.first_byte_s == ARRIVAL_S - 0.001
    assert (record.first_token_planned_s, record.first_token_s) == (ARRIVAL_S + 1, ARRIVAL_S + 1)
    assert record.lateness_max_s == 0.25
    assert record.arrival_unix_s == 1_700_000_000.0
    assert record.token_times is None


def test_records_cannot_be_changed() -> None:
    (record,) = filled(1).ledger
    with pytest.raises(AttributeError):
        record.tokens = 5  # type: ignore[misc] # this is what must fail


def test_a_refusal_has_no_tokens_and_no_lateness() -> None:
    truth = make_truth()
    truth.finished(error(1))
    (record,) = truth.ledger
    assert (record.outcome, record.tokens, record.first_token_s, record.lateness_max_s) == ("refused", 0, None, 0.0)
    assert truth.statistics().lateness.count == 0


def test_tokens_of_a_cut_stream_are_those_that_were_sent() -> None:
    truth = make_truth()
    truth.finished(stream(1, [(1.0, 1), (1.25, 2)], outcome=End.CLIENT_GONE))
    two_choices = stream(2, [(1.0, 1), (1.5, 3)], outcome=End.CLIENT_GONE)
    two_choices.tokens, two_choices.choice_tokens = 6, [4, 2]
    truth.finished(two_choices)
    assert [record.tokens for record in truth.ledger] == [2, 5]


def test_the_ring_forgets_the_oldest_and_counts_it() -> None:
    ledger = filled(*range(1, 251), ledger_size=10).ledger
    assert [record.seq for record in ledger] == list(range(241, 251))
    assert ledger.dropped == 240


def test_a_ring_of_no_size_counts_only() -> None:
    truth = filled(1, 2, 3, ledger_size=0, ledger_tokens=True)
    assert len(truth.ledger) == 0
    assert truth.ledger.dropped == 3
    assert truth.statistics().requests == 3


def test_polling_misses_nothing_when_a_slow_request_ends_late() -> None:
    ledger = filled(1, 3, 2, 5, 4).ledger
    assert [record.seq for record in ledger.after(0)] == [1, 3, 2, 5, 4]
    assert [record.seq for record in ledger.after(3)] == [2, 5, 4]
    assert [record.seq for record in ledger.after(3, 2)] == [2, 5]
    assert ledger.after(4) == ()
    assert ledger.after(99) == ()


def test_a_number_without_a_record_gives_greater_ones() -> None:
    assert [record.seq for record in filled(1, 4, 5).ledger.after(2)] == [4, 5]


def test_a_number_that_fell_out_gives_all() -> None:
    assert [record.seq for record in filled(1, 5, 2, 3, ledger_size=2).ledger.after(5)] == [2, 3]


def test_a_record_is_found_by_request_id_or_number() -> None:
    ledger = filled(1, 2, 3).ledger
    for id in ("id-2", "2"):
        record = ledger.find(id)
        assert record is not None
        assert record.seq == 2
    assert ledger.find("id-9") is None
    assert ledger.find("9") is None


def test_of_a_repeated_id_the_newest_is_found() -> None:
    truth = make_truth()
    for seq in (1, 2):
        exchange = whole(seq)
        exchange.request_id = "same"
        truth.finished(exchange)
    record = truth.ledger.find("same")
    assert record is not None
    assert record.seq == 2


def test_token_times_are_bounded_in_bytes() -> None:
    truth = make_truth(ledger_tokens=True, token_times_bytes=3 * 64)
    for seq in range(1, 6):
        truth.finished(stream(seq, [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)]))
    assert [record.seq for record in truth.ledger if record.token_times is not None] == [3, 4, 5]
    assert truth.ledger.dropped_times == 2
    truth.finished(stream(6, [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)]))
    assert [record.seq for record in truth.ledger if record.token_times is not None] == [4, 5, 6]


def test_token_times_of_records_that_fall_out_make_room() -> None:
    truth = make_truth(ledger_tokens=True, ledger_size=2, token_times_bytes=2 * 64)
    for seq in range(1, 9):
        truth.finished(stream(seq, [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)]))
        assert all(record.token_times is not None for record in truth.ledger)
    assert truth.ledger.dropped_times == 0


def test_it_is_a_sequence() -> None:
    ledger = filled(1, 2, 3).ledger
    assert len(ledger) == 3
    assert ledger[-1].seq == 3
    assert [record.seq for record in ledger[1:]] == [2, 3]


def test_records_are_json() -> None:
    truth = make_truth(ledger_tokens=True)
    truth.finished(stream(1, [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)]))
    decoded = msgspec.json.decode(RECORDS.encode(truth.ledger[0]))
    assert decoded["outcome"] == "completed"
    assert decoded["token_times"]["planned_s"] == [1.0, 1.25, 1.5, 1.75]


def test_lines_go_to_the_sink_in_the_order_of_the_ends() -> None:
    truth = make_truth(ledger_size=1)
    lines: list[bytes] = []
    truth.sink = lines.append
    for seq in range(1, 101):
        truth.finished(whole(seq))
    truth.close()
    assert [msgspec.json.decode(line)["seq"] for line in b"".join(lines).splitlines()] == list(range(1, 101))
