"""Statistics, the verdict, and the metrics, from hand-made exchanges."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mockllm.clock import FakeClock
from mockllm.exchange import End, Exchange
from mockllm.truth import Truth, describe
from mockllm.truth.access import describe_exchange
from mockllm.truth.metrics import Histogram, steps_1_2_5
from tests.exchanges import ARRIVAL_S, error, make_truth, stream, whole

ON_TIME = [(1.0, 1), (1.25, 2), (1.5, 3), (1.75, 4)]


def feed(truth: Truth, exchanges: Iterable[Exchange]) -> None:
    for exchange in exchanges:
        truth.arrived(exchange)
        truth.finished(exchange)


def samples(truth: Truth) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """`/metrics` as Prometheus' own parser reads it."""
    families = text_string_to_metric_families(truth.metrics().decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(truth: Truth, name: str, **labels: str) -> float:
    return samples(truth)[name, frozenset(labels.items())]


# ---- statistics ------------------------------------------------------------------------------


def test_outcomes_add_up_to_the_requests() -> None:
    truth = make_truth()
    feed(truth, [stream(1, ON_TIME), whole(2), error(3), stream(4, ON_TIME[:2], outcome=End.CLIENT_GONE)])
    statistics = truth.statistics()
    assert statistics.outcomes == {"client_gone": 1, "completed": 2, "refused": 1}
    assert statistics.statuses == {"200": 3, "400": 1}
    assert statistics.requests == 4
    assert (statistics.tokens, statistics.prompt_tokens, statistics.chunks) == (4 + 16 + 2, 21, 4 + 1 + 2)
    assert statistics.lateness.count == 4 + 1 + 2


def test_questions_about_the_server_itself_leave_no_trace() -> None:
    truth = make_truth()
    exchange = error(0, 200)
    truth.finished(exchange)
    assert truth.statistics().requests == 0
    assert len(truth.ledger) == 0


def test_in_flight_and_its_peak() -> None:
    truth = make_truth()
    exchanges = [whole(1), whole(2), whole(3)]
    for exchange in exchanges:
        truth.arrived(exchange)
    truth.finished(exchanges[0])
    stimulus = truth.statistics().stimulus
    assert (stimulus.arrivals, stimulus.in_flight, stimulus.in_flight_peak) == (3, 2, 3)


@pytest.mark.parametrize(("late_s", "trustworthy"), [(0.004, True), (0.0049, True), (0.006, False)])
def test_the_verdict_is_the_p99_against_the_budget(late_s: float, trustworthy: bool) -> None:
    truth = make_truth(budget_s=0.005)
    feed(truth, [whole(n, late_s) for n in range(1, 101)])
    statistics = truth.statistics()
    assert statistics.trustworthy is trustworthy
    assert statistics.lateness.p99_s == pytest.approx(late_s, rel=0.004)
    assert ("NOT trustworthy" in describe(statistics)) is not trustworthy


def test_one_late_chunk_in_a_hundred_and_one_does_not_spoil_it() -> None:
    truth = make_truth()
    feed(truth, [whole(n, 0.001 if n > 1 else 0.5) for n in range(1, 102)])
    statistics = truth.statistics()
    assert statistics.trustworthy
    assert statistics.lateness.max_s == pytest.approx(0.5)


def test_a_reset_begins_anew_but_forgets_nothing() -> None:
    clock = FakeClock(ARRIVAL_S)
    truth = make_truth(clock)
    feed(truth, [whole(1, 0.5)])
    clock.advance(10.0)
    assert truth.reset().requests == 1
    statistics = truth.statistics()
    assert (statistics.requests, statistics.trustworthy, statistics.since_s) == (0, True, ARRIVAL_S + 10)
    feed(truth, [whole(2, arrival_s=ARRIVAL_S + 10)])
    assert truth.statistics().requests == 1
    assert truth.total().requests == 2
    assert truth.total().lateness.max_s == 0.5
    assert len(truth.ledger) == 2
    assert (
        value(truth, "mockllm_requests_total", endpoint="/v1/chat/completions", outcome="completed", status="200") == 2
    )


def test_a_late_second_is_warned_of_and_marks_the_replies(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "mockllm.truth")
    truth = make_truth()
    feed(truth, [whole(1, 0.25)])
    truth.each_second(ARRIVAL_S + 1)
    assert truth.overloaded
    assert len(caplog.records) == 1
    assert "250.0 ms" in caplog.text
    truth.each_second(ARRIVAL_S + 2)  # a good second: no warning, but the interval is still spoilt
    assert len(caplog.records) == 1
    assert truth.overloaded
    truth.reset()
    truth.each_second(ARRIVAL_S + 3)
    assert not truth.overloaded


def test_streams_that_have_not_ended_count_by_the_timer(caplog: pytest.LogCaptureFixture) -> None:
    truth = make_truth()
    truth.arrived(stream(1, []))
    truth.stall_meter.lags_s += [0.02] * 200
    truth.each_second(ARRIVAL_S + 1)
    assert truth.overloaded
    truth.each_second(ARRIVAL_S + 2)
    assert not truth.overloaded


def test_the_summary_is_for_people() -> None:
    truth = make_truth()
    feed(truth, [stream(1, ON_TIME), error(2)])
    text = describe(truth.total())
    assert "requests: 2 (1 completed, 1 refused)" in text
    assert "tokens:   4 in 4 chunks" in text
    assert "verdict:  trustworthy" in text


def test_the_grid_that_load_asked_for_is_told() -> None:
    truth = make_truth()
    widths = [0.0, 0.000_5, 0.0]
    truth.slot_s = lambda: widths.pop(0)
    for second in range(3):
        truth.each_second(ARRIVAL_S + second)
    assert truth.statistics().slot_s == 0.000_5
    assert "grid of 0.5 ms" in describe(truth.statistics())
    truth.reset()
    assert truth.statistics().slot_s == 0.0
    assert "grid" not in describe(truth.statistics())
    assert truth.total().slot_s == 0.000_5


def test_a_line_of_the_access_log() -> None:
    line = describe_exchange(stream(1, [(1.0, 1), (1.25, 2), (1.5, 3), (1.7501, 4)]))
    assert line == "POST /v1/chat/completions 200 4 tokens planned 1750.000 ms actual 1750.100 ms completed"


# ---- metrics ---------------------------------------------------------------------------------


def test_metrics_are_what_was_measured() -> None:
    truth = make_truth()
    feed(truth, [stream(1, [(1.125, 1), (1.25, 2), (1.5, 3), (1.875, 4)])])
    for name, total, count in (
        ("time_to_first_token_seconds", 1.125, 1),
        ("inter_token_latency_seconds", 0.75, 3),
        ("request_time_per_output_token_seconds", 0.25, 1),
        ("e2e_request_latency_seconds", 1.875, 1),
        ("request_queue_time_seconds", 0.0, 1),
        ("request_prefill_time_seconds", 1.125, 1),
        ("request_decode_time_seconds", 0.75, 1),
        ("request_prompt_tokens", 7, 1),
        ("request_generation_tokens", 4, 1),
    ):
        assert value(truth, f"vllm:{name}_sum", model_name="m") == total, name
        assert value(truth, f"vllm:{name}_count", model_name="m") == count, name
    assert value(truth, "vllm:prompt_tokens_total", model_name="m") == 7
    assert value(truth, "vllm:generation_tokens_total", model_name="m") == 4
    assert value(truth, "vllm:kv_cache_usage_perc", model_name="m") == 0
    assert value(truth, "vllm:inter_token_latency_seconds_bucket", model_name="m", le="0.15") == 1  # 0.125
    assert value(truth, "mockllm_lateness_seconds_count") == 4


def test_gauges_are_what_is_now() -> None:
    truth = make_truth()
    truth.waiting = lambda: 1
    truth.open_connections = lambda: 5
    for exchange in (whole(1), whole(2), whole(3)):
        truth.arrived(exchange)
    assert value(truth, "vllm:num_requests_running", model_name="m") == 2
    assert value(truth, "vllm:num_requests_waiting", model_name="m") == 1
    assert value(truth, "mockllm_open_connections") == 5


def test_finished_reasons_are_an_engines() -> None:
    truth = make_truth()
    exchanges = [whole(n) for n in range(1, 6)]
    for exchange, reason in zip(exchanges, ("stop", "length", "tool_calls", "stop", "length"), strict=True):
        exchange.finish_reason = reason
    exchanges[3].outcome = exchanges[4].outcome = End.CLIENT_GONE
    feed(truth, exchanges)
    found = [
        value(truth, "vllm:request_success_total", model_name="m", finished_reason=reason)
        for reason in ("stop", "length", "abort")
    ]
    assert found == [2, 1, 2]


def test_only_given_limits_count() -> None:
    truth = make_truth()
    limited = whole(1)
    limited.limit_tokens = 100
    feed(truth, [limited, whole(2)])
    assert value(truth, "vllm:request_params_max_tokens_count", model_name="m") == 1


def test_labels_are_escaped() -> None:
    truth = make_truth(model='a"b\\c\nd')
    assert value(truth, "vllm:num_requests_running", model_name='a"b\\c\nd') == 0


def test_a_histogram_counts_edges_below() -> None:
    one_by_one, at_once = Histogram((1.0, 2.0)), Histogram((1.0, 2.0))
    items = [0.5, 1.0, 1.5, 2.0, 2.5, 9.0]
    for item in items:
        one_by_one.observe(item)
    at_once.observe_many(items[::-1])
    assert one_by_one.counts == at_once.counts == [2, 2, 2]
    assert one_by_one.cumulative() == [2, 4, 6]
    assert at_once.sum == sum(items)


def test_token_buckets_end_at_the_context() -> None:
    assert steps_1_2_5(100) == (1, 2, 5, 10, 20, 50, 100)
    assert steps_1_2_5(99) == (1, 2, 5, 10, 20, 50)
