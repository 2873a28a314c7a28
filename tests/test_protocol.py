"""A connection, without sockets: order, timeouts, back-pressure, disconnects, bugs, and what they leave behind."""

from __future__ import annotations

import json
import logging
from itertools import pairwise

import pytest

from mockllm.exchange import End, Exchange, Reply, Request, Timeline
from mockllm.playback import MAX_STEPS
from mockllm.protocol import BURST_S, LINGER_S, READ_AHEAD_BYTES
from tests.wire import Wire, World, chat, get, post

DONE = b"data: [DONE]\n\n"


def statuses(wire: Wire, *methods: str) -> list[int]:
    return [status for status, _, _ in wire.replies(*methods)]


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
    wire.send(b"HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\nHEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n" + get("/v1/models"))
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
    world = World(
        header_timeout_s=header_timeout_s, body_timeout_s=20.0, keep_alive_timeout_s=0.0, write_timeout_s=0.0
    )
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
    assert not fresh.closed
    world.advance(0.1)
    assert fresh.closed
    assert not fresh.sent
    world.advance(49.8)
    assert not used.closed
    world.advance(0.2)
    assert used.closed
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
    assert not wire.paused
    assert statuses(wire) == [200] * (sent + 1)


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


# ---- disconnects ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_disconnect_at_any_byte_frees_everything_at_once(how: str) -> None:
    data = chat(stream=True) + get()
    head_bytes = data.index(b"\r\n\r\n") + 4
    for cut in range(len(data) + 1):
        world = World()
        wire = world.connect()
        wire.send(data[:cut])
        assert world.scheduler.waiting
        getattr(wire, how)()
        assert world.nothing_remains()
        assert wire.closed
        assert world.outcomes == ({} if cut < head_bytes else {"client_gone": 1})


def test_a_disconnect_at_any_time_of_a_stream_frees_everything_at_once() -> None:
    for seconds in range(6):
        for how in ("end", "reset"):
            world = World()
            wire = world.connect(room_bytes=None if how == "reset" else 600)
            wire.send(chat(stream=True))
            world.advance(float(seconds))
            getattr(wire, how)()
            assert world.nothing_remains()
            completed = seconds >= 4 and how == "reset"
            assert world.outcomes == {"completed" if completed else "client_gone": 1}


def test_a_write_that_fails_makes_no_reply_complete() -> None:
    for request in (get(), chat(), chat(stream=True)):
        world = World()
        wire = world.connect()
        wire.send(request[:-1])
        wire.break_pipe()
        wire.send(request[-1:])
        world.advance(10.0)
        assert world.outcomes == {"client_gone": 1}
        assert world.nothing_remains()


def test_after_a_failed_write_nothing_more_is_written() -> None:
    world = World(itl_ms=0.0, ttft_ms=1000.0, output_tokens=2000)
    wire = world.connect()
    wire.send(chat(stream=True))
    wire.break_pipe()
    world.advance(1.0)
    (record,) = world.app.truth.ledger
    assert record.chunks < 2000, "the write that failed was the last"
    assert world.nothing_remains()


# ---- bugs ----------------------------------------------------------------------------------------


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(record.exc_info[1]) for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]


def boom(*_: object) -> list[bytes]:
    raise ZeroDivisionError("a bug")


