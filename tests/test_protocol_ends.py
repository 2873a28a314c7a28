"""How connections end, without sockets: disconnects, bugs, too many of them, the server's own end; nothing stays."""

from __future__ import annotations

import json
import logging

import pytest

from mockllm.exchange import End, Reply, Timeline
from mockllm.protocol import LINGER_S
from tests.wire import World, chat, get, statuses

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
