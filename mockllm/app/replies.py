"""Builds replies: head lines that all replies share, whole bodies, errors."""

from __future__ import annotations

import msgspec

from mockllm.dialects.anthropic import anthropic_error, speaks_anthropic
from mockllm.errors import RequestError
from mockllm.exchange import Exchange, Reply, Request, Timeline

JSON = b"content-type: application/json\r\n"
EVENT_STREAM = b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"
TEXT = b"content-type: text/plain; charset=utf-8\r\n"

_CORS = b"access-control-allow-origin: *\r\n"
_CORS_METHODS = b"access-control-allow-methods: GET, POST, OPTIONS\r\n"
_CORS_HEADERS = b"access-control-allow-headers: Content-Type, Authorization"


class Replies:
    """Makes replies of one server.

    Args:
        cors: Whether browsers of any origin may read them.
    """

    def __init__(self, cors: bool) -> None:
        self._cors = cors
        self._shared = _CORS + _CORS_METHODS + _CORS_HEADERS + b"\r\n" if cors else b""

    def lines(self, exchange: Exchange, content_type: bytes) -> bytes:
        """The head lines of any reply."""
        request_id = exchange.request_id.encode("latin-1")
        lines = b"%b%bx-request-id: %b\r\n" % (content_type, self._shared, request_id)
        return lines + b"request-id: %b\r\n" % request_id if speaks_anthropic(exchange.path) else lines

    def whole(
        self, exchange: Exchange, body: bytes, *, status: int = 200, content_type: bytes = JSON, more: bytes = b""
    ) -> Reply:
        """A whole reply, due at once."""
        timeline = Timeline(1, lambda first, upto: [body])
        return Reply(status, self.lines(exchange, content_type) + more, timeline, len(body))

    def error(self, exchange: Exchange, error: RequestError, *, close: bool = False) -> Reply:
        """An error in the shape of the API that was asked."""
        more = "".join([f"{name}: {value}\r\n" for name, value in error.headers.items()]).encode("latin-1")
        asked = speaks_anthropic(exchange.path)
        body = anthropic_error(error, exchange.request_id) if asked else error_body(error)
        reply = self.whole(exchange, body, status=error.status, more=more)
        reply.close = close
        return reply

    def options(self, request: Request, exchange: Exchange, allow: str) -> Reply:
        """The answer to OPTIONS, preflight or not: 204, and every header the preflight asks for is allowed."""
        lines = b"allow: %b\r\nx-request-id: %b\r\n" % (allow.encode(), exchange.request_id.encode("latin-1"))
        if self._cors:
            asked = request.headers.get(b"access-control-request-headers", b"")
            lines += _CORS + _CORS_METHODS + _CORS_HEADERS
            lines += (b", " + asked if asked else b"") + b"\r\naccess-control-max-age: 86400\r\n"
        return Reply(204, lines, Timeline(1, lambda first, upto: []), 0)


def error_body(error: RequestError) -> bytes:
    """The API's error object.

    Source: https://platform.openai.com/docs/guides/error-codes.
    """
    return msgspec.json.encode(
        {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
    )
