"""When everything leaves, to the nanosecond, in virtual time."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import pytest

from mockllm import Config, VirtualServer
from mockllm.virtual import VirtualReply

CHAT = "/v1/chat/completions"


def ask(server: VirtualServer, target: str = CHAT, **fields: Any) -> VirtualReply:
    prompt: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell me about the sea."}]}
    if target == "/v1/completions":
        prompt = {"prompt": "Tell me about the sea."}
    elif target == "/v1/responses":
        prompt = {"input": "Tell me about the sea."}
    reply = server.post(target, {"model": "m"} | prompt | fields)
    server.run()
    return reply


def stream(target: str = CHAT, *, settings: dict[str, Any] | None = None, **fields: Any) -> VirtualReply:
    config = Config(**{"ttft_ms": 100.0, "itl_ms": 10.0, "output_tokens": 4} | (settings or {}))
    return ask(VirtualServer(config), target, stream=True, **fields)


def times(reply: VirtualReply) -> list[float]:
    return [at_s for at_s, _ in reply.events]


def test_a_chat_stream_leaves_token_by_token() -> None:
    reply = stream(stream_options={"include_usage": True})
    assert reply.head_s == 0.0, "the head leaves at arrival, as vLLM's does"
    # The role with the first token; the finish, usage and [DONE] with the last.
    assert times(reply) == [0.1, 0.1, 0.11, 0.12, 0.13, 0.13, 0.13, 0.13]


def test_a_completions_stream_leaves_token_by_token() -> None:
    assert times(stream("/v1/completions")) == [0.1, 0.11, 0.12, 0.13, 0.13, 0.13]


def test_a_responses_stream_opens_with_the_head_and_closes_with_the_last_token() -> None:
    reply = stream("/v1/responses")
    kinds = [(at_s, json.loads(data)["type"].removeprefix("response.")) for at_s, data in reply.events]
    assert kinds == [
        (0.0, "created"),
        (0.0, "in_progress"),
        (0.1, "output_item.added"),
        (0.1, "content_part.added"),
        (0.1, "output_text.delta"),
        (0.11, "output_text.delta"),
        (0.12, "output_text.delta"),
        (0.13, "output_text.delta"),
        (0.13, "output_text.done"),
        (0.13, "content_part.done"),
        (0.13, "output_item.done"),
        (0.13, "completed"),
    ]


def test_responses_opening_events_can_wait_for_the_first_token() -> None:
    assert times(stream("/v1/responses", settings={"opening_events": "with-first-token"}))[:4] == [0.1] * 4


@pytest.mark.parametrize("target", [CHAT, "/v1/completions", "/v1/responses"])
def test_the_head_can_wait_for_the_first_token(target: str) -> None:
    reply = stream(target, settings={"head_at": "first-token"})
    assert reply.head_s == 0.1
    assert times(reply)[0] == 0.1


@pytest.mark.parametrize(
    ("policy", "role_at"), [("with-first-token", [0.1]), ("at-head", [0.0]), ("none", [])], ids=lambda value: str(value)
)
def test_the_role_chunk_leaves_when_told(policy: str, role_at: list[float]) -> None:
    reply = stream(settings={"role_chunk": policy})
    chunks = [(at_s, json.loads(data)) for at_s, data in reply.events if data != "[DONE]"]
    assert [at_s for at_s, chunk in chunks if chunk["choices"][0]["delta"].get("role")] == role_at
    assert [at_s for at_s, chunk in chunks if chunk["choices"][0]["delta"].get("content")] == [0.1, 0.11, 0.12, 0.13]


def test_a_whole_reply_is_due_with_its_last_token() -> None:
    reply = ask(VirtualServer(Config(ttft_ms=100.0, itl_ms=10.0, output_tokens=4)))
    assert [at_s for at_s, _ in reply.chunks] == [0.13]


def test_request_latency_is_the_whole_of_a_whole_reply_and_not_of_a_stream() -> None:
    config = Config(request_latency=1.25, ttft_ms=100.0, itl_ms=10.0, output_tokens=2)
    assert [at_s for at_s, _ in ask(VirtualServer(config)).chunks] == [1.25]
    assert times(ask(VirtualServer(config), stream=True))[-1] == 0.11


def test_a_quarter_of_a_millisecond_is_a_quarter_of_a_millisecond() -> None:
    reply = stream(settings={"ttft_ms": 0.25, "itl_ms": 0.25, "output_tokens": 10_000})
    arrivals = [at_s for at_s, chunk in reply.events if '"content":"' in chunk and '"role"' not in chunk]
    assert len(arrivals) == 10_000
    assert arrivals == [round(0.00025 * k, 9) for k in range(1, 10_001)]


def test_zero_is_at_once() -> None:
    assert set(times(stream(settings={"ttft_ms": 0.0, "itl_ms": 0.0}))) == {0.0}


def test_samples_have_the_mean_and_the_deviation_asked_for() -> None:
    server = VirtualServer(Config(ttft_ms=200.0, ttft_ms_std=20.0, itl_ms=10.0, itl_ms_std=1.5, output_tokens=50))
    firsts, gaps = [], []
    for _ in range(400):  # one body for ever still draws a distribution
        arrivals = times(ask(server, stream=True))[1:51]
        firsts.append(arrivals[0])
        gaps += [b - a for a, b in pairwise(arrivals)]
    # Four standard errors of the mean; the draws are keyed, so this never changes from run to run.
    assert fmean(firsts) == pytest.approx(0.2, abs=4 * 0.02 / 20)
    assert stdev(firsts) == pytest.approx(0.02, rel=0.15)
    assert fmean(gaps) == pytest.approx(0.01, abs=4 * 0.0015 / 140)
    assert stdev(gaps) == pytest.approx(0.0015, rel=0.05)


def test_a_deviation_above_the_mean_is_clamped_at_zero_and_never_early() -> None:
    server = VirtualServer(Config(ttft_ms=1.0, ttft_ms_std=100.0, itl_ms=1.0, itl_ms_std=100.0, output_tokens=30))
    seen = [times(ask(server, stream=True)) for _ in range(50)]
    assert all(arrivals == sorted(arrivals) for arrivals in seen)
    assert all(arrivals[0] >= 0.0 for arrivals in seen)
    assert any(arrivals[0] == 0.0 for arrivals in seen)


def test_whole_reply_latencies_are_drawn_too() -> None:
    server = VirtualServer(Config(request_latency=1.0, request_latency_std=0.25))
    seen = [ask(server).chunks[0][0] for _ in range(200)]
    assert fmean(seen) == pytest.approx(1.0, abs=4 * 0.25 / 14)
    assert stdev(seen) == pytest.approx(0.25, rel=0.2)


def test_draws_repeat_in_another_server_and_follow_the_key_header() -> None:
    config = Config(ttft_ms=200.0, ttft_ms_std=20.0, output_tokens=2)
    first, second = VirtualServer(config), VirtualServer(config)
    assert [times(ask(first, stream=True))[0] for _ in range(5)] == [
        times(ask(second, stream=True))[0] for _ in range(5)
    ]
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
    keyed = VirtualServer(Config(ttft_ms=200.0, ttft_ms_std=20.0, output_tokens=2, key_header="X-Request-Id"))
    replies = [keyed.post(CHAT, body, {"x-request-id": key}) for key in ("a", "b", "a")]
    keyed.run()
    a, b, again = [times(reply)[0] for reply in replies]
    assert a == again != b


@pytest.mark.parametrize("target", [CHAT, "/v1/completions", "/v1/responses"])
def test_the_planned_values_stand_in_the_head(target: str) -> None:
    headers = stream(target).headers
    assert float(headers["x-mockllm-ttft-ms"]) == 100.0
    assert float(headers["x-mockllm-itl-ms"]) == 10.0
    assert headers["x-mockllm-output-tokens"] == "4"
    assert headers["x-mockllm-seq"] == "1"
    silent = stream(target, settings={"truth_headers": False}).headers
    assert not [name for name in silent if name.startswith("x-mockllm-")]


def test_zero_is_the_arrival_of_the_last_byte() -> None:
    server = VirtualServer(Config(ttft_ms=100.0, itl_ms=0.0, output_tokens=1))
    client = server.connect()
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True}).encode()
    wire = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    client.send(wire[:40])
    server.advance(1.0)
    client.send(wire[40:-1])
    server.advance(1.0)
    client.send(wire[-1:])
    server.run()
    (record,) = server.ledger
    assert record.first_byte_s == 1000.0
    assert record.arrival_s == 1002.0
    assert [round(at_s - 1002.0, 9) for at_s, data in client.received if b"data:" in data] == [0.1]
