"""The writing side of HTTP/1.1: status lines, the date, and chunks (RFC 9112 §4, §7.1).

Whole heads are made once and written with the first bytes of the body; what stands here is the
part that every reply needs, ready made.
"""

from __future__ import annotations

from datetime import UTC, datetime

LAST_CHUNK = b"0\r\n\r\n"
"""Ends a chunked body."""

# RFC 9110 §15, RFC 6585 and RFC 9110's registry; written here because the standard library's
# phrases differ between Python versions.
_REASONS = {
    100: "Continue", 101: "Switching Protocols", 103: "Early Hints",
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
    205: "Reset Content", 206: "Partial Content",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
    409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency",
    425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
}  # fmt: skip
_STATUS_LINES = [b"HTTP/1.1 %d %b\r\n" % (code, _REASONS.get(code, "").encode("ascii")) for code in range(600)]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_TABLE = 2048  # longer than nearly every SSE event
_FIRST = [b"%x\r\n" % size for size in range(_TABLE)]
_NEXT = [b"\r\n%x\r\n" % size for size in range(_TABLE)]  # with the line end of the chunk before


def status_line(status: int) -> bytes:
    """The status line, ended by CR LF.

    Args:
        status: 100–599. An unassigned code has an empty phrase, which the grammar allows.

    Source: RFC 9112 §4.
    """
    return _STATUS_LINES[status]


def chunked(events: list[bytes]) -> bytes:
    """Frame events, each as one chunk; an empty one is left out, since it would end the body.

    Sizes come from a table: 0.1 µs for a single event and 0.03 µs for each of many, against
    0.2 and 0.1 µs with `b"%x\\r\\n%b\\r\\n"`; slices set the pieces in place, which is 1.4 times as
    fast as a loop that appends them (`python -m bench stream`).

    Args:
        events: Pieces of a body, of any length.

    Returns:
        The chunks, without the last one (`LAST_CHUNK`).

    Source: RFC 9112 §7.1.
    """
    if len(events) == 1:
        event = events[0]
        if 0 < len(event) < _TABLE:
            return _FIRST[len(event)] + event + b"\r\n"
    sizes = list(map(len, events))
    if sizes and min(sizes) > 0 and max(sizes) < _TABLE:
        parts = [b"\r\n"] * (2 * len(sizes) + 1)
        parts[0:-1:2] = map(_NEXT.__getitem__, sizes)
        parts[1::2] = events
        parts[0] = _FIRST[sizes[0]]
        return b"".join(parts)
    return chunked_any(events)


def chunked_any(events: list[bytes]) -> bytes:
    """The same for events of any size: the plain twin."""
    pieces: list[bytes] = []
    append = pieces.append
    for event in events:
        if event:
            try:
                append(_NEXT[len(event)])
            except IndexError:
                append(b"\r\n%x\r\n" % len(event))
            append(event)
    if not pieces:
        return b""
    pieces[0] = pieces[0][2:]
    append(b"\r\n")
    return b"".join(pieces)


class Date:
    """The `Date` header, formatted once a second."""

    __slots__ = ("_header", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._header = b""

    def header(self, wall_s: float) -> bytes:
        """The header line, ended by CR LF.

        Args:
            wall_s: Seconds since the Unix epoch.

        Source: RFC 9110 §6.6.1, and §5.6.7 for the format.
        """
        second = int(wall_s)
        if second != self._second:
            t = datetime.fromtimestamp(second, UTC)
            day, month = _DAYS[t.weekday()], _MONTHS[t.month - 1]  # strftime would ask the locale
            line = f"date: {day}, {t.day:02} {month} {t.year:04} {t.hour:02}:{t.minute:02}:{t.second:02} GMT\r\n"
            self._header = line.encode("ascii")
            self._second = second
        return self._header
