"""What every application does with a request: number it, find its route, answer what is wrong with it.

Requests get a number and an `Exchange`; when the reply has gone out, or failed to, `finished` hands
that record to the observers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from mockllm.app.auth import Keys
from mockllm.app.lifecycle import Lifecycle
from mockllm.app.replies import Replies
from mockllm.app.router import Route, Router
from mockllm.clock import Clock
from mockllm.errors import RequestError
from mockllm.exchange import End, Exchange, Reply, Request
from mockllm.generation.ids import Ids
from mockllm.truth import Truth
from mockllm.version import VERSION

METHOD_CHARACTERS, PATH_CHARACTERS = 32, 1024
"""So much of them is recorded: a ledger of 10,000 requests must not grow by what clients send."""

ID_BYTES = 512
"""The longest `X-Request-Id` that is taken.

Source: https://platform.openai.com/docs/api-reference/debugging-requests (`X-Client-Request-Id`)."""

Observer = Callable[[Exchange], None]
"""Gets every exchange once, when it has ended."""


class BaseApp:
    """An application without routes.

    Args:
        truth: The books.
        clock: Tells the wall time that stands in replies.
        cors: Whether browsers of any origin may read the replies.
        ids: Makes ids.
        observers: Get every exchange that has ended, after the books.
        keys: Open the routes that are not open.
    """

    def __init__(
        self, truth: Truth, clock: Clock, *, cors: bool, ids: Ids, observers: Sequence[Observer], keys: Keys | None
    ) -> None:
        self._clock = clock
        self.truth = truth
        self._observers: tuple[Observer, ...] = (truth.finished, *observers)
        self._seq = 0
        self._seq_step = 1
        self._ids = ids
        self._replies = Replies(cors)
        self._keys = keys
        self.lifecycle = Lifecycle(clock)
        self._router = Router()

    # ---- the protocol's calls ----------------------------------------------------------------

    def exchange(self, request: Request) -> Exchange:
        """Begin the record of a request."""
        self._seq += self._seq_step
        method, path = request.method[:METHOD_CHARACTERS], request.target[:PATH_CHARACTERS]
        exchange = Exchange(self._seq, method, path, request.first_byte_s, request.arrival_s)
        given = request.headers.get(b"x-request-id")
        exchange.request_id = given.decode("latin-1") if given and len(given) <= ID_BYTES else self._ids("req-")
        return exchange

    def handle(self, request: Request, exchange: Exchange) -> Reply:
        """Answer a request; what is wrong with it is answered in the API's error shape."""
        try:
            route, rest = self._find(request, exchange)
            if request.method == "OPTIONS":
                return self._replies.options(request, exchange, route.allow)
            if self._keys is not None and not route.open:
                self._keys.check(request.headers)
            return self._respond(route, request, exchange, rest)
        except RequestError as error:
            exchange.outcome = End.REFUSED
            return self._replies.error(exchange, error)

    def _respond(self, route: Route, request: Request, exchange: Exchange, rest: str) -> Reply:
        return self._router.handler(route, request.method)(request, exchange, rest)

    def unhandled(self, request: Request) -> Exchange:
        """Begin the record of a request that is not whole, or none at all, and so is not handled."""
        exchange = self.exchange(request)
        with suppress(RequestError):
            self._find(request, exchange)
        return exchange

    def _find(self, request: Request, exchange: Exchange) -> tuple[Route, str]:
        route, rest = self._router.find(request.target)
        exchange.endpoint = route.path
        if not route.recorded:  # the number goes to the next request
            exchange.seq = 0
            self._seq -= self._seq_step
        return route, rest

    def refusal(self, error: RequestError, exchange: Exchange) -> Reply:
        """The answer to bytes that are no proper request; the connection closes after it."""
        return self._replies.error(exchange, error, close=True)

    def failure(self, exchange: Exchange) -> Reply:
        """The answer where a bug of ours prevented one; the connection closes after it."""
        exchange.outcome = End.ERROR
        error = RequestError(
            "The mock server failed; its log has the reason.", status=500, type="server_error", code="internal_error"
        )
        return self._replies.error(exchange, error, close=True)

    def finished(self, exchange: Exchange) -> None:
        """Hand a finished record to the observers."""
        for observer in self._observers:
            observer(exchange)

    # ---- routes that every application has -----------------------------------------------------

    def _index(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        paths = sorted({route.path + ("{id}" if route.prefix else "") for route in self._router.routes})
        body = {"name": "mockllm", "version": VERSION, "endpoints": paths}
        return self._replies.whole(exchange, msgspec.json.encode(body))

    def _health(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        state = self.lifecycle.state
        body = {"status": state, "timestamp": self._clock.wall()}
        return self._replies.whole(exchange, msgspec.json.encode(body), status=200 if state == "healthy" else 503)
