"""Bytes in, whole requests out: the reading side of one HTTP/1.1 connection (RFC 9112), without I/O.

A `Reader` buffers what it is fed and gives out one `Request` at a time. Each request has an
h11 connection of its own, because h11's cycle would want the reply sent through it, and the
replies here are formatted elsewhere. Plain heads take the fast path, which gives the same
result.

The answer to a stream of bytes does not depend on how it was cut into reads: each verdict
falls at a byte that the stream itself determines.
"""

from __future__ import annotations

import functools
import re
from enum import Enum, StrEnum
from typing import Final

from msgspec import Struct

from mockllm.exchange import Request
from mockllm.http.chunkedbody import ChunkedBody, too_large
from mockllm.http.fastchunks import PlainChunks
from mockllm.http.fasthead import recognise
from mockllm.http.head import CHUNKED, Head, parse_head
from mockllm.http.refusals import HttpError

__all__ = ["CONTINUE", "Continue", "HttpError", "Limits", "Phase", "Reader"]

_HEAD_END = re.compile(rb"\n\r?\n")  # h11's rule; a head that ends without CR is refused as a whole
_REQUEST_LINE_START = re.compile(rb"([-!#$%&'*+.^_`|~0-9a-zA-Z]{1,32}) ([!-\"$->@-~]{1,512})[ ?#]")
_EMPTY_LINES = re.compile(rb"(?:\r\n)+")
_TOKEN_CHARS = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_TLS_HANDSHAKE = 0x16  # first byte of every TLS hello (RFC 8446 §5.1)
_NO_REQUEST = "This is no HTTP request."
_MAX_MARKS = 64
_LARGE_BYTES = 262144


class Limits(Struct, frozen=True):
    """How much of a request is read before it is refused.

    Attributes:
        request_line_bytes: Request line, without its line end; beyond: 414.
        header_bytes: From the end of the request line to the end of the blank line; beyond:
            431. So do more than 256 lines.
        body_bytes: Decoded body; beyond: 413, from `Content-Length` before any of it is read.
    """

    request_line_bytes: int = 8192
    header_bytes: int = 65536
    body_bytes: int = 33554432


class Continue(Enum):
    """The client holds the body back until it is told `100 Continue` (RFC 9110 §10.1.1)."""

    AWAITED = "100-continue"


CONTINUE: Final = Continue.AWAITED


