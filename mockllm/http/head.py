"""One request head through h11 and the refusals: the authority that faster ways are compared with."""

from __future__ import annotations

from collections.abc import Mapping

import h11
from msgspec import Struct

from mockllm.http.refusals import (
    HttpError,
    check_count,
    check_headers,
    check_lengths,
    check_lines,
    check_version,
    split_target,
    tokens,
)

CHUNKED = -1
_MESSAGE_CHARS = 200
# More than the chunk decoder's own limits let h11 hold, so that theirs give the answer.
_BEYOND_LIMITS_BYTES = 65536


class Head(Struct, frozen=True):
    """What a head says, ready to become a `Request` when the body is there.

    Attributes:
        length: Bytes of the body, or `CHUNKED`.
        awaits_continue: The client holds the body back until `100 Continue`.
        connection: h11's connection, which goes on to decode a chunked body; None from the
            fast path.
    """

    method: str
    target: str
    query: str
    headers: Mapping[bytes, bytes]
    length: int
    http10: bool
    keep_alive: bool
    awaits_continue: bool
    connection: h11.Connection | None


def parse_head(raw: bytes) -> Head:
    """Parse a whole head.

    Args:
        raw: From the first byte of the request line to the end of the blank line.

    Raises:
        HttpError: The head is malformed, ambiguous or not supported.
    """
    # These come before h11, which takes 3 µs for each line, and quadratic time for a line in
    # which a control character follows many spaces: 64 KB of them would stop it for 20 s.
    check_count(raw)
    check_lines(raw)
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_BEYOND_LIMITS_BYTES)
    connection.receive_data(raw)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise HttpError(error.error_status_hint, f"Malformed HTTP request: {error}"[:_MESSAGE_CHARS]) from None
    if type(event) is not h11.Request:  # a head is whole by h11's own rule, so it makes a request or an error
        raise HttpError(400, "Malformed HTTP request.")
    http10 = check_version(event.http_version)
    check_lengths(raw)
    headers = check_headers(event.headers, http10)
    method = event.method.decode("ascii")
    path, query, authority = split_target(method, event.target.decode("ascii"))
    if authority is not None:
        headers[b"host"] = authority.encode("ascii")  # RFC 9112 §3.2.2: it takes the header's place
    options = tokens(headers.get(b"connection", b""))
    length = CHUNKED if b"transfer-encoding" in headers else int(headers.get(b"content-length", b"0"))
    return Head(
        method=method,
        target=path,
        query=query,
        headers=headers,
        length=length,
        http10=http10,
        keep_alive=b"close" not in options and (not http10 or b"keep-alive" in options),
        awaits_continue=length != 0 and not http10 and b"expect" in headers and bool(tokens(headers[b"expect"])),
        connection=connection,
    )
