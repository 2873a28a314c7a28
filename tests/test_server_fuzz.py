"""Any bytes, cut anywhere, any reader: well-formed replies or a close, and nothing stays behind."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import h11
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.exchange import End, Exchange
from tests.wire import Wire, World, chat, get, one_reply, post

WHOLE = [
    get(),
    get("/v1/models"),
    get("/nothing"),
    get("/v1/models", "Connection: close"),
    get("/v1/models", version="1.0"),
    b"HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    chat(),
    chat(stream=True),
    chat(stream=True, version="1.0"),
    chat("Expect: 100-continue", stream=True),
    post("/v1/completions", b'{"prompt":"x","stream":true,"max_tokens":3}'),
    post("/v1/responses", b'{"input":"x","stream":true}'),
    post("/v1/chat/completions", b"[" * 3000),
    post("/v1/chat/completions", b'{"messages":[{"role":"user","content":"\\ud800"}]}'),
    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;a=b\r\n{"pro\r\n9\r\nmpt":"x"}\r\n0\r\nA: b\r\n\r\n',
]
BROKEN = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\0", b":", b"\xff", b"#", b"0\r\n\r\n", b"X" * 300),
    *(b"HTTP/1.1", b"HTTP/9.9", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: y\r\n", b"Expect: 100-continue\r\n"),
    *(b"CONNECT a:1 HTTP/1.1\r\n", b"GET http://x/health HTTP/1.1\r\n", b"POST /v1/responses HTTP/1.1\r\n"),
]


def splice(pair: tuple[bytes, list[tuple[int, bytes]]]) -> bytes:
    data, insertions = pair
    for at, piece in insertions:
        at %= len(data) + 1
        data = data[:at] + piece + data[at:]
    return data


insertions = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(BROKEN)), max_size=2)
message = st.tuples(st.sampled_from(WHOLE), insertions)
requests = st.one_of(st.sampled_from(WHOLE), message.map(splice), st.binary(max_size=40))
stream_of_bytes = st.lists(requests, min_size=1, max_size=5).map(b"".join)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 500)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 3.0, 30.0])),
        st.tuples(st.just("take"), st.integers(1, 2000)),
    ),
    max_size=30,
)
endings = st.sampled_from(["stay", "end", "reset", "break"])


class Kept(logging.Handler):
    """Keeps the messages."""

    messages: list[str]

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def no_errors_logged() -> Iterator[None]:
    handler = Kept(logging.WARNING)
    logger = logging.getLogger("mockllm")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert handler.messages == []


@settings(max_examples=300, deadline=None)
@given(stream_of_bytes, actions, endings, st.sampled_from([None, 0, 50, 700]), st.booleans())
def test_any_bytes_lead_to_well_formed_replies_or_a_close_and_nothing_stays(
    data: bytes, moves: list[tuple[str, int]], ending: str, room_bytes: int | None, fast: bool
) -> None:
    with no_errors_logged():
        world = World(max_header_bytes=400, max_request_line_bytes=120, max_body_bytes=5000, fast_parser=fast)
        wire = world.connect(room_bytes=room_bytes)
        for move, amount in moves:
            if move == "send":
                wire.send(data[: int(amount)])
                data = data[int(amount) :]
            elif move == "wait":
                world.advance(amount)
            else:
                wire.take(int(amount))
        wire.send(data)
        if ending == "break":
            wire.break_pipe()
        elif ending != "stay":
            getattr(wire, ending)()
            assert world.nothing_remains()
        world.advance(1000.0)
        assert wire.closed, "stuck"
        assert world.nothing_remains()
        assert sum(world.outcomes.values()) == sum(1 for exchange in world.ended if exchange.seq)
        check_replies(wire, world.ended)


def check_replies(wire: Wire, exchanges: list[Exchange]) -> None:
    """What the client got are the replies of the exchanges, in order, each whole or the last one."""
    data = bytes(wire.sent)
    for exchange in exchanges:
        while data.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
            data = data.partition(b"\r\n\r\n")[2]
        try:
            (status, _, _), data = one_reply(data, exchange.method or "GET", over=True)
        except (AssertionError, h11.RemoteProtocolError):
            assert exchange.outcome in (End.CLIENT_GONE, End.TIMED_OUT), exchange.outcome
            assert exchange is exchanges[-1]
            return
        assert status == exchange.status
    assert data in (b"", b"HTTP/1.1 100 Continue\r\n\r\n"[: len(data)])
