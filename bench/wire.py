"""The client's side of HTTP/1.1 and SSE: just enough to tell a right reply from a wrong one.

Shared by the probe and by the load that stands in for wrk. It is written apart from the server's
code on purpose: a fault of the server's framing must not be mirrored here.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct


class _Delta(Struct):
    content: str | None = None


class _Choice(Struct):
    delta: _Delta


class _Chunk(Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Chunk).decode


class WrongReplyError(Exception):
    """The server sent what a client could not use."""


class ReplyReader:
    """Reads one reply after another.

    Attributes:
        tokens: Content tokens of the stream so far.
        complete: The reply has ended as it should.
        body: The body of a whole reply.
        bytes_read: All bytes of the reply so far.
    """

    def __init__(self, stream: bool) -> None:
        self._stream = stream
        self.reset()

    def reset(self) -> None:
        """Begin the next reply."""
        self._raw = b""
        self._events = b""
        self._in_head = True
        self._chunked = False
        self._left = 0  # of a body with a length
        self._said_done = False
        self.tokens = 0
        self.bytes_read = 0
        self.body = b""
        self.complete = False

    def feed(self, data: bytes) -> int:
        """Take bytes.

        Returns:
            How many content tokens they brought.

        Raises:
            WrongReplyError: The bytes are no such reply.
        """
        if self.complete:
            raise WrongReplyError(f"bytes after the reply: {data[:60]!r}")
        before = self.tokens
        self.bytes_read += len(data)
        self._raw += data
        if self._in_head and not self._head():
            return 0
        if self._chunked:
            self._chunks()
        else:
            self._left -= len(self._raw)
            self.body += self._raw
            self._raw = b""
            if self._left < 0:
                raise WrongReplyError("more bytes than content-length")
            self.complete = self._left == 0
        if self.complete and self._stream and (self._events or not self._said_done):
            raise WrongReplyError("the stream ended without [DONE]")
        return self.tokens - before

    def _head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._raw[:end].lower()
        if not head.startswith(b"http/1.1 200 "):
            raise WrongReplyError(self._raw[:200].decode("latin-1"))
        self._raw = self._raw[end + 4 :]
        self._in_head = False
        self._chunked = b"\r\ntransfer-encoding: chunked" in head
        if not self._chunked:
            _, found, rest = head.partition(b"\r\ncontent-length:")
            if not found:
                raise WrongReplyError("neither content-length nor chunked")
            self._left = int(rest.partition(b"\r\n")[0])
        return True

    def _chunks(self) -> None:
        raw = self._raw
        at = 0
        while (line_end := raw.find(b"\r\n", at)) >= 0:
            size = int(raw[at:line_end], 16)
            start = line_end + 2
            stop = start + size
            if len(raw) < stop + 2:
                break
            if raw[stop : stop + 2] != b"\r\n":
                raise WrongReplyError("a chunk is not as long as it says")
            at = stop + 2
            if size == 0:
                if at != len(raw):
                    raise WrongReplyError(f"bytes after the reply: {raw[at : at + 60]!r}")
                self.complete = True
                break
            self._events += raw[start:stop]
        self._raw = raw[at:]
        if self._stream:
            self._read_events()

    def _read_events(self) -> None:
        *events, self._events = self._events.split(b"\n\n")
        for event in events:
            if not event.startswith(b"data: "):
                raise WrongReplyError(f"no event: {event[:60]!r}")
            if self._said_done:
                raise WrongReplyError("an event after [DONE]")
            if event == b"data: [DONE]":
                self._said_done = True
                continue
            choices = _decode(event[6:]).choices
            if choices and choices[0].delta.content:
                self.tokens += 1


def post(path: str, body: bytes, *lines: str) -> bytes:
    """A whole POST request."""
    head = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *lines]
    return "\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body
