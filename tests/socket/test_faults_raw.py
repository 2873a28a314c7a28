"""Every fault as raw bytes on a socket: what the client's kernel gets, and how the connection ends."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from mockllm import Config, ExchangeRecord, ServerThread
from mockllm.faults import KINDS

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "m", "input": "hi"},
    MESSAGES: {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
}
SILENCE_S = 0.2
"""A server that sends nothing for so long, where it would have sent within 10 ms, is silent."""


class Got(Struct):
    """What came.

    Attributes:
        pieces: What each read gave.
        end: `closed`, `reset`, or `open` when nothing came for a while.
        record: The server's record.
        seconds: From the request to the last piece.
    """

    pieces: list[bytes]
    end: str
    record: ExchangeRecord
    seconds: float

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def head(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        """After the head, as it came."""
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def chunks(self) -> list[bytes]:
        """The HTTP chunks, the last one (empty) too; a broken one as far as it came."""
        chunks, rest = [], self.body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            chunks.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return chunks

    @property
    def text(self) -> str:
        """What a stream said."""
        return "".join(re.findall(r'"content":"([^"]*)"', b"".join(self.chunks).decode()))

    def headers(self, name: str) -> list[str]:
        return re.findall(rf"(?im)^{name}: ([^\r]*)", self.head.decode() + "\r\n")


SERVED: list[str] = []
"""The kinds that some test has asked for."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(Config(port=0, ttft_ms=1, itl_ms=1, output_tokens=6)) as server:
        yield server


def ask(
    server: ServerThread,
    fault: str | None,
    *,
    stream: bool = True,
    path: str = CHAT,
    body: dict[str, Any] | None = None,
    method: str = "POST",
) -> Got:
    """Send one request and read all that comes."""
    data = b"" if method == "GET" else json.dumps((body or BODIES[path]) | {"stream": stream}).encode()
    lines = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    if fault is not None:
        SERVED.extend(re.findall(r"kind=([\w-]+)", fault))
        lines += f"X-Mockllm-Fault: {fault}\r\n"
    pieces: list[bytes] = []
    seconds, end, began_s = 0.0, "open", time.perf_counter()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(lines.encode() + b"\r\n" + data)
        try:
            while True:
                sock.settimeout(10 if not pieces and "stall" not in (fault or "") else SILENCE_S)
                piece = sock.recv(65536)
                if not piece:
                    end = "closed"
                    break
                pieces.append(piece)
                seconds = time.perf_counter() - began_s
        except TimeoutError:
            pass
        except ConnectionResetError:
            end = "reset"
    return Got(pieces, end, last_record(server), seconds)


def last_record(server: ServerThread) -> ExchangeRecord:
    """The record of the request, once the server has seen its end."""
    deadline_s = time.perf_counter() + 10
    before = LAST.get(id(server), 0)
    while time.perf_counter() < deadline_s:
        if len(server.ledger) and server.ledger[-1].seq > before:
            LAST[id(server)] = server.ledger[-1].seq
            return server.ledger[-1]
    raise TimeoutError("no record")


LAST: dict[int, int] = {}


def good(server: ServerThread, stream: bool = True, path: str = CHAT) -> Got:
    """The same request without a fault."""
    got = ask(server, None, stream=stream, path=path)
    assert (got.record.outcome, got.record.fault) == ("completed", "")
    return got


# ---- instead of the reply --------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 500, 502, 503, 504, 529])
def test_a_status(server: ServerThread, status: int) -> None:
    got = ask(server, f"kind=status,status={status}")
    assert got.data.startswith(b"HTTP/1.1 %d " % status)
    error = json.loads(got.body)["error"]
    assert error["message"]
    assert error["type"]
    assert got.headers("content-length") == [str(len(got.body))]
    assert got.end == "open"  # the connection can be used again
    assert (got.record.outcome, got.record.fault, got.record.status) == ("faulted", f"answered {status}", status)
    assert (got.record.tokens, got.record.planned_tokens) == (0, 0)


def test_a_rate_limit_has_its_headers(server: ServerThread) -> None:
    got = ask(server, "kind=status,status=429,retry_after_s=0.25")
    assert got.headers("retry-after") == ["1"]
    assert got.headers("retry-after-ms") == ["250"]
    assert got.headers("x-ratelimit-remaining-requests") == ["0"]
    assert got.headers("x-ratelimit-reset-requests") == ["250ms"]
    assert json.loads(got.body)["error"]["code"] == "rate_limit_exceeded"


