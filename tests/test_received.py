"""The last requests as they came."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm import Config, VirtualServer
from mockllm.exchange import Exchange, Request
from mockllm.truth.received import HEAD_BYTES, Received
from tests.said import CHAT, MESSAGES, body_of, send

SETTINGS: dict[str, Any] = {"ttft_ms": 0, "itl_ms": 0, "output_tokens": 3, "log_level": "error"}


@pytest.fixture
def server() -> VirtualServer:
    return VirtualServer(Config(**SETTINGS))


def test_what_was_sent(server: VirtualServer) -> None:
    body = body_of(CHAT, "Grüße")
    send(server, CHAT + "?a=b", body, {"X-Request-Id": "r1", "User-Agent": "test"})
    (request,) = server.requests
    assert (request.method, request.path, request.query, request.request_id) == ("POST", CHAT, "a=b", "r1")
    assert request.json() == body
    assert request.headers["user-agent"] == "test"
    assert request.seq == server.ledger[-1].seq


@pytest.mark.parametrize("header", ["Authorization", "X-Api-Key", "Api-Key", "Proxy-Authorization", "Cookie"])
def test_keys_are_hidden(server: VirtualServer, header: str) -> None:
    send(server, CHAT, body_of(CHAT), {header: "Bearer secret"})
    assert server.requests[0].headers[header.lower()] == "***"
    assert "secret" not in str(server.requests)
    assert b"secret" not in server.get(f"/mockllm/requests/{server.ledger[-1].seq}").body


def test_those_that_were_refused_are_kept_too(server: VirtualServer) -> None:
    send(server, CHAT, {"model": "m"})
    send(server, "/v1/nowhere", {"a": 1})
    send(server, MESSAGES, body_of(MESSAGES))
    assert [request.path for request in server.requests] == [CHAT, "/v1/nowhere", MESSAGES]


def test_those_without_a_body_and_questions_about_the_server_are_not(server: VirtualServer) -> None:
    server.get("/v1/models")
    server.post("/mockllm/reset", {"a": 1})
    assert server.requests == ()


def test_a_request_in_flight_is_there_already() -> None:
    server = VirtualServer(Config(**SETTINGS | {"ttft_ms": 1000}))
    server.post(CHAT, body_of(CHAT))
    assert len(server.requests) == 1
    assert len(server.ledger) == 0


@pytest.mark.parametrize(("kept", "size"), [(None, 100), (5, 5), (0, 0)])
def test_so_many_are_kept(kept: int | None, size: int) -> None:
    server = VirtualServer(Config(keep_bodies=kept, **SETTINGS))
    for number in range(size + 3):
        send(server, CHAT, body_of(CHAT, str(number)))
    texts = [request.json()["messages"][0]["content"] for request in server.requests]
    assert texts == [str(number) for number in range(3, size + 3)]


def test_bytes_are_bounded_but_the_newest_is_always_there() -> None:
    received = Received(100, most_bytes=10 * (HEAD_BYTES + 500))
    for seq, size in enumerate([500] * 30 + [10**6, 500]):
        request = Request("POST", "/", "", {}, bytes(size), 0.0, 0.0)
        received.add(request, Exchange(seq, "POST", "/", 0.0, 0.0))
        kept = received.all()
        assert kept[-1].seq == seq
        assert len(kept) == 1 or sum(len(each.body) + HEAD_BYTES for each in kept) <= 10 * (HEAD_BYTES + 500)
    assert [each.seq for each in received.all()] == [31]
    assert received.find(31) == received.all()[0]
    assert received.find(30) is None


class TestSingleRecord:
    def test_it_has_the_request(self, server: VirtualServer) -> None:
        body = body_of(CHAT, "Hi", mockllm={"text": "Ho"})
        send(server, CHAT, body, {"X-Request-Id": "r1"})
        record = server.get("/mockllm/requests/r1").json()
        assert (record["planned_tokens"], record["request"]["body"]) == (1, body)
        assert {"method", "path", "query", "headers", "body"} == set(record["request"])
        assert "request" not in server.get("/mockllm/requests").json()

    def test_a_body_that_is_no_json_is_a_text(self, server: VirtualServer) -> None:
        for number, (sent, shown) in enumerate([(b'{"a', '{"a'), (b"\xff\x00", "\ufffd\x00")], 1):
            server.post(CHAT, sent)
            assert server.get(f"/mockllm/requests/{number}").json()["request"]["body"] == shown

    def test_it_goes_without_where_none_is_kept(self) -> None:
        server = VirtualServer(Config(keep_bodies=0, **SETTINGS))
        send(server, CHAT, body_of(CHAT))
        assert "request" not in server.get("/mockllm/requests/1").json()
