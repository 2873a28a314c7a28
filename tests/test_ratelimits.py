"""Rate limits: a sliding window against a plain list, and what the server says of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm import Config, VirtualServer
from mockllm.app.ratelimits import SLOT_S, WINDOW_S, Window
from mockllm.faults import duration

CHAT = "/v1/chat/completions"


def body(words: int = 1, **fields: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": "a " * words}], **fields}


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5)), max_size=80), st.integers(5, 20))
def test_a_window_is_the_sum_of_the_last_minute(steps: list[tuple[float, int]], limit: int) -> None:
    window, log, now = Window(limit), list[tuple[float, int]](), 1000.0
    for wait_s, amount in steps:
        now += wait_s
        used = window.used(now)
        surely = sum(n for at, n in log if at > now - WINDOW_S + SLOT_S)
        perhaps = sum(n for at, n in log if at > now - WINDOW_S)
        assert surely <= used <= perhaps
        if used + amount <= limit:
            window.use(now, amount)
            log.append((now, amount))
        else:
            wait_s = window.wait_s(now, amount)
            assert window.used(now) == used
            assert 0 < wait_s <= WINDOW_S
            later = Window(limit)
            for at, n in log:
                later.use(at, n)
            assert later.used(now + wait_s * 1.000001) + amount <= limit
    assert window.reset_s(now) <= WINDOW_S
    assert window.used(now + WINDOW_S + SLOT_S) == 0


def test_a_key_costs_little_at_high_rates() -> None:
    window = Window(1_000_000)
    for number in range(200_000):
        window.used(number / 2000)
        window.use(number / 2000, 1)
    assert len(window._entries) <= WINDOW_S / SLOT_S + 1


def test_requests_come_back_after_a_minute() -> None:
    virtual = VirtualServer(Config(rpm=2, output_tokens=1, ttft_ms=0))
    statuses = []
    for at_s in (0, 10, 20, 59, 60.5, 61, 70.5):
        virtual.at(at_s, lambda: statuses.append(virtual.post(CHAT, body())))
    virtual.run()
    assert [reply.status for reply in statuses] == [200, 200, 429, 429, 200, 429, 200]
    refused = statuses[2]
    assert refused.headers["retry-after"] == "40"
    assert refused.headers["retry-after-ms"] == "40000"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert refused.headers["x-ratelimit-reset-requests"] == "50s"
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("requests", "rate_limit_exceeded")
    assert "Limit 2, Used 2, Requested 1. Please try again in 40s." in error["message"]
    assert [record.outcome for record in virtual.ledger].count("refused") == 3


def test_tokens_are_prompt_and_limit() -> None:
    virtual = VirtualServer(Config(tpm=1000, output_tokens=5))
    reply = virtual.post(CHAT, body(max_tokens=100))
    virtual.run()
    prompt = reply.json()["usage"]["prompt_tokens"]
    assert reply.headers["x-ratelimit-limit-tokens"] == "1000"
    assert reply.headers["x-ratelimit-remaining-tokens"] == str(900 - prompt)
    reply = virtual.post(CHAT, body(max_tokens=100, n=2))
    virtual.run()
    assert reply.headers["x-ratelimit-remaining-tokens"] == str(700 - 2 * prompt)
    reply = virtual.post(CHAT, body(max_tokens=800))
    virtual.run()
    assert (reply.status, reply.json()["error"]["type"]) == (429, "tokens")
    assert virtual.ledger[-1].planned_tokens == 0
    reply = virtual.post(CHAT, body())  # no limit: what it answers
    virtual.run()
    assert reply.headers["x-ratelimit-remaining-tokens"] == str(695 - 3 * prompt)


def test_a_request_larger_than_the_limit_is_told_so() -> None:
    virtual = VirtualServer(Config(tpm=100))
    reply = virtual.post(CHAT, body(max_tokens=1000))
    virtual.run()
    assert reply.status == 429
    assert "retry-after" not in reply.headers
    assert re.search(r"Request too large for m on tokens per min \(TPM\): Limit 100", reply.json()["error"]["message"])


def test_keys_have_windows_of_their_own_and_faults_count() -> None:
    virtual = VirtualServer(Config(rpm=1, output_tokens=1, ttft_ms=0))
    replies = [
        virtual.post(CHAT, body(), headers)
        for headers in (
            {"authorization": "Bearer a"},
            {"authorization": "Bearer b"},
            {"x-api-key": "c", "x-mockllm-fault": "kind=content-type"},
            {"x-api-key": "c"},
            {},
            {},
        )
    ]
    virtual.run()
    assert [reply.status for reply in replies] == [200, 200, 200, 429, 200, 429]
    assert replies[2].headers["x-ratelimit-remaining-requests"] == "0"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.02, "20ms"), (0.0001, "1ms"), (1, "1s"), (7.66, "7.66s"), (59.9999, "1m0s"), (360, "6m0s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.integers(0, 100_000_000))
def test_durations_are_read_back(ms: int) -> None:
    found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?|(\d+)ms", duration(ms / 1000))
    assert found
    hours, minutes, seconds, only_ms = (float(part or 0) for part in found.groups())
    assert round(((hours * 60 + minutes) * 60 + seconds) * 1000 + only_ms) == ms