def test_the_messages_api_has_an_envelope_of_its_own(server: ServerThread) -> None:
    got = ask(server, "kind=status,status=529", path=MESSAGES)
    assert json.loads(got.body)["type"] == "error"
    assert json.loads(got.body)["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize(
    ("fault", "content_type", "body"),
    [
        ("body=html", "text/html", rb"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>(?s:.*)"),
        ("body=text", "text/plain; charset=utf-8", rb"502 Bad Gateway\n"),
        ("body=empty", "text/plain; charset=utf-8", rb""),
        ("content_type=text/html", "text/html", rb'\{"error":.*\}'),
        ("message=Down,type=t,code=c", "application/json", rb'.*"Down","type":"t","param":null,"code":"c".*'),
    ],
)
def test_what_a_proxy_sends(server: ServerThread, fault: str, content_type: str, body: bytes) -> None:
    got = ask(server, f"kind=status,status=502,{fault}")
    assert got.headers("content-type") == [content_type]
    assert re.fullmatch(body, got.body)


def test_a_further_header_and_a_delay(server: ServerThread) -> None:
    got = ask(server, "kind=status,status=500,send=x-should-retry: false,delay_s=0.1")
    assert got.headers("x-should-retry") == ["false"]
    assert got.seconds >= 0.1


def test_a_good_reply_with_a_wrong_content_type(server: ServerThread) -> None:
    got = ask(server, "kind=content-type,value=text/html")
    assert got.headers("content-type") == ["text/html"]
    assert got.text == good(server).text


# ---- in time ---------------------------------------------------------------------------------


def test_a_later_first_token(server: ServerThread) -> None:
    got = ask(server, "kind=ttft,seconds=0.1")
    assert got.record.first_token_planned_s is not None
    assert got.record.first_token_planned_s - got.record.arrival_s == pytest.approx(0.101)
    assert got.seconds >= 0.1
    assert got.text == good(server).text


@pytest.mark.parametrize("stream", [True, False])
def test_a_stall(server: ServerThread, stream: bool) -> None:
    got = ask(server, "kind=stall,seconds=0.1,after_tokens=2", stream=stream)
    assert got.seconds >= 0.1
    assert got.record.fault == ("stalled for 0.1 s after 2 tokens" if stream else "stalled for 0.1 s")
    assert got.record.tokens == 6
    assert got.record.lateness_p50_s < 0.1  # the stall was planned


@pytest.mark.parametrize(("stream", "tokens"), [(True, 2), (False, 0)])
def test_a_stall_for_ever(server: ServerThread, stream: bool, tokens: int) -> None:
    got = ask(server, "kind=stall,after_tokens=2", stream=stream)
    assert got.end == "open"
    assert bool(got.data) is stream
    assert (got.record.outcome, got.record.tokens) == ("faulted", tokens)
    assert got.record.close_reason == "client_gone"


def test_a_slow_head(server: ServerThread) -> None:
    got = ask(server, "kind=slow-head,seconds=0.1")
    assert got.seconds >= 0.1
    assert len(got.pieces) > 10
    assert got.text == good(server).text


def test_a_trickle(server: ServerThread) -> None:
    got = ask(server, "kind=trickle,piece_bytes=100,gap_ms=5")
    assert len(got.pieces[0]) == 100
    assert got.seconds >= (len(got.data) // 100 - 1) * 0.005
    assert got.text == good(server).text


# ---- in the stream ---------------------------------------------------------------------------


def test_an_error_event_in_each_dialect(server: ServerThread) -> None:
    fault = "kind=error,after_tokens=2,message=Broken,type=server_error"
    got = ask(server, fault)
    error = {"message": "Broken", "type": "server_error", "param": None, "code": None}
    assert got.chunks[-2] == b"data: " + json.dumps({"error": error}, separators=(",", ":")).encode() + b"\n\n"
    assert got.chunks[-1] == b""
    assert (got.record.tokens, got.record.fault) == (2, "error event after 2 tokens")
    got = ask(server, fault, path=MESSAGES)
    expected = b'{"type":"error","error":{"type":"api_error","message":"Broken"}}'
    assert got.chunks[-2] == b"event: error\ndata: " + expected + b"\n\n"
    got = ask(server, fault, path=RESPONSES)
    name, data = got.chunks[-2].decode().rstrip("\n").split("\n")
    assert (name, json.loads(data[6:])["message"]) == ("event: error", "Broken")
    numbers = [int(number) for number in re.findall(r'"sequence_number":(\d+)', got.data.decode())]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    ("path", "end"), [(CHAT, "[DONE]"), (RESPONSES, "response.completed"), (MESSAGES, "message_stop")]
)
def test_no_end(server: ServerThread, path: str, end: str) -> None:
    whole, got = good(server, path=path), ask(server, "kind=no-done", path=path)
    assert end in whole.chunks[-2].decode()
    assert end not in got.chunks[-2].decode()
    assert len(got.chunks) == len(whole.chunks) - 1


