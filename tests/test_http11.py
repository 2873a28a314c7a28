"""The reader: every case whole, byte by byte and with bytes behind it, on both paths."""

from __future__ import annotations

import contextlib

import h11
import pytest

from mockllm.exchange import Request
from mockllm.http.http11 import CONTINUE, Continue, HttpError, Limits, Phase, Reader

GET = b"GET /v1/models HTTP/1.1\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: next\r\n\r\n"
SMALL = Limits(request_line_bytes=100, header_bytes=200, body_bytes=50)

Outcome = list[Request | Continue | int]


def play(reader: Reader, pieces: list[bytes]) -> Outcome:
    """Feed the pieces, one a second; what came out, a refusal as its status."""
    out: Outcome = []
    for second, piece in enumerate(pieces):
        reader.feed(piece, float(second))
        try:
            while (got := reader.next()) is not None:
                out.append(got)
        except HttpError as error:
            out.append(error.status)
            assert reader.next() is None
    return out


def bytewise(raw: bytes) -> list[bytes]:
    return [raw[i : i + 1] for i in range(len(raw))]


def without_times(out: Outcome) -> list[object]:
    return [
        (r.method, r.target, r.query, r.headers, r.body, r.http10, r.keep_alive) if isinstance(r, Request) else r
        for r in out
    ]


def outcome(raw: bytes, limits: Limits = SMALL) -> Outcome:
    """The outcome of `raw`, which must not depend on path, on cuts, or on what follows a whole request."""
    whole = play(Reader(limits), [raw])
    expected = without_times(whole)
    for fast in (True, False):
        assert without_times(play(Reader(limits, fast=fast), [raw])) == expected
        single = without_times(play(Reader(limits, fast=fast), bytewise(raw)))
        assert [r for r in single if not isinstance(r, Continue)] == expected
        reader = Reader(limits, fast=fast)
        followed = without_times(play(reader, [raw + NEXT]))
        if reader.phase is Phase.CLOSED:
            assert followed == expected
        elif whole and isinstance(whole[-1], Request):
            assert followed[:-1] == expected
            assert followed[-1] == ("GET", "/next", "", {b"host": b"next"}, b"", False, True)
    return whole


def request(raw: bytes, limits: Limits = SMALL) -> Request:
    """The one request that `raw` holds."""
    (only,) = outcome(raw, limits)
    assert isinstance(only, Request)
    return only


def refusal(raw: bytes, limits: Limits = SMALL) -> int:
    """The status with which `raw` is refused, as the only outcome."""
    (only,) = outcome(raw, limits)
    assert isinstance(only, int)
    return only


