"""When faulty replies come, exactly: the server in virtual time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mockllm import Config, VirtualServer
from mockllm.virtual import VirtualReply

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
PLANNED = [0.1, 0.11, 0.12, 0.13, 0.14]
"""When the five tokens are due."""


def asked(fault: dict[str, Any], *, stream: bool = True, most_s: float = 100) -> tuple[VirtualServer, VirtualReply]:
    settings = {"ttft_ms": 100, "itl_ms": 10, "output_tokens": 5, "faults": [fault]}
    virtual = VirtualServer(msgspec.convert(settings, Config))
    reply = virtual.post(CHAT, BODY | {"stream": stream})
    virtual.advance(most_s)
    return virtual, reply


def token_times(reply: VirtualReply) -> list[float]:
    return [at_s for at_s, data in reply.events if '"content":"' in data and '"content":""' not in data]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kind": "ttft", "seconds": 2}, [2.1, 2.11, 2.12, 2.13, 2.14]),
        ({"kind": "stall", "seconds": 3, "after_tokens": 2}, [0.1, 0.11, 3.12, 3.13, 3.14]),
        ({"kind": "stall", "seconds": 3, "after_tokens": 0}, [3.1, 3.11, 3.12, 3.13, 3.14]),
        ({"kind": "stall", "seconds": 3, "after_tokens": 99}, [0.1, 0.11, 0.12, 0.13, 3.14]),
        ({"kind": "comments"}, PLANNED),
        ({"kind": "reorder", "after_tokens": 1}, [0.1, 0.12, 0.12, 0.13, 0.14]),
        ({"kind": "slow-head", "seconds": 1}, [1.0] * 5),
        ({"kind": "reset", "after_tokens": 3}, PLANNED[:3]),
        ({"kind": "stall", "after_tokens": 3}, PLANNED[:3]),
        ({"kind": "error", "after_tokens": 3}, PLANNED[:3]),
    ],
)
def test_when_tokens_come(fault: dict[str, Any], expected: list[float]) -> None:
    virtual, reply = asked(fault)
    assert token_times(reply) == expected
    assert virtual.statistics().lateness.max_s < 1e-9  # what was wanted is not late


def test_a_whole_reply_is_late_by_as_much() -> None:
    for fault in ({"kind": "ttft", "seconds": 2}, {"kind": "stall", "seconds": 2}):
        assert [at_s for at_s, _ in asked(fault, stream=False)[1].chunks] == [2.14]
    assert asked({"kind": "status", "status": 500, "delay_s": 2})[1].head_s == 2.0


@pytest.mark.parametrize(
    ("fault", "end_s"),
    [
        ({"kind": "close"}, 0.0),
        ({"kind": "close", "delay_s": 5}, 5.0),
        ({"kind": "close", "after_tokens": 2}, 0.12),
        ({"kind": "reset", "after_tokens": 2, "delay_s": 5}, 5.12),
        ({"kind": "reset", "after_tokens": 0}, 0.1),
        ({"kind": "reset", "at": "after-head"}, 0.0),
        ({"kind": "no-last-chunk"}, 0.14),
    ],
)
def test_when_the_connection_ends(fault: dict[str, Any], end_s: float) -> None:
    virtual, reply = asked(fault)
    (record,) = virtual.ledger
    assert record.end_s - record.arrival_s == pytest.approx(end_s)
    assert reply.closed
    assert (record.outcome, record.close_reason) == ("faulted", "")


def test_a_trickle_is_even() -> None:
    settings = {"ttft_ms": 0, "output_tokens": 5}
    virtual = VirtualServer(msgspec.convert(settings, Config))
    client = virtual.connect()
    reply = client.request("POST", CHAT, BODY, {"x-mockllm-fault": "kind=trickle,piece_bytes=100,gap_ms=10"})
    virtual.advance(100)
    times = [at_s for at_s, _ in client.received]
    assert {len(data) for _, data in client.received[:-1]} == {100}
    assert times == pytest.approx([times[0] + 0.01 * number for number in range(len(times))])
    assert reply.complete
    assert reply.json()["usage"]["completion_tokens"] == 5


def test_a_stall_for_ever_ends_with_the_client_and_stands_as_a_fault() -> None:
    virtual = VirtualServer(Config(ttft_ms=100))
    client = virtual.connect()
    client.request("POST", CHAT, BODY | {"stream": True}, {"x-mockllm-fault": "kind=stall,after_tokens=0"})
    virtual.at(60, client.hang_up)
    virtual.run()
    (record,) = virtual.ledger
    assert (record.outcome, record.close_reason, record.tokens) == ("faulted", "client_gone", 0)
    assert record.end_s - record.arrival_s == pytest.approx(60)


def test_a_slow_client_gets_all_bytes_before_the_end() -> None:
    virtual = VirtualServer(Config(ttft_ms=0, itl_ms=0, output_tokens=5))
    client = virtual.connect()
    client.stall()
    reply = client.request("POST", CHAT, BODY | {"stream": True}, {"x-mockllm-fault": "kind=close,after_tokens=3"})
    virtual.at(1, client.resume)
    virtual.advance(10)
    assert len(token_times(reply)) == 3
    assert reply.closed


def test_polls_and_records_meet_no_fault_of_the_servers() -> None:
    virtual = VirtualServer(msgspec.convert({"faults": [{"kind": "status", "status": 500}]}, Config))
    for path in ("/health", "/v1/models", "/metrics", "/mockllm/stats", "/mockllm/requests"):
        assert virtual.get(path).status == 200
    assert virtual.post("/v1/embeddings", {"model": "m", "input": "x"}).status == 500
    assert virtual.get("/mockllm/stats", {"x-mockllm-fault": "kind=reset"}).status == 200


def test_a_refused_request_can_be_struck_too() -> None:
    virtual = VirtualServer(msgspec.convert({"faults": [{"kind": "status", "status": 503}]}, Config))
    assert virtual.post(CHAT, b"no JSON").status == 503
    assert virtual.ledger[0].outcome == "faulted"


def test_requests_may_be_kept_from_asking() -> None:
    virtual = VirtualServer(Config(overrides=False, output_tokens=1, ttft_ms=0))
    assert virtual.post(CHAT, BODY, {"x-mockllm-fault": "kind=status,status=500"}).status == 200
    assert virtual.post(CHAT, BODY | {"mockllm": {"fault": {"kind": "status", "status": 500}}}).status == 200
    assert virtual.post("/v1/embeddings", {"input": "x", "mockllm": {"fault": "kind=reset"}}).status in (200, 400)
