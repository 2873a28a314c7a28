"""The fast path is taken by the heads that it was made for, and its memo stays small.

That it agrees with h11 is the fuzzer's to show (test_http_fuzz.py).
"""

from __future__ import annotations

import pytest

from mockllm.http.fasthead import HeaderLines, RequestLines, recogniser
from mockllm.http.head import parse_head

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\n"
CLIENTS = {
    "wrk": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n",
    "curl": CHAT + b"Host: localhost:8000\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: 71\r\n\r\n",
    "aiohttp": CHAT + b"Host: 127.0.0.1:8000\r\nAuthorization: Bearer sk-1\r\nAccept: */*\r\n"
    b"Accept-Encoding: gzip, deflate\r\nUser-Agent: Python/3.11 aiohttp/3.12.15\r\nContent-Length: 71\r\n"
    b"Content-Type: application/json\r\n\r\n",
    "openai": CHAT + b"Host: 127.0.0.1:35545\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    b"authorization: Bearer sk-1\r\naccept: application/json\r\ncontent-type: application/json\r\n"
    b"user-agent: OpenAI/Python 3.57.0\r\nx-stainless-lang: python\r\nx-stainless-package-version: 3.57.0\r\n"
    b"x-stainless-os: Linux\r\nx-stainless-arch: x64\r\nx-stainless-runtime: CPython\r\n"
    b"x-stainless-runtime-version: 3.11.7\r\nx-stainless-async: false\r\nx-stainless-retry-count: 0\r\n"
    b"x-stainless-read-timeout: 600\r\nContent-Length: 71\r\n\r\n",
    "Go": CHAT + b"Host: [::1]:8000\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 71\r\n"
    b"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
    "Node": CHAT + b"host: localhost:8000\r\nconnection: keep-alive\r\ncontent-type: application/json\r\n"
    b"accept: */*\r\naccept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n"
    b"accept-encoding: gzip, deflate\r\ncontent-length: 71\r\n\r\n",
    "traced": CHAT + b"Host: gateway\r\nX-Request-Id: 7f1c\r\nConnection: close\r\n"
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("raw", CLIENTS.values(), ids=CLIENTS)
def test_the_heads_of_common_clients_take_the_fast_path(raw: bytes) -> None:
    recognise = recogniser(RequestLines(), HeaderLines())
    for _ in range(2):  # first parsed, then from the memo
        got = recognise(raw[:-4])
        head = parse_head(raw)
        assert got == (head.method, head.target, head.query, head.headers, head.length, head.keep_alive)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.0\r\nHost: x",
        b"GET / HTTP/1.1",
        b"GET http://x/ HTTP/1.1\r\nHost: x",
        CHAT + b"Host: x\r\nTransfer-Encoding: chunked",
        CHAT + b"Host: x\r\nExpect: 100-continue",
        CHAT + b"Host: x\r\nA: b\r\nA: c",
        CHAT + b"Host: x\r\nA: b\tc",
        CHAT + b"Host: x\r\nA: \xc3\xa9",
        CHAT + b"Host: x\r\nContent-Length: \xb2",
        CHAT + b"Host: x\r\nContent-Length: 1_0",
        CHAT + b"Host: x\r\n",
    ],
)
def test_what_is_not_plain_is_left_to_h11(raw: bytes) -> None:
    recognise = recogniser(RequestLines(), HeaderLines())
    assert [recognise(raw), recognise(raw)] == [None, None]


def test_the_memos_are_bounded() -> None:
    request_lines, header_lines = RequestLines(), HeaderLines()
    recognise = recogniser(request_lines, header_lines)
    for number in range(3000):
        assert recognise(b"GET /%d HTTP/1.1\r\nHost: x\r\nA%d: b\r\nTraceparent: %d" % (number, number, number))
        assert recognise(b"GET /%b HTTP/1.1\r\nHost: x\r\nA: %b" % (b"x" * 300, b"y" * 300))
        assert len(request_lines) <= 1024
        assert len(header_lines) <= 1024
    assert len(header_lines.names) <= 256
    assert all(len(line) <= 256 for line in [*request_lines, *header_lines])
    assert not any(line.startswith(b"Trace") for line in header_lines)
