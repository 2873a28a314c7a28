"""The benchmarks' own client: a right reply is read however it is cut, a wrong one is told from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.agree import Record, Times, compare
from bench.load import MARK, Load, request_parts
from bench.probe import Seen, distribution
from bench.reference.floor import Canned
from bench.wire import ReplyReader, WrongReplyError
from mockllm.config import Config
from mockllm.virtual import VirtualServer

TOKENS = 5
STREAM = Canned(TOKENS, stream=True, close=False).whole
WHOLE = Canned(TOKENS, stream=False, close=False).whole
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def read(raw: bytes, stream: bool, size: int) -> ReplyReader:
    reader = ReplyReader(stream)
    for start in range(0, len(raw), size):
        assert not reader.complete
        reader.feed(raw[start : start + size])
    return reader


@given(st.integers(1, len(STREAM)), st.booleans())
def test_a_reply_is_read_in_any_pieces(size: int, stream: bool) -> None:
    raw = STREAM if stream else WHOLE
    reader = read(raw, stream, size)
    assert reader.complete
    assert reader.bytes_read == len(raw)
    assert reader.tokens == (TOKENS if stream else 0)


def test_the_server_s_own_reply_is_read() -> None:
    server = VirtualServer(Config())
    client = server.connect()
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 7, "ignore_eos": True, "stream": True}
    client.request("POST", "/v1/chat/completions", body)
    server.run()
    reader = read(b"".join([data for _, data in client.received]), True, 11)
    assert (reader.complete, reader.tokens) == (True, 7)


@pytest.mark.parametrize(
    "raw",
    [
        STREAM.replace(b" 200 OK", b" 503 No"),
        STREAM.replace(b"data: [DONE]", b"data: [GONE]"),
        STREAM.replace(b"e\r\ndata: [DONE]\n\n\r\n", b""),
        STREAM.replace(b"data: {", b"info: {", 1),
        STREAM.replace(b'"choices"', b'"voices!"', 1),
        STREAM.replace(b"}\n\n\r\n", b"}\n\n\n\n", 1),
        STREAM + b"x",
        WHOLE + b"x",
        WHOLE.replace(b"content-length", b"content-height"),
    ],
)
def test_a_wrong_reply_is_noticed(raw: bytes) -> None:
    with pytest.raises((WrongReplyError, ValueError)):
        read(raw, raw.startswith(STREAM[:80]) or b"event-stream" in raw, len(raw))


def test_a_cut_reply_is_not_complete() -> None:
    assert not read(STREAM[:-1], True, 1000).complete
    assert not read(WHOLE[:-1], False, 1000).complete


def test_each_request_can_have_a_number_of_its_own() -> None:
    assert len(request_parts(Load(1, b"{}"))) == 1
    before, after = request_parts(Load(1, b"{}", own_ids=True))
    assert before.endswith(b"x-request-id: ")
    assert after.endswith(b"\r\n\r\n{}")
    body = b'"%b"' % MARK.encode()
    before, after = request_parts(Load(1, body))
    assert b"content-length: 34\r\n" in before
    assert (before[-1:], after) == (b'"', b'"')


def test_a_distribution_is_read_off_the_sorted_values() -> None:
    values = distribution([float(value) for value in range(1000, 0, -1)])
    assert (values.count, values.min, values.p50, values.p99, values.p999, values.max) == (
        1000,
        1,
        501,
        991,
        1000,
        1000,
    )
    assert distribution([]).count == 0


# ---- the ledger against the client ---------------------------------------------------------------

SEEN = Seen("a", 10.0, 10.0, [10.1013, 10.1213], [0.0001, 0.0001], 10.2)
RECORD = Record(1, "a", "completed", 2, 10.0002, Times([0.1, 0.12], [0.101, 0.121]))


def test_two_sides_that_agree() -> None:
    contradictions, parts = compare([SEEN], [RECORD], 0.1, 0.02)
    assert contradictions == []
    assert parts.request_way.p50 == pytest.approx(0.0002)
    assert parts.server.max == pytest.approx(0.001)
    assert parts.reply_way.max == pytest.approx(0.0, abs=1e-9)
    assert parts.probe.max == 0.0001
    assert parts.whole.max == pytest.approx(0.0013)


@pytest.mark.parametrize(
    "record",
    [
        Record(1, "b", "completed", 2, 10.0002, RECORD.token_times),
        Record(1, "a", "client_gone", 2, 10.0002, RECORD.token_times),
        Record(1, "a", "completed", 3, 10.0002, RECORD.token_times),
        Record(1, "a", "completed", 2, 9.9998, RECORD.token_times),
        Record(1, "a", "completed", 2, 10.0002, None),
        Record(1, "a", "completed", 2, 10.0002, Times([0.1, 0.13], [0.101, 0.121])),
        Record(1, "a", "completed", 2, 10.01, RECORD.token_times),
    ],
)
def test_a_contradiction_is_told(record: Record) -> None:
    assert compare([SEEN], [record], 0.1, 0.02)[0]


def test_a_request_that_is_there_twice_is_told() -> None:
    assert "2 times" in compare([SEEN], [RECORD, RECORD], 0.1, 0.02)[0][0]
