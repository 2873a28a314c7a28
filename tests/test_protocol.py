"""A connection, without sockets: order, the connection's end, timeouts, back-pressure."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from mockllm.exchange import MAX_STEPS, Exchange, Reply, Request, Timeline
from mockllm.protocol import BURST_S, LINGER_S, READ_AHEAD_BYTES
from tests.wire import Wire, World, chat, get, post, statuses

DONE = b"data: [DONE]\n\n"


# ---- requests, replies, the connection's end -----------------------------------------------------


def test_pipelined_requests_are_answered_in_order_each_when_it_is_due() -> None:
    world = World()
    wire = world.connect()
    wire.send(chat(stream=True) + get("/v1/models") + chat() + get())
    assert wire.sent.count(b"HTTP/1.1 ") == 1, "only the first head has left"
    world.advance(10.0)
    stream, models, whole, health = wire.replies()
    assert stream[2].endswith(DONE)
    assert json.loads(models[2])["object"] == "list"
    assert json.loads(whole[2])["object"] == "chat.completion"
    assert json.loads(health[2])["status"] == "healthy"
    assert world.outcomes == {"completed": 4}
    assert not wire.over


def test_any_cut_of_pipelined_requests_gives_the_same_replies() -> None:
    data = chat(stream=True) + get("/v1/models") + get("/nothing")
    for cut in range(len(data) + 1):
        world = World()
        wire = world.connect()
        wire.send(data[:cut], data[cut:])
        world.advance(10.0)
        assert statuses(wire) == [200, 200, 404]


@pytest.mark.parametrize(
    ("version", "line", "kept"),
    [
        ("1.1", None, True),
        ("1.1", "Connection: close", False),
        ("1.1", "Connection: keep-alive", True),
        ("1.0", None, False),
        ("1.0", "Connection: keep-alive", True),
    ],
)
@pytest.mark.parametrize("target", ["/health", "/nothing"])
def test_a_connection_is_kept_as_the_client_asks(version: str, line: str | None, kept: bool, target: str) -> None:
    world = World()
    wire = world.connect()
    wire.send(get(target, *([line] if line else []), version=version))
    assert wire.closed is not kept
    ((_, headers, _),) = wire.replies()
    expected = ("keep-alive" if version == "1.0" else None) if kept else "close"
    assert headers.get("connection") == expected


def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    world = World()
    wire = world.connect()
    wire.send(chat("Connection: keep-alive", stream=True, version="1.0") + get())
    world.advance(10.0)
    ((status, headers, body),) = wire.replies()
    assert (status, headers["connection"], wire.closed) == (200, "close", True)
    assert "transfer-encoding" not in headers
    assert body.endswith(DONE)


def test_head_gets_the_head_of_get_and_no_body() -> None:
    world = World()
    wire = world.connect()
    requests = [get("/v1/models"), get("/nothing")]
    wire.send(b"".join([request.replace(b"GET", b"HEAD") for request in requests]) + get("/v1/models"))
    head, missing, got = wire.replies("HEAD", "HEAD", "GET")
    assert [head[0], missing[0], got[0]] == [200, 404, 200]
    assert head[2] == missing[2] == b""
    assert head[1]["content-length"] == got[1]["content-length"] == str(len(got[2]))


def test_the_client_that_waits_is_told_to_continue_the_one_that_does_not_is_not() -> None:
    world = World(ttft_ms=0.0, itl_ms=0.0)
    request = chat("Expect: 100-continue")
    head = request[: request.index(b"\r\n\r\n") + 4]
    waits, sends = world.connect(), world.connect()
    waits.send(head)
    assert bytes(waits.sent) == b"HTTP/1.1 100 Continue\r\n\r\n"
    waits.send(request[len(head) :])
    sends.send(request)
    assert statuses(waits) == [100, 200]
    assert statuses(sends) == [200]


def test_a_body_too_large_is_refused_before_it_is_sent() -> None:
    world = World(max_body_bytes=100)
    wire = world.connect()
    wire.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n")
    assert statuses(wire) == [413]
    (record,) = world.app.truth.ledger
    assert (record.method, record.path, record.endpoint) == ("POST", "/v1/chat/completions", "/v1/chat/completions")
    assert (record.outcome, record.status) == ("refused", 413)


def test_a_refusal_comes_after_the_replies_before_it_and_nothing_after_it_is_read() -> None:
    world = World()
    wire = world.connect()
    wire.send(chat(stream=True) + b"GET / HTTP/9.9\r\nHost: x\r\n\r\n" + get())
    assert wire.sent.count(b"HTTP/1.1 ") == 1
    world.advance(10.0)
    assert statuses(wire) == [200, 505]
    assert wire.eof
    wire.send(get())
    world.advance(LINGER_S)
    assert statuses(wire) == [200, 505]
    assert wire.closed
    assert world.outcomes == {"completed": 1, "refused": 1}
    assert world.nothing_remains()


def test_a_refused_client_is_read_for_a_while_over_tls_too() -> None:
    world = World()
    wire = world.connect(tls=True)
    wire.send(b"nonsense\r\n\r\n")
    assert not wire.closed
    wire.send(b"more")
    world.advance(LINGER_S)
    assert statuses(wire) == [400]
    assert wire.closed


def test_a_refused_client_that_is_gone_already_harms_nobody() -> None:
    world = World()
    wire = world.connect()
    wire.break_pipe()
    wire.send(b"nonsense\r\n\r\n")
    assert wire.closed
    assert world.outcomes == {"client_gone": 1}
    assert world.nothing_remains()


def test_a_deep_json_body_is_the_clients_error() -> None:
    world = World()
    wire = world.connect()
    wire.send(post("/v1/chat/completions", b'{"messages":' + b"[" * 100_000))
    assert statuses(wire) == [400]
    assert world.outcomes == {"refused": 1}


# ---- timeouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trickle", [False, True])
def test_a_head_that_does_not_end_is_answered_408(trickle: bool) -> None:
    world = World(header_timeout_s=10.0)
    wire = world.connect()
    world.advance(3.0)
    for byte in get("/health", "A: " + "b" * 100)[:40]:
        wire.send(bytes([byte]))
        world.advance(0.1 if trickle else 0.0)
    world.advance(9.9 - 4.0 * trickle)
    assert not wire.sent
    world.advance(0.1)
    ((status, headers, body),) = wire.replies()
    assert (status, headers["connection"], json.loads(body)["error"]["code"]) == (408, "close", "timeout")
    (record,) = world.app.truth.ledger
    assert (record.outcome, record.method, record.path) == ("timed_out", "GET", "/health")
    world.advance(LINGER_S)
    assert world.nothing_remains()


@pytest.mark.parametrize("header_timeout_s", [0.0, 10.0])
def test_a_body_that_does_not_end_is_answered_408(header_timeout_s: float) -> None:
    world = World(header_timeout_s=header_timeout_s, body_timeout_s=20.0, keep_alive_timeout_s=0.0, write_timeout_s=0.0)
    wire = world.connect()
    wire.send(chat()[:-1])
    world.advance(header_timeout_s + 19.9)
    assert not wire.sent
    world.advance(0.2)
    assert statuses(wire) == [408]
    (record,) = world.app.truth.ledger
    assert (record.outcome, record.status, record.endpoint) == ("timed_out", 408, "/v1/chat/completions")
    world.advance(LINGER_S)
    assert world.nothing_remains()


def test_an_idle_connection_is_closed_without_a_word() -> None:
    world = World(keep_alive_timeout_s=75.0)
    fresh, used = world.connect(), world.connect()
    world.advance(50.0)
    used.send(get())
    world.advance(24.9)
    assert (fresh.closed, used.closed) == (False, False)
    world.advance(0.1)
    assert (fresh.closed, len(fresh.sent), used.closed) == (True, 0, False)
    world.advance(49.8)
    assert (fresh.closed, used.closed) == (True, False)
    world.advance(0.2)
    assert (fresh.closed, used.closed) == (True, True)
    assert world.outcomes == {"completed": 1}


@pytest.mark.parametrize("flood", [b"\r\n", b"\n\r"])
def test_empty_lines_do_not_keep_an_idle_connection_for_ever(flood: bytes) -> None:
    world = World(keep_alive_timeout_s=75.0, header_timeout_s=10.0)
    wire = world.connect()
    wire.send(b"\r")
    for _ in range(90):
        wire.send(b"\n\r" if flood == b"\n\r" else b"\n\r\n\r")
        world.advance(1.0)
    assert wire.over


def test_a_reply_that_takes_long_is_no_timeout() -> None:
    world = World(ttft_ms=1e6, keep_alive_timeout_s=1.0, header_timeout_s=1.0, body_timeout_s=1.0, write_timeout_s=1.0)
    wire = world.connect()
    wire.send(chat(stream=True))
    world.advance(2000.0)
    ((status, _, body),) = wire.replies()
    assert (status, body.endswith(DONE)) == (200, True)
    assert world.outcomes == {"completed": 1}


def test_without_timeouts_nothing_is_looked_at() -> None:
    world = World(keep_alive_timeout_s=0.0, header_timeout_s=0.0, body_timeout_s=0.0, write_timeout_s=0.0)
    wire = world.connect()
    wire.send(get()[:-2])
    assert world.scheduler.waiting == 0
    wire.send(b"\r\nnonsense\r\n\r\n")
    assert statuses(wire) == [200, 400]
    world.advance(LINGER_S)
    assert wire.closed


def test_a_client_that_reads_nothing_is_dropped_one_that_reads_slowly_is_not() -> None:
    world = World(write_timeout_s=60.0)
    stuck, slow = world.connect(room_bytes=100), world.connect(room_bytes=100)
    for wire in (stuck, slow):
        wire.send(chat(stream=True))
    for _ in range(20):
        world.advance(10.0)
        slow.take(8)
    assert stuck.closed
    assert not slow.closed
    slow.take(None)
    world.advance(10.0)
    assert statuses(slow) == [200]
    assert world.outcomes == {"completed": 1, "timed_out": 1}


# ---- back-pressure -------------------------------------------------------------------------------


def test_a_slow_reader_loses_nothing_and_no_more_is_rendered_than_it_takes() -> None:
    settings = {"output_tokens": 2000, "itl_ms": 1.0}
    world, plain = World(**settings), World(**settings)
    wire, twin = world.connect(room_bytes=1000), plain.connect()
    for each in (wire, twin):
        each.send(chat(stream=True))
    waits = 0
    while world.app.truth.in_flight:
        world.advance(0.01)
        waits += wire.get_write_buffer_size() > 0
        assert wire.get_write_buffer_size() < MAX_STEPS * 300, "one write at most waits"
        wire.take(1000)
        assert world.clock.now() < 1100.0
    assert waits > 100
    plain.advance(300.0)
    assert [json.loads(line[6:])["choices"] for line in _events(wire)] == [
        json.loads(line[6:])["choices"] for line in _events(twin)
    ]
    (record,) = world.app.truth.ledger
    assert record.outcome == "completed"
    assert record.peer_delayed > 1000


def _events(wire: Wire) -> list[bytes]:
    ((_, _, body),) = wire.replies()
    assert body.endswith(DONE)
    return body.removesuffix(DONE).split(b"\n\n")[:-1]


def test_one_stalled_reader_leaves_the_others_their_timing() -> None:
    world = World(write_timeout_s=0.0)
    stalled = world.connect(room_bytes=0)
    good = world.connect()
    for wire in (stalled, good):
        wire.send(chat(stream=True))
    world.advance(20.0)
    good_record = world.app.truth.ledger[0]
    assert (good_record.outcome, good_record.lateness_max_s) == ("completed", 0.0)
    assert len(stalled.sent) == 0
    stalled.take(None)
    world.advance(0.0)
    assert statuses(stalled) == [200]
    assert world.outcomes == {"completed": 2}


def test_no_reply_begins_while_a_hundred_continue_waits_for_the_peer() -> None:
    world = World(ttft_ms=0.0)
    wire = world.connect(room_bytes=10)
    request = chat("Expect: 100-continue", stream=True)
    cut = request.index(b"\r\n\r\n") + 4
    wire.send(request[:cut], request[cut:])
    world.advance(20.0)
    assert wire.sent == b"HTTP/1.1 1"
    wire.take(None)
    world.advance(20.0)
    assert statuses(wire) == [100, 200]


def test_a_peer_that_never_takes_its_hundred_continue_is_dropped() -> None:
    world = World(write_timeout_s=60.0)
    wire = world.connect(room_bytes=0)
    wire.send(chat("Expect: 100-continue")[:200].partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
    world.advance(130.0)
    assert wire.closed
    assert world.outcomes == {"timed_out": 1}
    assert world.nothing_remains()


def test_what_follows_a_reply_in_flight_is_read_ahead_to_a_bound_and_answered_after_it() -> None:
    world = World()
    wire = world.connect()
    wire.send(chat(stream=True))
    sent = 0
    while not wire.paused:
        wire.send(get() * 100)
        sent += 100
        assert sent * len(get()) <= READ_AHEAD_BYTES + 100 * len(get())
    world.advance(10.0)
    assert (statuses(wire), wire.paused) == ([200] * (sent + 1), False)


class Slow(World):
    """Every reply costs a tenth of a burst."""

    def __init__(self) -> None:
        super().__init__()
        self.app.handler = self._handle

    def _handle(self, request: Request, exchange: Exchange) -> Reply:
        self.clock.advance(BURST_S / 10)
        return Reply(200, b"", Timeline(1, lambda first, upto: [b"x"]), 1)


def test_a_burst_of_requests_gives_others_their_turn() -> None:
    world = Slow()
    greedy, other = world.connect(), world.connect()
    greedy.send(get() * 100)
    assert 10 < len(statuses(greedy)) < 50, "the burst ended after its time, not with the requests"
    other.send(get())
    assert statuses(other) == [200]
    greedy.send(get("/last"))
    world.advance(1.0)
    assert statuses(greedy) == [200] * 101
    ends = [record.end_s for record in world.app.truth.ledger]
    assert max(b - a for a, b in pairwise(ends)) < 2 * BURST_S