class Phase(StrEnum):
    """What a connection is waiting for when `Reader.next` has returned None."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    CLOSED = "closed"


class Reader:
    """Turns the bytes of one connection into requests.

    Call `next` after `feed` until it returns None; after a `Request`, call it again when that
    request's reply is done. What arrives meanwhile is kept, and it is the caller who bounds it:
    stop reading while a reply is in progress and `buffered_bytes` is high. Never do so when
    `next` has returned None: it waits for the rest of a request, which the limits bound.

    After an `HttpError`, and after a request with `keep_alive` false, the reader is closed:
    whatever follows is dropped unread (RFC 9112 §9.6).

    Args:
        limits: Sizes beyond which a request is refused.
        fast: Let plain heads take the fast path. The result is the same without.
    """

    __slots__ = (
        "_body",
        "_buf",
        "_closed",
        "_fast_bytes",
        "_first_s",
        "_head",
        "_last_s",
        "_limits",
        "_marks",
        "_pos",
        "_scan",
        "_waiting",
    )

    def __init__(self, limits: Limits, *, fast: bool = True) -> None:
        self._limits = limits
        # A head no longer than the smaller limit breaks neither.
        self._fast_bytes = min(limits.request_line_bytes, limits.header_bytes) if fast else 0
        self._buf: bytes | bytearray = b""
        self._pos = 0  # where the unread bytes begin
        self._scan = 0  # where the search for the end of the head goes on
        self._head: Head | None = None  # parsed, its body incomplete
        self._body: ChunkedBody | PlainChunks | None = None
        self._waiting = False  # all unread bytes belong to one request, which has begun and is incomplete
        self._first_s = 0.0  # when that request began
        self._last_s = 0.0  # of the last feed
        self._marks: list[tuple[int, float]] = []  # (end in _buf, time) of the feeds before the last
        self._closed = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes held that are not part of a returned request."""
        decoding = self._body.held_bytes if self._body is not None else 0
        return len(self._buf) - self._pos + decoding

    @property
    def phase(self) -> Phase:
        """What is being waited for."""
        if self._closed:
            return Phase.CLOSED
        if self._head is not None:
            return Phase.BODY
        return Phase.HEAD if self._pos < len(self._buf) else Phase.IDLE

    @property
    def first_byte_s(self) -> float | None:
        """When the first byte of the request in progress was read; None while idle."""
        if self._waiting:
            return self._first_s
        return self._time_at(self._pos) if self._pos < len(self._buf) else None

    def feed(self, data: bytes, now: float) -> None:
        """Take bytes that were read.

        Args:
            data: At least one byte.
            now: Monotonic time of the read, in seconds.
        """
        if self._closed:
            return
        buf = self._buf
        if self._pos == len(buf):
            self._buf = data
            self._pos = self._scan = 0
            self._marks.clear()
        else:
            self._append(buf, data)
        self._last_s = now

    def _append(self, buf: bytes | bytearray, data: bytes) -> None:
        pos = self._pos
        if isinstance(buf, bytes):
            buf = bytearray(memoryview(buf)[pos:])
            self._buf = buf
        elif pos:
            del buf[:pos]  # moves a pointer, not the bytes
        if pos:
            self._moved(pos)
        if not self._waiting:
            # One mark a feed would let a client that sends single bytes fill the memory. Merged
            # marks take the later time: a request is never said to have arrived too early.
            if len(self._marks) >= _MAX_MARKS:
                self._marks.pop()
            self._marks.append((len(buf), self._last_s))
        buf += data

    def _moved(self, by: int) -> None:
        """The first `by` bytes of the buffer, which were read, are gone from it."""
        self._pos -= by
        self._scan = max(self._scan - by, 0)
        self._marks = [(end - by, when) for end, when in self._marks if end > by]

    def next(self) -> Request | Continue | None:
        """The next whole request.

        Returns:
            A `Request`; `CONTINUE` once, when the client waits for it; None when more bytes
            are needed.

        Raises:
            HttpError: The bytes must be refused; the reader is closed from then on.
        """
        if self._head is None:
            buf = self._buf
            pos = self._pos
            if pos == len(buf):
                return None
            end = buf.find(b"\r\n\r\n", self._scan, pos + self._fast_bytes)
            if end >= 0 and (plain := recognise(bytes(buf[pos:end]))) is not None:
                method, target, query, headers, length, keep_alive = plain
                start = end + 4
                stop = start + length
                if stop > len(buf) or stop > _LARGE_BYTES or length > self._limits.body_bytes or not keep_alive:
                    return self._next_plain(
                        Head(method, target, query, headers, length, False, keep_alive, False, None), start
                    )
                body = buf[start:stop] if type(buf) is bytes else bytes(memoryview(buf)[start:stop])
                first_s = arrival_s = self._last_s
                if self._waiting:
                    first_s = self._first_s
                    self._waiting = False
                elif self._marks:
                    first_s, arrival_s = self._time_at(pos), self._time_at(stop - 1)
                if stop == len(buf):
                    self._buf = b""
                    stop = 0
                self._pos = self._scan = stop
                return Request(method, target, query, headers, body, first_s, arrival_s)
        return self._next_plain(None, 0)

    def _next_plain(self, head: Head | None, start: int) -> Request | Continue | None:
        """Go on with the head or the body, or with a recognised `head` that ends at `start`."""
        try:
            if head is not None:
                return self._begin(head, start)
            if self._head is not None:
                return self._read_body(self._head)
            return self._read_head()
        except HttpError as error:
            self.refuse(error)
            raise

    def _read_head(self) -> Request | Continue | None:
        """Find the end of the head, within the limits, and parse it with h11."""
        buf = self._buf
        pos = self._pos
        if buf.startswith(b"\r\n", pos):  # RFC 9112 §2.2: empty lines before a request are ignored
            match = _EMPTY_LINES.match(buf, pos)
            self._pos = pos = pos if match is None else match.end()
            self._waiting = False
        size = len(buf)
        if pos == size:
            return None
        first = buf[pos]
        if first not in _TOKEN_CHARS and buf[pos:] != b"\r":
            raise HttpError(400, "This port speaks HTTP without TLS." if first == _TLS_HANDSHAKE else _NO_REQUEST)
        limits = self._limits
        line_end = buf.find(b"\n", pos, pos + limits.request_line_bytes + 2)
        if line_end < 0:
            if size - pos >= limits.request_line_bytes + 2:
                raise HttpError(
                    414, f"The request line is longer than {limits.request_line_bytes} bytes.", "request_line_too_long"
                )
            self._wait()
            return None
        stop = line_end + 1 + limits.header_bytes
        match = _HEAD_END.search(buf, max(self._scan, pos), stop)
        if match is None:
            if size >= stop:
                raise HttpError(
                    431, f"The request headers are larger than {limits.header_bytes} bytes.", "headers_too_large"
                )
            self._scan = max(pos, size - 3)
            self._wait()
            return None
        end = match.end()
        return self._begin(parse_head(bytes(buf[pos:end])), end)

    def _begin(self, head: Head, start: int) -> Request | Continue | None:
        """Go on to the body of a head that ends at `start`."""
        body_bytes = self._limits.body_bytes
        if head.length > body_bytes:
            raise too_large(body_bytes)
        if not self._waiting:
            self._first_s = self._time_at(self._pos)
        self._head = head
        self._pos = start
        if head.length == CHUNKED and head.connection is not None:
            make_h11 = functools.partial(ChunkedBody, head.connection, body_bytes)
            self._body = PlainChunks(body_bytes, make_h11) if self._fast_bytes else make_h11()
        if head.awaits_continue and start == len(self._buf):
            self._wait()
            return CONTINUE
        return self._read_body(head)

    def _read_body(self, head: Head) -> Request | None:
        """The request of `head`, when its body is complete."""
        buf, pos = self._buf, self._pos
        if self._body is None:
            stop = pos + head.length
            if stop > len(buf):
                self._wait()
                return None
            # A slice of a bytearray is a bytearray: through a memoryview the bytes are copied once.
            body = buf[pos:stop] if isinstance(buf, bytes) else bytes(memoryview(buf)[pos:stop])
        else:
            used = self._body.feed(bytes(memoryview(buf)[pos:]))
            if used is None:
                self._buf, self._pos = b"", 0
                self._wait()
                return None
            stop = pos + used
            body = bytes(self._body.body)
        request = Request(
            head.method,
            head.target,
            head.query,
            head.headers,
            body,
            self._first_s,
            self._time_at(stop - 1),
            head.http10,
            head.keep_alive,
        )
        if head.keep_alive:
            self._advance(stop)
        else:
            self.close()
        return request

    def incomplete(self, now: float) -> Request | None:
        """The request whose head has come and whose body has not, as if it had ended at `now`; None for none."""
        head = self._head
        if head is None:
            return None
        return Request(
            head.method, head.target, head.query, head.headers, b"", self._first_s, now, head.http10, keep_alive=False
        )

    def refuse(self, error: HttpError) -> None:
        """Close; `error` gets to know which request it refuses, as far as that can be read."""
        self._name_request(error)
        self.close()

    def _name_request(self, error: HttpError) -> None:
        error.first_byte_s = self.first_byte_s
        if self._head is not None:
            error.method, error.target = self._head.method, self._head.target
            return
        stop = self._pos + self._limits.request_line_bytes  # what is there however it was cut
        if (match := _REQUEST_LINE_START.match(self._buf, self._pos, stop)) is not None:
            error.method, error.target = match[1].decode("ascii"), match[2].decode("ascii")

    def _advance(self, stop: int) -> None:
        """The request that ended at `stop` is out; what follows is the next one's."""
        if stop == len(self._buf):
            self._buf, stop = b"", 0
        self._pos = self._scan = stop
        self._head = self._body = None
        self._waiting = False
        if stop > _LARGE_BYTES:  # a body that is not ours any more must not stay while its reply is made
            self._buf = bytes(memoryview(self._buf)[stop:])
            self._moved(stop)

    def close(self) -> None:
        """Drop what is held, and whatever follows, unread."""
        self._advance(len(self._buf))
        self._marks.clear()
        self._closed = True

    def _wait(self) -> None:
        """Everything unread belongs to one request that has begun; remember when, and forget the rest."""
        if not self._waiting:
            if self._head is None:
                self._first_s = self._time_at(self._pos)
            self._waiting = True
            self._marks.clear()

    def _time_at(self, index: int) -> float:
        """When the byte at `index` of the buffer was read."""
        for end, when in self._marks:
            if index < end:
                return when
        return self._last_s
