"""Fuzz the request reader: any bytes, cut anywhere, through the fast path and through plain h11.

    python -m bench.fuzz_http --seconds 60 --seed 1

Checks that the reader never fails otherwise than with an `HttpError`, that both paths and all
cuts agree, and that h11 alone reads the same requests. Prints how many inputs were tried and
what they led to; exits 1 with the first input that breaks a rule.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

import h11

from mockllm.exchange import Request
from mockllm.http.http11 import CONTINUE, Continue, HttpError, Limits, Reader

LIMITS = Limits(request_line_bytes=120, header_bytes=400, body_bytes=60)

Refusal = tuple[int, str, str, str]
Outcome = list[Request | Continue | Refusal]

_BODY = b'{"model":"m","prompt":"\xc3\xa9"}'
_LENGTH = b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
SEEDS = [
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nConnection: keep-alive\r\n"
    b"Accept: application/json\r\nUser-Agent: OpenAI/Python 2.1.0\r\nX-Stainless-Lang: python\r\n"
    b"Authorization: Bearer sk-1\r\n" + _LENGTH,
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + _LENGTH,
    b"GET /v1/models?a=b&c HTTP/1.1\r\nHost: [::1]:8000\r\nX-Request-Id: 0f8fad5b\r\n\r\n",
    b"GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
    b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'3\r\nabc\r\nA;e="f"\r\n0123456789\r\n0\r\nT: u\r\n\r\n',
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n01\r\nc\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n" + _LENGTH,
    b"GET http://h:1/p?q HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n",
    b"\r\nOPTIONS * HTTP/1.1\r\nHost: x\r\nA: b\r\nA: c\r\n\r\n",
]
SPLICES = [
    b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\n\n", b"\r\n ", b" ", b"\t", b":", b",", b"#", b"?", b";",
    b"\0", b"\x7f", b"\xff", b"0\r\n\r\n", b"1\r\na\r\n", b"2;\xe9=\t \r\nbc\r\n", b"A" * 520,
    b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"Host: x\r\n", b"host:\r\n", b"Host: a b\r\n", b"Content-Length: 5\r\n", b"content-length: +5\r\n",
    b"Content-Length: 5, 5\r\n", b"Content-Length: 999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n", b"Expect: 100-continue\r\n", b"Expect: x\r\n",
    b"Connection: close\r\n", b"Connection: Close, te\r\n", b"A: b\r\n c\r\n", b"X" * 130, b"y: " + b"z" * 410,
    b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT a:1 ", b"\x16\x03\x01",
]  # fmt: skip


def play(raw: bytes, cuts: Sequence[int], fast: bool) -> Outcome:
    """What the reader makes of `raw`, cut before the bytes `cuts`, one piece a second."""
    reader = Reader(LIMITS, fast=fast)
    out: Outcome = []
    edges = [0, *sorted({cut % (len(raw) + 1) for cut in cuts}), len(raw)]
    for second, (start, stop) in enumerate(itertools.pairwise(edges)):
        if start == stop:
            continue
        reader.feed(raw[start:stop], float(second))
        try:
            while (got := reader.next()) is not None:
                out.append(got)
        except HttpError as error:
            out.append((error.status, error.message, error.method, error.target))
    return out


def _timeless(out: Outcome) -> list[object]:
    """Without what may depend on cuts."""
    return [_facts(item) if isinstance(item, Request) else item for item in out if item is not CONTINUE]


def _facts(request: Request) -> tuple[object, ...]:
    r = request
    return (r.method, r.target, r.query, r.headers, r.body, r.http10, r.keep_alive)


def _read_by_h11(raw: bytes, count: int) -> list[tuple[bytes, bytes, bytes]]:
    """Method, target and body of the first `count` requests, as h11 alone reads them."""
    requests = []
    for _ in range(count):
        while raw.startswith(b"\r\n"):
            raw = raw[2:]
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1_000_000)
        connection.receive_data(raw)
        head = connection.next_event()
        assert isinstance(head, h11.Request)
        body = b""
        while isinstance(event := connection.next_event(), h11.Data):
            body += event.data
        assert isinstance(event, h11.EndOfMessage)
        requests.append((head.method, head.target, body))
        raw = connection.trailing_data[0]
    return requests


def check(raw: bytes, cuts: Sequence[int]) -> list[object]:
    """Check every rule on one input.

    Returns:
        What it led to: requests and refusals.

    Raises:
        AssertionError: A rule is broken.
    """
    fast, plain = play(raw, cuts, True), play(raw, cuts, False)
    assert fast == plain, f"the fast path disagrees: {fast} != {plain}"
    found = _timeless(plain)
    for other_cuts in ((), range(len(raw))):
        for way in (True, False):
            other = _timeless(play(raw, other_cuts, way))
            assert other == found, f"cuts disagree: {other} != {found}"
    requests = [item for item in plain if isinstance(item, Request)]
    for ours, theirs in zip(requests, _read_by_h11(raw, len(requests)), strict=True):
        path, _, query = theirs[1].decode("ascii").partition("?")
        assert (ours.method, ours.query) == (theirs[0].decode("ascii"), query)
        assert path.endswith(ours.target) or path.lower().startswith("http")
        assert ours.body == theirs[2]
    return found


def mutate(rng: random.Random) -> bytes:
    """One to three pipelined requests, with a few bytes changed."""
    raw = bytearray(b"".join(rng.choice(SEEDS) for _ in range(rng.randint(1, 3))))
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(raw) + 1)
        match rng.randrange(4):
            case 0:
                raw[at:at] = rng.choice(SPLICES)
            case 1:
                del raw[at : at + rng.choice((1, 1, 2, 8))]
            case 2:
                raw[at : at + 1] = bytes([rng.randrange(256)])
            case _:  # at the start of a line, where headers begin
                line = raw.find(b"\n", at) + 1
                raw[line:line] = rng.choice(SPLICES)
    return bytes(raw)


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz for a bounded time; 0 when every rule held."""
    parser = argparse.ArgumentParser(description="Fuzz the HTTP/1.1 request reader.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    rng = random.Random(args.seed)
    deadline = time.monotonic() + args.seconds
    seen: Counter[str] = Counter()
    while time.monotonic() < deadline:
        raw = mutate(rng)
        cuts = [rng.randrange(len(raw) + 1) for _ in range(rng.randint(0, 4))]
        try:
            found = check(raw, cuts)
        except Exception as error:
            print(f"{raw!r}\ncut at {cuts}: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
        seen["inputs"] += 1
        for item in found:
            seen[str(item[0]) if isinstance(item, tuple) and isinstance(item[0], int) else "requests"] += 1
    print(", ".join(f"{key}: {count}" for key, count in sorted(seen.items(), reverse=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
