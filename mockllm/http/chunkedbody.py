"""A chunked request body, decoded by h11, with the refusals on what h11 hides of its framing."""

from __future__ import annotations

import re

import h11

from mockllm.http.refusals import HttpError, check_lines

# Bytes are handed to h11 in slices, because asking it how far it got copies what it holds.
_SLICE_BYTES = 4096

_LAST_LINE = re.compile(rb"\r\n0+(?:[\r\t ;][^\n]*)?\n")  # with the line end before it
_SECTION_END = re.compile(rb"\n\r?\n")

CHUNK_LINE_BYTES = 512
"""How long the size and the extensions of one chunk may be (RFC 9112 §7.1.1 wants a limit)."""

TRAILER_BYTES = 8192
"""How long the trailers may be, with the empty line after them."""


def malformed() -> HttpError:
    """The one answer to a body whose chunks cannot be read."""
    return HttpError(400, "Malformed chunked body.")


def too_large(body_bytes: int) -> HttpError:
    """The one answer to a body over the limit."""
    return HttpError(413, f"The request body is larger than {body_bytes} bytes.", "request_too_large")


class ChunkedBody:
    """Decodes one body; extensions are ignored, trailers checked and dropped (RFC 9112 §7.1).

    Every fault is the same 400, so that the answer does not depend on how the bytes were cut.

    Args:
        connection: h11's connection, which has parsed the head.
        body_bytes: Limit of the decoded body.
    """

    def __init__(self, connection: h11.Connection, body_bytes: int) -> None:
        self.body = bytearray()
        self._connection = connection
        self._body_bytes = body_bytes
        # Raw bytes since the end of the last chunk's data. Data ends with a line end, so the first
        # chunk line is given one too: all are then measured alike, also when h11 takes over midway.
        self._framing = bytearray(b"\r\n")
        self._in_data = False

    @property
    def held_bytes(self) -> int:
        """Bytes decoded, and raw bytes not yet decoded."""
        return len(self.body) + len(self._framing)

    def feed(self, data: bytes) -> int | None:
        """Decode further bytes.

        Returns:
            How many bytes of `data` belong to the body when it is complete, None before that.

        Raises:
            HttpError: 400 for malformed chunks, 413 over the limit.
        """
        for start in range(0, len(data), _SLICE_BYTES):
            piece = data[start : start + _SLICE_BYTES]
            left = self._feed_slice(piece)
            if left is not None:
                return start + len(piece) - left
        return None

    def _feed_slice(self, piece: bytes) -> int | None:
        """Give h11 one slice; how many bytes are left over once the body is complete, or None."""
        self._connection.receive_data(piece)
        if not self._in_data:
            self._framing += piece
        while True:
            if not self._in_data:
                self._check_trailers()
            try:
                event = self._connection.next_event()
            except h11.RemoteProtocolError:
                raise malformed() from None
            if type(event) is h11.Data:
                self._take(event)
            elif type(event) is h11.EndOfMessage:
                left = len(self._connection.trailing_data[0])
                self._check_framing(len(self._framing) - left)
                return left
            else:  # NEED_DATA
                if not self._in_data:
                    self._check_size(len(self._framing))
                return None

    def _take(self, event: h11.Data) -> None:
        rest = self._connection.trailing_data[0]
        if not self._in_data:  # `chunk_start` is lost when the chunk line came alone (h11 0.16)
            self._check_framing(len(self._framing) - len(rest) - len(event.data))
        self.body += event.data
        if len(self.body) > self._body_bytes:
            raise too_large(self._body_bytes)
        self._in_data = not event.chunk_end
        self._framing = bytearray(rest) if event.chunk_end else bytearray()

    def _check_framing(self, size: int) -> None:
        """Check the first `size` bytes of the raw framing, which h11 has accepted."""
        self._check_size(size)
        try:
            check_lines(self._framing[:size])
        except HttpError:
            raise malformed() from None

    def _check_trailers(self) -> None:
        """Refuse bad trailers before h11 sees them, for whose line expression see `parse_head`."""
        last_line = _LAST_LINE.match(self._framing)
        if last_line is not None:
            end = _SECTION_END.search(self._framing, last_line.end() - 1)
            if end is not None:
                self._check_framing(end.end())

    def _check_size(self, size: int) -> None:
        """Check the lengths of the line, and of the trailers behind it, in the first `size` bytes."""
        line_end = self._framing.find(b"\r\n", 2, size)
        if line_end < 0:
            if size - 2 > CHUNK_LINE_BYTES + 1:  # its CR may be there already
                raise malformed()
        elif line_end - 2 > CHUNK_LINE_BYTES or size - line_end - 2 > TRAILER_BYTES:
            raise malformed()