@pytest.mark.parametrize(
    "raw",
    [
        b"G",
        b"GET /v1/mod",
        GET,
        GET + b"Host: x\r\n",
        GET + b"Host: x\r\n\r",
        b"\r\n",
        b"\r",
        POST + b"Content-Length: 3\r\n\r\nab",
        CHUNKED + b"3\r\nabc\r\n0\r\n",
    ],
)
def test_a_fragment_is_waited_for(raw: bytes) -> None:
    for fast in (True, False):
        for pieces in ([raw], bytewise(raw)):
            assert play(Reader(SMALL, fast=fast), pieces) == []


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        (GET + b"Host: x\r\n\r\n", "/v1/models"),
        (GET + b"hoSt:\tx\r\nempty:\r\n\r\n", "/v1/models"),
        (GET + b"Host:\r\n\r\n", "/v1/models"),
        (GET + b"Host: [::1]:8000\r\n\r\n", "/v1/models"),
        (b"\r\n" + GET + b"Host: x\r\n\r\n", "/v1/models"),
        (b"\r\n\r\n\r\n" + GET + b"Host: x\r\n\r\n", "/v1/models"),
        (b"get /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "/v1/models"),
        (b"GET /v1/models HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "/v1/models"),
        (b"GET /v1/models HTTP/1.2\r\nHost: x\r\n\r\n", "/v1/models"),
        (b"GET http://x/v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "/v1/models"),
        (b"GET HTTPS://x:1/a%2Fb?c HTTP/1.1\r\nHost: y\r\n\r\n", "/a%2Fb"),
        (b"GET http://x?q HTTP/1.1\r\nHost: y\r\n\r\n", "/"),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "*"),
        (b"OPTIONS http://x HTTP/1.1\r\nHost: x\r\n\r\n", "*"),
        (b"GET /a//b/../c HTTP/1.1\r\nHost: x\r\n\r\n", "/a//b/../c"),
        (GET + b"Host: x\r\nX: \xc3\xa9\r\n\r\n", "/v1/models"),
        (GET + b"Host: x\r\nX: a\tb\r\n\r\n", "/v1/models"),
        (GET + b"Host: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", "/v1/models"),
    ],
)
def test_legal_oddities_are_accepted(raw: bytes, target: str) -> None:
    assert request(raw).target == target


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /v1/models \r\n\r\n", 400),
        (b"GET /v1/models\r\n\r\n", 400),
        (b"GET  /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /v1/mo dels HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"G[]T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b" GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / http/1.1\r\nHost: x\r\n\r\n", 400),
        (GET + b"Host: x\r\nX-Bad[]: y\r\n\r\n", 400),
        (GET + b"X: y\r\n\r\n", 400),
        (GET + b"Host: a\r\nHost: b\r\n\r\n", 400),
        (GET + b"Host: a\r\nHost: a\r\n\r\n", 400),
        (GET + b"Host: a b\r\n\r\n", 400),
        (GET + b"Host: a/b\r\n\r\n", 400),
        (GET + b"Host: u@a\r\n\r\n", 400),
        (GET + b"Host: a:x\r\n\r\n", 400),
        (GET + b"Host: a, b\r\n\r\n", 400),
        (GET + b"Host : x\r\n\r\n", 400),
        (GET + b"Host: x\r\n: y\r\n\r\n", 400),
        (GET + b"Host: x\r\nno colon\r\n\r\n", 400),
        (GET + b" Host: x\r\n\r\n", 400),
        (GET + b"Host: x\r\nA: b\r\n c\r\n\r\n", 400),
        (GET + b"Host: x\r\nX: a\x07b\r\n\r\n", 400),
        (GET + b"Host: x\r\nX: a\x7fb\r\n\r\n", 400),
        (GET + b"Host: x\r\nX: a\x00b\r\n\r\n", 400),
        (GET + b"Host: x\r\n\rA: b\r\n\r\n", 400),
        (GET + b"Host: x\r\nA: b\rc\r\n\r\n", 400),
        (GET + b"Host: x\r\nA: b\n\r\n", 400),
        (GET + b"Host: x\n\n", 400),
        (b"GET / HTTP/1.1\nHost: x\r\n\r\n", 400),
        (b"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (GET + b"Host: x\r\nContent-Length: -1\r\n\r\n", 400),
        (GET + b"Host: x\r\nContent-Length: +1\r\n\r\n", 400),
        (GET + b"Host: x\r\nContent-Length: abc\r\n\r\n", 400),
        (GET + b"Host: x\r\nContent-Length: 0x1\r\n\r\n", 400),
        (GET + b"Host: x\r\nContent-Length:\r\n\r\n", 400),
        (POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n", 400),
        (POST + b"Content-Length: 4\r\ncontent-length: 4\r\n\r\nabcd", 400),
        (POST + b"Content-Length: 4, 4\r\n\r\nabcd", 400),
        (POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\ncontent-LengtH: 4\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET /v1/models HTTP/9.9\r\nHost: x\r\n\r\n", 505),
        (b"GET /v1/models HTTP/0.9\r\nHost: x\r\n\r\n", 505),
        (b"GET /v1/models HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET /v1/models HTTP/1.7\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.10\r\nHost: x\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        (b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://:80/a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://u:p@x/a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://x/a HTTP/1.1\r\n\r\n", 400),
        (b"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (POST + b"Expect: 200-maybe\r\nContent-Length: 1\r\n\r\n", 417),
    ],
)
def test_what_must_be_refused_is_refused_and_nothing_after_it_is_read(raw: bytes, status: int) -> None:
    assert refusal(raw) == status


@pytest.mark.parametrize(
    "body",
    [
        b"3\r\nabc\r\n0\r\n\r\n",
        b'1;ext=1\r\na\r\n2;x="y"\r\nbc\r\n0\r\nX-Trailer: 1\r\n\r\n',
        b"0003\r\nabc\r\n000\r\n\r\n",
        b"00000000000000000003 \t\r\nabc\r\n0\r\n\r\n",
        b"3;\xff\r\nabc\r\n0\r\n\r\n",
        b"3;" + b"e" * 510 + b"\r\nabc\r\n0;" + b"e" * 510 + b"\r\n\r\n",
        b"3\r\nabc\r\n0\r\nA: " + b"b" * (8192 - 7) + b"\r\n\r\n",
        b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0;last\r\nA: b\r\nC: d\r\n\r\n",
    ],
)
def test_a_chunked_body_is_decoded(body: bytes) -> None:
    got = request(POST + b"Transfer-Encoding: Chunked\r\n\r\n" + body)
    assert got.body == b"abc"
    assert b"x-trailer" not in got.headers


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"3\r\nabcd\r\n0\r\n\r\n", 400),
        (b"3\nabc\r\n0\r\n\r\n", 400),
        (b"3\r\nabc\n0\r\n\r\n", 400),
        (b"x\r\nabc\r\n0\r\n\r\n", 400),
        (b"-3\r\nabc\r\n0\r\n\r\n", 400),
        (b"0x3\r\nabc\r\n0\r\n\r\n", 400),
        (b" 3\r\nabc\r\n0\r\n\r\n", 400),
        (b"\r\nabc\r\n0\r\n\r\n", 400),
        (b"3;a=\rb\r\nabc\r\n0\r\n\r\n", 400),
        (b"3;a=\x00\r\nabc\r\n0\r\n\r\n", 400),
        (b"000000000000000000003\r\nabc\r\n0\r\n\r\n", 400),
        (b"3\r\nabc\r\n0\r\n\n", 400),
        (b"3\r\nabc\r\n0\r\nA: b\n\r\n", 400),
        (b"3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n", 400),
        (b"3\r\nabc\r\n0\r\nA b\r\n\r\n", 400),
        (b"3\r\nabc\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"3;" + b"e" * 511 + b"\r\nabc\r\n0\r\n\r\n", 400),
        (b"3\r\nabc\r\n0;" + b"e" * 511 + b"\r\n\r\n", 400),
        (b"3\r\nabc\r\n0\r\nA: " + b"b" * (8192 - 6) + b"\r\n\r\n", 400),
        (b"33\r\n" + b"a" * 51 + b"\r\n0\r\n\r\n", 413),
        (b"20\r\n" + b"a" * 32 + b"\r\n20\r\n" + b"b" * 32 + b"\r\n0\r\n\r\n", 413),
    ],
)
def test_a_bad_chunked_body_is_refused(body: bytes, status: int) -> None:
    assert refusal(CHUNKED + body) == status


