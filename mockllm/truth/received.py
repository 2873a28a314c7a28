"""The last requests as they came, so that a test can say what its client sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mockllm.exchange import Exchange, Request

KEPT_BYTES = 16 * 1024 * 1024
"""Most memory for bodies; the oldest requests are let go first, the newest one stays whatever its size."""

HEAD_BYTES = 1000
"""What a request's head is taken to need."""

HIDDEN = "***"
_SECRETS = frozenset({b"authorization", b"proxy-authorization", b"api-key", b"x-api-key", b"cookie"})


class ReceivedRequest(Struct, frozen=True):
    """A request as it came.

    Attributes:
        seq: Its number in this server: header `x-mockllm-seq`, and its record's in the ledger.
        request_id: The client's `X-Request-Id`, or one of ours.
        path: The request's target as sent, without the query.
        headers: Lower-case names; keys and cookies are hidden.
        body: As sent, but without transfer coding.
    """

    seq: int
    request_id: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The decoded body.

        Raises:
            msgspec.DecodeError: It is no JSON.
        """
        return msgspec.json.decode(self.body)


class Received:
    """The last requests that had a body.

    Args:
        size: How many are kept; 0 for none.
        most_bytes: Most memory for them.
    """

    def __init__(self, size: int, most_bytes: int = KEPT_BYTES) -> None:
        self.size = size
        self._kept: deque[tuple[int, str, Request]] = deque()
        self._bytes = 0
        self._most_bytes = most_bytes

    def add(self, request: Request, exchange: Exchange) -> None:
        """Keep a request."""
        kept = self._kept
        kept.append((exchange.seq, exchange.request_id, request))
        self._bytes += len(request.body) + HEAD_BYTES
        while len(kept) > self.size or (self._bytes > self._most_bytes and len(kept) > 1):
            self._bytes -= len(kept.popleft()[2].body) + HEAD_BYTES

    def all(self) -> tuple[ReceivedRequest, ...]:
        """All that are kept, in the order in which they came."""
        return tuple([_shown(*kept) for kept in self._kept])

    def find(self, seq: int) -> ReceivedRequest | None:
        """The one with this number."""
        return next((_shown(*kept) for kept in reversed(self._kept) if kept[0] == seq), None)


def as_json(received: ReceivedRequest) -> bytes:
    """A request as JSON; a body that is no JSON is a text in it."""
    body: Any
    try:
        msgspec.json.decode(received.body)
        body = msgspec.Raw(received.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = received.body.decode("utf-8", "replace")
    fields = {name: getattr(received, name) for name in ("method", "path", "query", "headers")}
    return msgspec.json.encode(fields | {"body": body})


def _shown(seq: int, request_id: str, request: Request) -> ReceivedRequest:
    headers = {
        name.decode("latin-1"): HIDDEN if name in _SECRETS else value.decode("latin-1")
        for name, value in request.headers.items()
    }
    return ReceivedRequest(seq, request_id, request.method, request.target, request.query, headers, request.body)
