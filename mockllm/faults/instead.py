"""Faults in place of the reply: a status with the API's error, or what a proxy sends.

Source: https://platform.openai.com/docs/guides/error-codes; RFC 9110 §15 for the statuses; the
SDKs' `_base_client.py` for `retry-after-ms` and `x-should-retry`.
"""

from __future__ import annotations

import re
from math import ceil
from typing import Annotated, Literal

from msgspec import Meta

from mockllm.errors import RequestError
from mockllm.exchange import Reply
from mockllm.faults.durations import duration
from mockllm.faults.fault import Fault, Seconds, Site, Struck

_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", "invalid_request", "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("permission_error", "permission_denied", "You are not allowed to do this."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    408: ("timeout_error", "request_timeout", "The request took too long."),
    409: ("invalid_request_error", "conflict", "The resource is being changed by another request."),
    413: ("invalid_request_error", "request_too_large", "The request is too large."),
    422: ("invalid_request_error", "unprocessable", "The request cannot be processed."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again in {again}."),
    500: ("server_error", "internal_error", "The server had an error while processing your request."),
    502: ("server_error", "bad_gateway", "Bad gateway."),
    503: ("server_error", "service_unavailable", "The engine is currently overloaded, please try again later."),
    504: ("server_error", "gateway_timeout", "The upstream server did not answer in time."),
    529: ("overloaded_error", "overloaded", "Overloaded."),
}
"""Type, code and message of a status."""

_TITLES = {502: "502 Bad Gateway", 503: "503 Service Temporarily Unavailable", 504: "504 Gateway Time-out"}

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_MEDIA_TYPE = r"^[^\x00-\x1f\x7f]+$"

RATE_LIMIT_WAIT_S = 1.0
"""What a 429 asks the client to wait, where nothing else is said."""


class Status(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="status"):
    """An error in place of the reply.

    Attributes:
        status: 200–599.
        body: The API's error as `json`, a proxy's `html` page or `text`, or `empty`.
        message, type, code: Of the API's error, where the usual ones will not do.
        content_type: In place of the body's own.
        retry_after_s: Sent as `Retry-After` (whole seconds, rounded up) and `retry-after-ms`.
            A 429 has it by default (1 s).
        send: A further header of the reply, `name: value`; more of them as a table.
        delay_s: How long the client waits for it.
    """

    status: Annotated[int, Meta(ge=200, le=599)]
    body: Literal["json", "html", "text", "empty"] = "json"
    message: str | None = None
    type: str | None = None
    code: str | None = None
    content_type: Annotated[str, Meta(pattern=_MEDIA_TYPE)] | None = None
    retry_after_s: Seconds | None = None
    send: str | dict[str, str] = ""
    delay_s: Seconds = 0.0

    def __post_init__(self) -> None:
        headers_of(self.send)

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        struck = self._reply(site)
        if self.content_type is not None:
            struck.headers = with_content_type(struck.headers, self.content_type)
        struck.timeline.offset_s = self.delay_s
        struck.wire = reply.wire  # what a fault before this one does on the wire stays
        what = f"{self.status}" if self.body == "json" else f"{self.status} with {_BODIES[self.body]}"
        words = f"answered {what}" + (f" after {self.delay_s:g} s" if self.delay_s else "")
        return Struck(struck, words, 0, replaced=True)

    def _reply(self, site: Site) -> Reply:
        headers = self._headers()
        if self.body == "json":
            usual_type, usual_code, message = _ERRORS.get(self.status, ("server_error", None, "Something went wrong."))
            again = duration(RATE_LIMIT_WAIT_S if self.retry_after_s is None else self.retry_after_s)
            return site.error(
                RequestError(
                    message.format(again=again) if self.message is None else self.message,
                    type=self.type or usual_type,
                    code=self.code or usual_code,
                    status=self.status,
                    headers=headers,
                )
            )
        more = "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode("latin-1")
        line, body = b"content-type: text/plain; charset=utf-8\r\n", self._text().encode()
        if self.body == "html":
            line = b"content-type: text/html\r\n"
        return site.whole(self.status, line, more, body)

    def _text(self) -> str:
        message = self.message or _TITLES.get(self.status) or _ERRORS.get(self.status, ("", "", "Error."))[2]
        if self.body == "empty":
            return ""
        if self.body == "text":
            return message + "\n"
        return (
            f"<html>\r\n<head><title>{message}</title></head>\r\n"
            f"<body>\r\n<center><h1>{message}</h1></center>\r\n</body>\r\n</html>\r\n"
        )

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        wait_s = self.retry_after_s
        if wait_s is None and self.status == 429:
            wait_s = RATE_LIMIT_WAIT_S
        if wait_s is not None:
            headers |= {"retry-after": str(ceil(wait_s)), "retry-after-ms": str(ceil(wait_s * 1e3))}
        if self.status == 429:
            headers |= {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}
            headers |= {"x-ratelimit-reset-requests": duration(wait_s or 0.0)}
            headers |= {"x-ratelimit-limit-tokens": "150000", "x-ratelimit-remaining-tokens": "149000"}
            headers |= {"x-ratelimit-reset-tokens": "400ms"}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return headers | headers_of(self.send)


_BODIES = {"html": "an HTML page", "text": "plain text", "empty": "an empty body"}


class ContentType(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="content-type"):
    """The reply is as planned, but its `Content-Type` is `value`."""

    value: Annotated[str, Meta(pattern=_MEDIA_TYPE)] = "text/html"

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        reply.headers = with_content_type(reply.headers, self.value)
        return Struck(reply, f"sent content-type {self.value}")


def with_content_type(headers: bytes, value: str) -> bytes:
    """Head lines with another content type."""
    return re.sub(rb"content-type: [^\r]*\r\n", lambda _: b"content-type: %b\r\n" % value.encode("latin-1"), headers)


def headers_of(given: str | dict[str, str]) -> dict[str, str]:
    """Further headers, as a table or as one text.

    Raises:
        ValueError: One is no header.
    """
    lines = [given] if given and isinstance(given, str) else []
    if isinstance(given, dict):
        lines = [f"{name}: {value}" for name, value in given.items()]
    found = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None or not match[2].isascii():
            raise ValueError(f"{line!r} is not a header, name: value")
        found[match[1].lower()] = match[2]
    return found