@pytest.mark.parametrize(
    ("path", "reason"), [(CHAT, '_reason":"'), (RESPONSES, "response.completed"), (MESSAGES, 'stop_reason":"')]
)
def test_no_finish_reason(server: ServerThread, path: str, reason: str) -> None:
    got = ask(server, "kind=no-finish", path=path)
    assert reason in good(server, path=path).data.decode()
    assert reason not in got.data.decode()
    assert (b"[DONE]" in got.data) is (path == CHAT)


def test_a_duplicate(server: ServerThread) -> None:
    chunks = ask(server, "kind=duplicate,after_tokens=2").chunks
    assert chunks[3] == chunks[4]
    assert chunks[4] != chunks[5]
    assert len(chunks) == len(good(server).chunks) + 1


def test_swapped_events(server: ServerThread) -> None:
    words = re.findall(r'"content":"([^"]+)"', good(server).data.decode())
    for k, order in ((2, [0, 1, 3, 2, 4, 5]), (5, [0, 1, 2, 3, 5, 4])):
        got = re.findall(r'"content":"([^"]+)"', ask(server, f"kind=reorder,after_tokens={k}").data.decode())
        assert got == [words[number] for number in order]


def test_malformed_json(server: ServerThread) -> None:
    got = ask(server, "kind=malformed,after_tokens=2")
    bad = [event for event in got.chunks[:-2] if not is_json(event)]
    assert bad == [got.chunks[3]]
    assert is_json(bad[0].replace(b"\n\n", b"}\n\n"))


def is_json(event: bytes) -> bool:
    try:
        json.loads(event.removeprefix(b"data: "))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("then", ["end", "next"])
def test_half_an_event(server: ServerThread, then: str) -> None:
    chunks = ask(server, f"kind=half-event,after_tokens=2,then={then}").chunks
    assert good(server).chunks[3][:20] == chunks[3][:20]
    assert not chunks[3].endswith(b"\n")
    assert len(chunks) == (5 if then == "end" else len(good(server).chunks))


@pytest.mark.parametrize(("then", "more"), [("rest", 1), ("next", 0), ("end", None)])
def test_a_cut_inside_a_character(server: ServerThread, then: str, more: int | None) -> None:
    chunks = ask(server, f"kind=cut-utf8,after_tokens=2,then={then}").chunks
    with pytest.raises(UnicodeDecodeError):
        chunks[3].decode()
    if more is None:
        assert len(chunks) == 5
    else:
        assert len(chunks) == len(good(server).chunks) + more
    if then == "rest":
        assert "🌊" in (chunks[3] + chunks[4]).decode()


def test_comments(server: ServerThread) -> None:
    got = ask(server, "kind=comments,every=2,text=ping")
    assert got.chunks[0] == b": ping\n\n"
    assert got.chunks.count(b": ping\n\n") == 4
    assert got.text == good(server).text


def test_several_events_in_a_chunk(server: ServerThread) -> None:
    got = ask(server, "kind=pack,events=4")
    assert [chunk.count(b"\n\n") for chunk in got.chunks] == [4, 5, 0]
    assert got.text == good(server).text


def test_one_event_over_several_chunks_and_segments(server: ServerThread) -> None:
    got, whole = ask(server, "kind=split,chunks=4,segment_bytes=50,gap_ms=1"), good(server)
    assert len(got.chunks) == 4 * (len(whole.chunks) - 1) + 1
    assert len(got.pieces) > len(whole.chunks)
    assert got.text == whole.text


def test_crlf(server: ServerThread) -> None:
    got, whole = ask(server, "kind=crlf"), good(server)
    joined = b"".join(got.chunks)
    assert joined.count(b"\n") == joined.count(b"\r\n") == b"".join(whole.chunks).count(b"\n")
    assert got.text == whole.text


# ---- in the connection -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["close", "reset"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_connection_ends(server: ServerThread, kind: str, stream: bool) -> None:
    end = "closed" if kind == "close" else "reset"
    got = ask(server, f"kind={kind}", stream=stream)
    assert (got.data, got.end, got.record.fault) == (b"", end, f"{end} before the head")
    got = ask(server, f"kind={kind},at=after-head", stream=stream)
    assert (got.body, got.end, got.data[-4:]) == (b"", end, b"\r\n\r\n")
    got = ask(server, f"kind={kind},at_byte=500", stream=stream)
    assert (len(got.data), got.end, got.record.bytes) == (500, end, 500)
    got = ask(server, f"kind={kind},at_byte=20", stream=stream)
    assert (len(got.data), got.end, got.record.tokens) == (20, end, 0)
    got = ask(server, f"kind={kind},after_tokens=2", stream=stream)
    assert got.end == end
    assert (got.record.outcome, got.record.tokens) == ("faulted", 2 if stream else 0)
    if stream:
        assert got.text == "".join(re.findall(r'"content":"([^"]*)"', good(server).data.decode())[:3])
        assert not got.body.endswith(b"0\r\n\r\n")


