"""Server-sent events, decoded from bytes that may be cut anywhere, and encoded.

The decoder works on bytes: CR and LF never occur inside a UTF-8 sequence, so a cut in the
middle of a code point needs no care. A line ends at CRLF, LF or CR; a CR that ends one read
ends its line at once, and an LF that begins the next read belongs to it.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html §9.2.5, §9.2.6.
"""

from __future__ import annotations

from msgspec import Struct

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(Struct, frozen=True, gc=False):
    """One dispatched event.

    Attributes:
        data: The values of its `data` lines, joined by LF; UTF-8 as it was sent.
        event: Its type, `message` where none was given.
        id: The last event id that the stream has set, "" for none.
        line: Number of its first `data` line in the stream, from 1.
    """

    data: bytes
    event: str = "message"
    id: str = ""
    line: int = 1

    @property
    def text(self) -> str:
        """The data as text; bytes that are no UTF-8 become U+FFFD, as the standard has it."""
        return self.data.decode("utf-8", "replace")


class SSEDecoder:
    """Turns the bytes of one stream into events.

    Work is linear in the bytes, however they are cut.

    Attributes:
        line: Number of the last whole line, from 1; 0 before the first.
        retry_ms: The reconnection time that the stream asked for, or None.
        unknown_line: Number of the first line that is neither a field of the standard nor a comment,
            0 for none. The standard ignores such lines; many of them mean that this is no event stream.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_data_line",
        "_event",
        "_id",
        "_partial",
        "line",
        "retry_ms",
        "unknown_line",
    )

    def __init__(self) -> None:
        self.line = 0
        self.retry_ms: int | None = None
        self.unknown_line = 0
        self._after_cr = False
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._data_line = 0
        self._event = ""
        self._id = ""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Takes the next bytes, of any length; returns the events that they complete."""
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if not data:
            return []
        lines = data.splitlines()
        open_end = data[-1] not in b"\r\n"
        self._after_cr = data[-1] == 0x0D
        if self._partial and (len(lines) > 1 or not open_end):
            lines[0] = b"".join((*self._partial, lines[0]))
            self._partial.clear()
        if open_end:
            self._partial.append(lines.pop())
        events: list[ServerSentEvent] = []
        for line in lines:
            self.line += 1
            if self.line == 1 and line.startswith(_BOM):
                line = line[len(_BOM) :]
            if line:
                self._field(line)
            elif self._data_line:
                events.append(self._dispatch())
            else:
                self._event = ""
        return events

    def finish(self) -> ServerSentEvent | None:
        """Ends the stream; returns the event that it cut short, if there was one.

        The standard discards an event that no empty line has ended. It is handed out all the
        same, since a recording often lacks its last empty line: the caller decides.
        """
        if self._partial:
            line = b"".join(self._partial)
            self._partial.clear()
            self.line += 1
            self._field(line.removeprefix(_BOM) if self.line == 1 else line)
        return self._dispatch() if self._data_line else None

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data_line = self._data_line or self.line
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit():
                self.retry_ms = int(value)
        elif name and not self.unknown_line:
            self.unknown_line = self.line

    def _dispatch(self) -> ServerSentEvent:
        event = ServerSentEvent(b"\n".join(self._data), self._event or "message", self._id, self._data_line)
        self._data.clear()
        self._data_line = 0
        self._event = ""
        return event


def encode(data: bytes, event: str = "") -> bytes:
    """One event as bytes.

    Args:
        data: UTF-8; each of its lines (CRLF, LF or CR) becomes a `data` line.
        event: Its type, without line breaks; "" leaves the line out.
    """
    if b"\n" in data or b"\r" in data:
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        data = b"\ndata: ".join(lines)
    head = b"event: %b\n" % event.encode() if event else b""
    return b"%bdata: %b\n\n" % (head, data)
