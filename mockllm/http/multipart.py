"""multipart/form-data, as file uploads send it (RFC 7578 over RFC 2046 §5.1).

The body is cut at its boundary with bytes methods; only the few header lines of each part go
through the standard library's `email`. Contents are views of the body: a file is neither
copied nor decoded.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from msgspec import Struct

from mockllm.errors import RequestError

if TYPE_CHECKING:
    from email.message import Message
    from email.parser import HeaderParser

_MAX_PARTS = 128  # each takes 40 µs, and a form of the API has a dozen
_MAX_PART_HEADER_BYTES = 8192
_MAX_SEMICOLONS = 64  # `email` takes quadratic time over them: 0.2 s for 60,000
_MAX_BOUNDARY_CHARS = 70  # RFC 2046 §5.1.1
# What `email` raises on broken parameters: numbers of 5,000 digits, charsets that are none, …
_EMAIL_ERRORS = (ValueError, LookupError, TypeError, AttributeError)


class Part(Struct, frozen=True):
    """One field of the form.

    Attributes:
        name: The field's name.
        filename: As the client gave it, with any folders; None for a plain field.
        content_type: The part's own type, without parameters; None when it gives none.
        body: A view of the content.
    """

    name: str
    filename: str | None
    content_type: str | None
    body: memoryview

    def text(self) -> str:
        """The content as text.

        Raises:
            RequestError: It is not UTF-8.
        """
        try:
            return str(self.body, "utf-8")
        except UnicodeDecodeError:
            raise RequestError(f"The field {self.name!r} is not UTF-8 text.", param=self.name) from None


def parse_multipart(content_type: bytes, body: bytes) -> list[Part]:
    """Split a form into its parts.

    Args:
        content_type: The request's `Content-Type`.
        body: The whole body.

    Returns:
        The parts in order; a name may come more than once.

    Raises:
        RequestError: The type is another one, or the body does not keep to it.
    """
    delimiter = b"--" + _boundary(content_type)
    view = memoryview(body)
    parts: list[Part] = []
    start = _after_first_delimiter(body, delimiter)
    while not body.startswith(b"--", start):
        if len(parts) == _MAX_PARTS:
            raise RequestError(f"The form has more than {_MAX_PARTS} parts.")
        headers_start = _end_of_delimiter_line(body, start)
        stop = body.find(b"\r\n" + delimiter, headers_start - 2)
        if stop < 0:
            raise RequestError("The multipart body is cut off: its closing boundary is missing.")
        parts.append(_part(body, view, headers_start, stop))
        start = stop + 2 + len(delimiter)
    return parts


def _boundary(content_type: bytes) -> bytes:
    try:
        header = _parse_headers(b"Content-Type: " + content_type)
        is_form, boundary = header.get_content_type() == "multipart/form-data", header.get_boundary()
    except _EMAIL_ERRORS:
        raise RequestError("The Content-Type is malformed.") from None
    if not is_form:
        raise RequestError("The Content-Type must be multipart/form-data.")
    if not boundary or len(boundary) > _MAX_BOUNDARY_CHARS:
        raise RequestError(f"The Content-Type must name a boundary of 1 to {_MAX_BOUNDARY_CHARS} characters.")
    return boundary.encode("utf-8", "surrogateescape")


def _after_first_delimiter(body: bytes, delimiter: bytes) -> int:
    if body.startswith(delimiter):
        return len(delimiter)
    found = body.find(b"\r\n" + delimiter)  # what stands before it is a preamble, to be ignored
    if found < 0:
        raise RequestError("The multipart body does not contain the boundary that its Content-Type names.")
    return found + 2 + len(delimiter)


def _end_of_delimiter_line(body: bytes, start: int) -> int:
    """Where the part begins: after padding (RFC 2046 §5.1.1) and the line end."""
    if body.startswith(b"\r\n", start):
        return start + 2
    end = body.find(b"\r\n", start, start + _MAX_PART_HEADER_BYTES)
    if end < 0 or body[start:end].strip(b" \t"):
        raise RequestError("The multipart body has a malformed boundary line.")
    return end + 2


def _part(body: bytes, view: memoryview, start: int, stop: int) -> Part:
    """The part between two delimiter lines; a part without headers begins with an empty line."""
    end = body.find(b"\r\n\r\n", start - 2, min(stop + 2, start + _MAX_PART_HEADER_BYTES))
    if end < start:
        raise RequestError("A part of the multipart body lacks its headers.")
    try:
        return _named_part(_parse_headers(body[start:end]), view[end + 4 : stop])
    except _EMAIL_ERRORS:
        raise RequestError("The headers of a part of the multipart body are malformed.") from None


def _named_part(headers: Message, body: memoryview) -> Part:
    if headers.get_content_disposition() != "form-data":
        raise RequestError("A part of the multipart body has no Content-Disposition: form-data.")
    name = headers.get_param("name", header="content-disposition")
    if not isinstance(name, str):  # absent, or in RFC 2231's coding, which RFC 7578 §4.2 forbids
        raise RequestError("A part of the multipart body has no name.")
    content_type = headers.get_content_type() if "content-type" in headers else None
    return Part(name, headers.get_filename(), content_type, body)


@functools.cache
def load_email() -> HeaderParser[Message]:
    """The standard library's parser, imported by the first form: importing it takes 15 ms of every start."""
    from email.parser import HeaderParser

    return HeaderParser()


def _parse_headers(lines: bytes) -> Message:
    """Header lines through `email`; names in UTF-8, as browsers and HTTP libraries send them."""
    if lines.count(b";") > _MAX_SEMICOLONS:
        raise ValueError("too many parameters")
    return load_email().parsestr(lines.decode("utf-8", "replace") + "\r\n\r\n")