def test_a_handlers_bug_is_answered_500_logged_once_and_touches_no_other(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    other = world.connect()
    other.send(chat(stream=True))
    world.app.handler = boom  # type: ignore[assignment]  # a handler with a bug
    wire = world.connect()
    wire.send(get() + get())
    world.app.handler = None
    world.advance(10.0)
    ((status, headers, body),) = wire.replies()
    assert (status, headers["connection"], json.loads(body)["error"]["code"]) == (500, "close", "internal_error")
    assert wire.closed
    assert errors(caplog) == ["a bug"]
    assert statuses(other) == [200]
    assert world.outcomes == {"completed": 1, "error": 1}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("offset_s", [0.0, 1.0])
def test_a_bug_before_the_first_byte_is_answered_500(
    caplog: pytest.LogCaptureFixture, offset_s: float, method: str
) -> None:
    world = World()
    world.app.handler = lambda request, exchange: Reply(200, b"", Timeline(1, boom, offset_s), 5)
    wire = world.connect()
    wire.send(get().replace(b"GET", method.encode()) + get())
    world.advance(2.0)
    ((status, headers, body),) = wire.replies(method)
    assert (status, headers["connection"], body == b"") == (500, "close", method == "HEAD")
    assert "date" in headers
    assert errors(caplog) == ["a bug"]
    assert world.outcomes == {"error": 1}
    assert world.nothing_remains()


def test_a_bug_in_the_plan_itself_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.app.handler = lambda request, exchange: Reply(200, b"", Timeline(1, boom, after_s=()), 5)
    wire = world.connect()
    wire.send(get())
    assert statuses(wire) == [500]
    assert len(errors(caplog)) == 1


def test_a_bug_in_the_midst_of_a_stream_cuts_it_so_that_nobody_takes_it_for_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def render(first: int, upto: int) -> list[bytes]:
        return [b"data: 1\n\n"] if first == 0 else boom()

    world = World()
    world.app.handler = lambda request, exchange: Reply(200, b"", Timeline(2, render, after_s=(0.0, 1.0)))
    wire, other = world.connect(), world.connect()
    wire.send(get())
    world.app.handler = None
    other.send(chat(stream=True))
    world.advance(10.0)
    assert wire.closed
    assert wire.sent.endswith(b"data: 1\n\n\r\n")
    assert errors(caplog) == ["a bug"]
    assert statuses(other) == [200]
    assert world.outcomes == {"completed": 1, "error": 1}
    other.end()
    assert world.nothing_remains()


# ---- limits and the end --------------------------------------------------------------------------


def test_a_connection_too_many_is_told_so_and_makes_no_room_scarce() -> None:
    world = World(max_connections=2)
    one, two = world.connect(), world.connect()
    turned_away = [world.connect() for _ in range(3)]
    for wire in turned_away:
        ((status, headers, body),) = wire.replies()
        assert (status, headers["connection"], json.loads(body)["error"]["code"]) == (503, "close", "overloaded")
        assert wire.eof
    one.end()
    three = world.connect()
    for wire in (two, three):
        wire.send(get())
        assert statuses(wire) == [200]
    assert statuses(world.connect()) == [503]
    world.advance(LINGER_S)
    assert len(world.service.connections) == 2
    assert world.service.turned_away == 0
    metrics = world.app.truth.metrics().decode()
    assert 'mockllm_requests_total{endpoint="",outcome="refused",status="503"} 4' in metrics


def test_at_the_end_idle_connections_close_and_requests_that_have_begun_are_answered() -> None:
    world = World()
    idle, streaming, sending, dawdling = (world.connect() for _ in range(4))
    idle.send(get())
    streaming.send(chat(stream=True))
    sending.send(chat()[:-1])
    dawdling.send(chat()[:20])
    world.service.closing = True
    for connection in tuple(world.service.connections):
        connection.close_when_idle()
    world.settle()
    assert (idle.closed, dawdling.closed) == (True, True)
    sending.send(chat()[-1:])
    world.advance(10.0)
    for wire in (streaming, sending):
        assert statuses(wire) == [200]
        assert wire.closed
    assert world.outcomes == {"completed": 3}
    assert world.nothing_remains()


def test_what_is_cut_at_the_end_is_counted_and_looks_cut() -> None:
    world = World()
    streaming, sending = world.connect(), world.connect()
    streaming.send(chat(stream=True))
    sending.send(chat()[:-1])
    world.advance(2.0)
    for connection in tuple(world.service.connections):
        connection.abort(End.ABORTED)
    world.settle()
    assert world.outcomes == {"aborted_by_shutdown": 2}
    assert b"[DONE]" not in streaming.sent
    assert not streaming.sent.endswith(b"0\r\n\r\n")
    assert world.nothing_remains()