@pytest.mark.parametrize(
    ("version", "lines", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: Keep-Alive\r\n", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: TE, Close\r\n", False),
        (b"1.1", b"Connection: te\r\nConnection: close\r\n", False),
        (b"1.1", b"Connection: keep-alive, close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
        (b"1.0", b"Connection: close\r\n", False),
    ],
)
def test_keep_alive(version: bytes, lines: bytes, keep_alive: bool) -> None:
    got = request(b"GET / HTTP/" + version + b"\r\nHost: x\r\n" + lines + b"\r\n")
    assert got.keep_alive is keep_alive
    assert got.http10 is (version == b"1.0")


def test_names_are_lower_case_and_repeated_values_joined() -> None:
    got = request(GET + b"HOST: x\r\nX-A: 1 \r\nx-b:2\r\nX-a:  3\r\n\r\n")
    assert got.headers == {b"host": b"x", b"x-a": b"1, 3", b"x-b": b"2"}


def test_the_query_is_split_off() -> None:
    got = request(b"GET /a?b=c?d&e HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (got.target, got.query) == ("/a", "b=c?d&e")


def test_an_absolute_target_takes_the_place_of_host() -> None:
    assert request(b"GET http://a:1/ HTTP/1.1\r\nHost: b\r\n\r\n").headers[b"host"] == b"a:1"


@pytest.mark.parametrize("extra", [0, 1])
def test_the_limits_are_exact(extra: int) -> None:
    line = b"GET /" + b"a" * (100 - len(b"GET / HTTP/1.1") + extra) + b" HTTP/1.1\r\n"
    headers = b"Host: x\r\nX: " + b"b" * (200 - len(b"Host: x\r\nX: \r\n\r\n") + extra) + b"\r\n\r\n"
    body = b"Host: x\r\nContent-Length: %d\r\n\r\n" % (50 + extra) + b"c" * (50 + extra)
    cases = {414: line + b"Host: x\r\n\r\n", 431: GET + headers, 413: GET + body}
    for status, raw in cases.items():
        if extra:
            assert refusal(raw) == status
        else:
            assert request(raw).method == "GET"


@pytest.mark.parametrize(("extra", "status"), [(0, None), (1, 431)])
def test_the_number_of_header_lines_is_bounded(extra: int, status: int | None) -> None:
    lines = b"".join(b"a%d:\r\n" % number for number in range(255 + extra))
    got = outcome(GET + b"Host: x\r\n" + lines + b"\r\n", Limits())
    assert got == [status] or (status is None and isinstance(got[0], Request))


@pytest.mark.parametrize(
    "raw",
    [
        GET + b"Host: x\r\nA:" + b" " * 60_000 + b"\0\r\n\r\n",
        CHUNKED + b"0\r\nA:" + b" " * 8_000 + b"\0\r\n\r\n",
        CHUNKED + b"0" + b" " * 500 + b"\0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("fast", [True, False])
def test_h11_is_kept_from_taking_quadratic_time(raw: bytes, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """h11's header expression does, over white space that something illegal follows: it must not get that far."""
    next_event = h11.Connection.next_event

    def watched(self: h11.Connection) -> object:
        assert b"\0" not in self.trailing_data[0]
        return next_event(self)

    monkeypatch.setattr(h11.Connection, "next_event", watched)
    assert play(Reader(Limits(), fast=fast), [raw]) == [400]


@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"])
@pytest.mark.parametrize("length", [b"51", b"99999999999999999999"])
def test_a_large_body_is_refused_before_it_is_read(length: bytes, expect: bytes) -> None:
    assert refusal(POST + expect + b"Content-Length: " + length + b"\r\n\r\n") == 413


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (POST + b"Content-Length: 51\r\n\r\n", ("POST", "/v1/chat/completions")),
        (CHUNKED + b"x\r\n", ("POST", "/v1/chat/completions")),
        (b"GET /a?b HTTP/1.1\r\nHost: a b\r\n\r\n", ("GET", "/a")),
        (b"PRI * HTTP/2.0\r\n\r\n", ("PRI", "*")),
        (b"nonsense\r\n\r\n", ("", "")),
    ],
)
@pytest.mark.parametrize("fast", [True, False])
def test_a_refusal_names_the_request(raw: bytes, named: tuple[str, str], fast: bool) -> None:
    reader = Reader(SMALL, fast=fast)
    reader.feed(raw[:1], 1.0)
    assert reader.next() is None
    reader.feed(raw[1:], 2.0)
    with pytest.raises(HttpError) as refused:
        reader.next()
    assert (refused.value.method, refused.value.target) == named
    assert refused.value.first_byte_s == 1.0


def test_the_times_of_first_and_last_byte() -> None:
    raw = POST + b"Content-Length: 3\r\n\r\nabc"
    for fast in (True, False):
        first, second = play(Reader(SMALL, fast=fast), bytewise(raw + raw))
        assert isinstance(first, Request)
        assert isinstance(second, Request)
        assert (first.first_byte_s, first.arrival_s) == (0.0, len(raw) - 1)
        assert (second.first_byte_s, second.arrival_s) == (len(raw), 2 * len(raw) - 1)


def test_pipelined_requests_that_wait_keep_their_own_times() -> None:
    plain = POST + b"Content-Length: 3\r\n\r\nabc"
    chunked = CHUNKED + b"1\r\na\r\n0\r\n\r\n"
    for raw in (plain, chunked):
        for fast in (True, False):
            reader = Reader(SMALL, fast=fast)
            for second, piece in enumerate([raw + raw[:10], raw[10:] + raw, raw[:5], raw[5:]]):
                reader.feed(piece, float(second))
            times = []
            while (got := reader.next()) is not None:
                assert isinstance(got, Request)
                times.append((got.first_byte_s, got.arrival_s))
            assert times == [(0, 0), (0, 1), (1, 1), (2, 3)]
            assert reader.buffered_bytes == 0


@pytest.mark.parametrize("fast", [True, False])
def test_a_large_body_is_not_kept_behind_its_request(fast: bool) -> None:
    raw = POST + b"Content-Length: 1000000\r\n\r\n" + b"a" * 1_000_000
    reader = Reader(Limits(), fast=fast)
    reader.feed(raw[:10], 0.0)
    assert reader.next() is None
    for second, piece in ((1.0, raw[10:] + NEXT[:5]), (2.0, NEXT[5:] + NEXT)):
        reader.feed(piece, second)
    first = reader.next()
    assert isinstance(first, Request)
    assert (len(first.body), first.first_byte_s, first.arrival_s) == (1_000_000, 0.0, 2.0)
    assert len(reader._buf) == 2 * len(NEXT)
    assert without_times([r for _ in range(2) if (r := reader.next())]) == without_times(
        play(Reader(SMALL), [NEXT] * 2)
    )


def test_continue_is_asked_for_once_and_only_before_the_body_begins() -> None:
    head = POST + b"Content-Length: 3\r\nExpect: 100-Continue\r\n\r\n"
    reader = Reader(SMALL)
    assert play(reader, [head]) == [CONTINUE]
    assert reader.phase is Phase.BODY
    (got,) = play(reader, [b"a", b"bc"])
    assert isinstance(got, Request)
    assert got.body == b"abc"
    assert not any(isinstance(r, Continue) for r in play(Reader(SMALL), [head + b"a", b"bc"]))
    chunked = POST + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    assert [type(r) for r in play(Reader(SMALL), [chunked, b"0\r\n\r\n"])] == [Continue, Request]


def test_an_expectation_without_a_body_or_in_http10_is_ignored() -> None:
    assert request(GET + b"Host: x\r\nExpect: 100-continue\r\n\r\n").body == b""
    old = b"POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: anything\r\n\r\n"
    assert play(Reader(SMALL), [old]) == []


def test_phases() -> None:
    reader = Reader(SMALL)
    seen = [(reader.phase, reader.first_byte_s)]
    pieces = [b"\r\n", GET, b"Host: x\r\nContent-Length: 2\r\n\r\n", b"ab", b"\0"]
    for second, piece in enumerate(pieces):
        reader.feed(piece, float(second))
        with contextlib.suppress(HttpError):
            while reader.next():
                pass
        seen.append((reader.phase, reader.first_byte_s))
    assert seen == [
        (Phase.IDLE, None),
        (Phase.IDLE, None),
        (Phase.HEAD, 1.0),
        (Phase.BODY, 1.0),
        (Phase.IDLE, None),
        (Phase.CLOSED, None),
    ]


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", b"GGGGGG"),
        (GET, b"a: b\r\n"),
        (CHUNKED + b"1;", b"eeeeee"),
        (CHUNKED + b"0\r\n", b"a: bcdefg\r\n"),
        (CHUNKED, b"1\r\na\r\n"),
        (CHUNKED, b"1;\r\na\r\n"),
        (CHUNKED + b"FFFFFF\r\n", b"aaaaaa"),
    ],
)
def test_memory_is_bounded_whatever_is_sent(start: bytes, more: bytes) -> None:
    for fast in (True, False):
        reader = Reader(Limits(request_line_bytes=100, header_bytes=1000, body_bytes=3000), fast=fast)
        most = 0
        statuses = []
        for piece in [start] * bool(start) + [more] * 5000:
            reader.feed(piece, 0.0)
            try:
                assert reader.next() is None
            except HttpError as error:
                statuses.append(error.status)
            most = max(most, reader.buffered_bytes)
        assert len(statuses) == 1
        assert most > 90
        assert most <= 3000 + 8192 + 100  # a body, and trailers behind it
        assert reader.buffered_bytes == 0


def test_what_h11_sends_as_a_client_is_read_back() -> None:
    for framing in ((b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked")):
        client = h11.Connection(h11.CLIENT)
        raw = client.send(h11.Request(method="POST", target="/p?q", headers=[(b"Host", b"h"), framing])) or b""
        for piece in (b"he", b"llo"):
            raw += client.send(h11.Data(data=piece)) or b""
        raw += client.send(h11.EndOfMessage()) or b""
        got = request(raw)
        assert (got.method, got.target, got.query, got.body) == ("POST", "/p", "q", b"hello")
