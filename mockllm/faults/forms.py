"""Where the dialects' streams differ: their error event, their end, their finish reason.

Source: https://platform.openai.com/docs/api-reference/responses-streaming/error;
https://docs.anthropic.com/en/docs/build-with-claude/streaming (error events); for chat, vLLM's
`create_streaming_error_response` and what the OpenAI SDKs raise an `APIError` for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

_DONE = b"data: [DONE]\n\n"
_LAST = re.compile(rb"event: (?:response\.(?:completed|incomplete|failed)|message_stop|transcript\.text\.done)\n")
"""The last event of streams that have no `[DONE]`."""

# A quote inside a text is escaped, so none of these can match in one.
_FINISH = re.compile(rb'"(finish_reason|stop_reason)":"[a-z_]+"')
_NUMBER = re.compile(rb'"sequence_number":(\d+)')

_ANTHROPIC_TYPES = {"server_error": "api_error"}

_encode = msgspec.json.Encoder().encode


def error_event(endpoint: str, message: str, type: str, code: str | None, number: Callable[[], int]) -> bytes:
    """The event by which a dialect says that the stream failed.

    Args:
        endpoint: The route's path.
        message, type, code: The API's error.
        number: Gives the next sequence number of a Responses stream.
    """
    if endpoint.startswith("/v1/responses"):
        event = {"type": "error", "code": code or type, "message": message, "param": None, "sequence_number": number()}
        return b"event: error\ndata: " + _encode(event) + b"\n\n"
    if endpoint.startswith("/v1/messages"):
        error = {"type": _ANTHROPIC_TYPES.get(type, type), "message": message}
        return b"event: error\ndata: " + _encode({"type": "error", "error": error}) + b"\n\n"
    return b"data: " + _encode({"error": {"message": message, "type": type, "param": None, "code": code}}) + b"\n\n"


def without_end(events: list[bytes]) -> list[bytes]:
    """Events without the one that ends the stream."""
    return [event for event in events if event != _DONE and not _LAST.match(event)]


def without_finish(endpoint: str, events: list[bytes]) -> list[bytes]:
    """Events without a finish reason; a Responses stream says it in its last event."""
    if endpoint.startswith("/v1/responses"):
        return without_end(events)
    return [_FINISH.sub(rb'"\1":null', event) for event in events]


def last_number(events: list[bytes]) -> int:
    """The last sequence number in Responses events; -1 for none."""
    found = _NUMBER.findall(events[-1]) if events else []
    return int(found[-1]) if found else -1