def test_the_ledger_counts_the_tokens_before_a_cut_at_a_byte(server: ServerThread) -> None:
    got = ask(server, "kind=close,at_byte=1100")
    whole = [chunk for chunk in got.chunks if chunk.endswith(b"\n\n")]
    assert got.record.tokens == len(whole) - 1  # without the role's chunk


@pytest.mark.parametrize("off", [10, -10])
def test_a_wrong_content_length(server: ServerThread, off: int) -> None:
    got = ask(server, f"kind=length,off_bytes={off}", stream=False)
    assert int(got.headers("content-length")[0]) == len(got.body) + off
    assert got.end == "closed"
    assert ask(server, f"kind=length,off_bytes={off},then=keep", stream=False).end == "open"


@pytest.mark.parametrize("then", ["close", "hold"])
def test_no_last_chunk(server: ServerThread, then: str) -> None:
    got = ask(server, f"kind=no-last-chunk,then={then}")
    assert got.body.endswith(b"data: [DONE]\n\n\r\n")
    assert got.end == ("closed" if then == "close" else "open")


# ---- where faults apply ----------------------------------------------------------------------


def test_faults_that_have_nothing_to_spoil_leave_no_trace(server: ServerThread) -> None:
    got = ask(server, "kind=error", stream=False)
    assert (got.record.outcome, got.record.fault) == ("completed", "")


def test_what_generates_nothing_can_fail_too(server: ServerThread) -> None:
    got = ask(server, "kind=status,status=503", path="/v1/models", method="GET")
    assert got.data.startswith(b"HTTP/1.1 503 ")
    assert ask(server, "kind=reset", path="/health", method="GET").end == "reset"
    got = ask(server, "kind=status,status=500", path="/v1/embeddings", body={"model": "m", "input": "x"})
    assert got.data.startswith(b"HTTP/1.1 500 ")


def test_the_body_asks_as_the_header_does(server: ServerThread) -> None:
    for fault in ({"kind": "status", "status": 503}, [{"kind": "status", "status": 503}], "kind=status,status=503"):
        got = ask(server, None, body=BODIES[CHAT] | {"mockllm": {"fault": fault}})
        assert got.data.startswith(b"HTTP/1.1 503 ")


def test_other_bodies_ask_too_and_so_does_a_script(server: ServerThread) -> None:
    fault = {"kind": "status", "status": 503}
    asking = {"model": "m", "input": "x", "mockllm": {"fault": fault}}
    for path in ("/v1/embeddings", "/v1/moderations"):
        assert ask(server, None, path=path, body=asking).data.startswith(b"HTTP/1.1 503 ")
    server.script([{"fault": fault}, {"text": "Fine.", "fault": "kind=crlf"}])
    assert ask(server, None).data.startswith(b"HTTP/1.1 503 ")
    got = ask(server, None)
    assert (got.text, got.record.fault) == ("Fine.", "ended lines with CR LF")
    assert good(server).record.fault == ""


def test_faults_add_up_where_they_are_told_to(server: ServerThread) -> None:
    got = ask(server, "kind=crlf,also=true; kind=comments,also=true; kind=close,after_tokens=2; kind=crlf")
    assert got.record.fault == "ended lines with CR LF; sent comments; closed after 2 tokens"
    assert got.chunks[0] == b": keep-alive\n\n"
    assert got.end == "closed"
    got = ask(server, "kind=slow-head,seconds=0.1,also=true; kind=status,status=500,message=Größer", stream=False)
    assert (json.loads(got.body)["error"]["message"], got.seconds >= 0.1) == ("Größer", True)


@pytest.mark.parametrize(
    ("fault", "param"),
    [
        ({"kind": "oops"}, "mockllm.fault.kind"),
        ([{"kind": "oops"}], "mockllm.fault[0].kind"),
        (5, "mockllm.fault"),
        ({"kind": "status", "status": 99}, "mockllm.fault.status"),
        ({"kind": "status", "status": 500, "extra": 1}, "mockllm.fault"),
        ("kind=oops", "mockllm.fault"),
    ],
)
def test_a_fault_that_does_not_exist_is_refused(server: ServerThread, fault: Any, param: str) -> None:
    got = ask(server, None, body=BODIES[CHAT] | {"mockllm": {"fault": fault}})
    assert got.data.startswith(b"HTTP/1.1 400 ")
    assert json.loads(got.body)["error"]["param"] == param


def test_every_kind_was_asked_for() -> None:
    assert set(SERVED) == set(KINDS)
