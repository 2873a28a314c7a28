"""Chunked bodies decoded without h11, which takes over for trailers and for whatever looks wrong.

Between two chunks h11's decoder has no memory, so it can begin at any of them.

A chunk of one byte costs 0.4 µs here and 9 µs in h11, and nearly all of a body's chunks stay
here: a client that sends megabytes of such chunks must not hold up the streams of others.
`bench/fuzz_http.py` compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mockllm.http.chunkedbody import CHUNK_LINE_BYTES, ChunkedBody, malformed, too_large

# What h11 and the refusals accept as a chunk line: size, extensions without control characters, white space.
_LINE = re.compile(rb"([0-9A-Fa-f]{1,20})(?:;[\t -~\x80-\xff]*+)?[ \t]*+")
_SIZES = {b"%x" % size: size for size in range(1, 512)}


class PlainChunks:
    """Decodes one body; has the interface of `ChunkedBody` and its results.

    Args:
        body_bytes: Limit of the decoded body.
        make_h11: Makes the decoder that takes over.
    """

    def __init__(self, body_bytes: int, make_h11: Callable[[], ChunkedBody]) -> None:
        self.body = bytearray()
        self._body_bytes = body_bytes
        self._make_h11 = make_h11
        self._h11: ChunkedBody | None = None
        self._left = 0  # bytes of the current chunk still to come
        self._ending = False  # the line end after the data is still to come
        self._held = b""  # the beginning of a line

    @property
    def held_bytes(self) -> int:
        """Bytes decoded, and raw bytes not yet decoded."""
        return self._h11.held_bytes if self._h11 is not None else len(self.body) + len(self._held)

    def feed(self, data: bytes) -> int | None:
        """Decode further bytes; see `ChunkedBody.feed`."""
        if self._h11 is not None:
            return self._h11.feed(data)
        held = len(self._held)
        if held:
            data = self._held + data
            self._held = b""
        used = self._decode(data)
        return None if used is None else used - held

    def _decode(self, data: bytes) -> int | None:
        body = self.body
        size = len(data)
        left, pos = self._left, 0
        while True:
            if left:
                stop = pos + left
                body += data[pos:stop]
                if len(body) > self._body_bytes:
                    raise too_large(self._body_bytes)
                if stop > size:
                    self._left = stop - size
                    return None
                pos, left, self._ending = stop, 0, True
                self._left = 0
            if self._ending:
                end = data[pos : pos + 2]
                if end != b"\r\n":
                    if end not in (b"", b"\r"):
                        raise malformed()
                    self._held = end
                    return None
                pos += 2
                self._ending = False
            end_of_line = data.find(b"\r\n", pos, pos + CHUNK_LINE_BYTES + 2)
            if end_of_line < 0:
                if size - pos >= CHUNK_LINE_BYTES + 2:
                    raise malformed()
                self._held = data[pos:]
                return None
            line = data[pos:end_of_line]
            left = _SIZES.get(line, 0) or _size(line)
            if not left:
                if line == b"0" and data.startswith(b"\r\n", end_of_line + 2):
                    return end_of_line + 4
                return self._give_up(data, pos)
            pos = end_of_line + 2

    def _give_up(self, data: bytes, pos: int) -> int | None:
        """Let h11 decode from `pos` on, which is the beginning of a chunk line."""
        self._h11 = self._make_h11()
        self._h11.body = self.body
        used = self._h11.feed(data[pos:])
        return None if used is None else pos + used


def _size(line: bytes) -> int:
    """The size that a chunk line gives; 0 for the last chunk and for what is left to h11."""
    match = _LINE.fullmatch(line)
    return int(match[1], 16) if match is not None else 0
