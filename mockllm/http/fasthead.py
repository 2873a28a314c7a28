"""A conservative recogniser of the plain heads that clients and load generators send.

It accepts only what h11 with the refusals accepts, with the same result, and leaves everything
else to them: other versions than HTTP/1.1, other targets than plain paths, repeated headers,
transfer codings, expectations, tabs and non-ASCII bytes in values, anything malformed.

A header line that was seen before costs one dictionary look-up; most lines of a client repeat
from request to request, and the ones that do not (ids, traces, lengths) are parsed one by one.
The memo holds lines that passed every check, so that a line found there needs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mockllm.http.refusals import MAX_HEADERS, is_host, tokens

_MEMO_LINES = 1024
_MEMO_LINE_BYTES = 256
_MEMO_NAMES = 256

_REQUEST_LINE = re.compile(rb"([-!#$%&'*+.^_`|~0-9a-zA-Z]+) (/[!\"$-~]*) HTTP/1\.1")  # "!" to "~", "#" excepted
# No tabs, no bytes beyond ASCII. Possessive, or a line of spaces would take quadratic time to fail.
_HEADER_LINE = re.compile(rb"([-!#$%&'*+.^_`|~0-9a-zA-Z]++): *+([ -~]*+)")
_MAX_LENGTH_DIGITS = 18
_LEFT_TO_H11 = frozenset({b"transfer-encoding", b"expect", b"upgrade"})
_CHECKED = _LEFT_TO_H11 | {b"content-length", b"host"}
# Different in each request: to keep them would only push others out of the memo.
_NOT_KEPT = frozenset({b"x-request-id", b"x-correlation-id", b"idempotency-key", b"traceparent", b"tracestate"})


class _NotPlainError(Exception):
    """Left to h11."""


class HeaderLines(dict[bytes, tuple[bytes, bytes]]):
    """Header lines seen lately, parsed; a missing one is parsed, and kept unless it is long.

    Attributes:
        names: Lower-case names of those seen lately whose values need no check, and whether
            their lines are kept.
    """

    __slots__ = ("names",)

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[bytes, tuple[bytes, bool]] = {}

    def __missing__(self, line: bytes) -> tuple[bytes, bytes]:
        match = _HEADER_LINE.fullmatch(line)
        if match is None:
            raise _NotPlainError
        raw_name, value = match.groups()
        name, kept = self.names.get(raw_name) or self._name(raw_name, value)
        pair = (name, value.rstrip(b" "))
        if kept and len(line) <= _MEMO_LINE_BYTES:
            if len(self) >= _MEMO_LINES:
                self.clear()
            self[line] = pair
        return pair

    def _name(self, raw_name: bytes, value: bytes) -> tuple[bytes, bool]:
        name = raw_name.lower()
        if name in _CHECKED:
            _check(name, value.rstrip(b" "))
            return name, True
        known = (name, name not in _NOT_KEPT)
        if len(name) <= _MEMO_LINE_BYTES:
            if len(self.names) >= _MEMO_NAMES:
                self.names.clear()
            self.names[raw_name] = known
        return known


class RequestLines(dict[bytes, tuple[str, str, str]]):
    """Request lines seen lately, as method, path and query."""

    def __missing__(self, line: bytes) -> tuple[str, str, str]:
        match = _REQUEST_LINE.fullmatch(line)
        if match is None or match[1] == b"CONNECT":
            raise _NotPlainError
        path, _, query = match[2].decode("ascii").partition("?")
        parts = (match[1].decode("ascii"), path, query)
        if len(line) <= _MEMO_LINE_BYTES:
            if len(self) >= _MEMO_LINES:
                self.clear()
            self[line] = parts
        return parts


def _check(name: bytes, value: bytes) -> None:
    """Pass only values that mean what they seem to mean."""
    if name in _LEFT_TO_H11:
        raise _NotPlainError
    if name == b"content-length":
        if not value.isdigit() or len(value) > _MAX_LENGTH_DIGITS:
            raise _NotPlainError
    elif name == b"host" and not is_host(value):
        raise _NotPlainError


Plain = tuple[str, str, str, dict[bytes, bytes], int, bool]


def recogniser(request_lines: RequestLines, header_lines: HeaderLines) -> Callable[[bytes], Plain | None]:
    """A recogniser with the given memos, which together stay below two megabytes."""
    request_line = request_lines.__getitem__
    header = header_lines.__getitem__

    def recognise(head: bytes) -> Plain | None:
        """Parse a head.

        Args:
            head: From the first byte of the request line up to, without, the blank line and the
                line end before it.

        Returns:
            Method, path, query, headers, length of the body and keep-alive; None for what is left to h11.
        """
        lines = head.split(b"\r\n")
        try:
            method, target, query = request_line(lines[0])
            del lines[0]
            headers = dict(map(header, lines))
        except _NotPlainError:
            return None
        if not len(headers) == len(lines) <= MAX_HEADERS or b"host" not in headers:
            return None
        keep_alive = True
        if (options := headers.get(b"connection")) is not None and options != b"keep-alive":
            keep_alive = b"close" not in tokens(options)
        return method, target, query, headers, int(headers.get(b"content-length", 0)), keep_alive

    return recognise


recognise = recogniser(RequestLines(), HeaderLines())
