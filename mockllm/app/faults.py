"""Where faults meet requests: the server's own, and those that a request asks for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mockllm.app.chooser import Chooser, Seen
from mockllm.app.replies import Replies
from mockllm.app.router import Handler, Route
from mockllm.config import Config, options, read, split_list
from mockllm.dialects.asked_fault import fault_in_body, to_fault
from mockllm.dialects.overrides import FAULT_HEADER
from mockllm.errors import ConfigError, RequestError
from mockllm.exchange import End, Exchange, Reply, Request
from mockllm.faults import AnyFault, Fault, Site
from mockllm.generation.memo import Memo

_BODY_FAULT = "mockllm.fault"

ASKED_KEPT, ASKED_KEPT_BYTES = 256, 1 << 20
"""How many different faults of requests are remembered, with their counts, and how long these may be together."""

ASKED_SEEN = 1024
"""How many different requests each of them counts apart."""

_OPTION = next(option for option in options(Config) if option.name == "fault")


class Faults:
    """Spoils replies.

    Args:
        configured: The server's faults, in order.
        seed: Keys the draws.
        key_header: Lower-case name of the header that keys draws in place of the occurrence, or None.
        on_request: Requests may ask for faults of their own.
        replies: Makes the replies that come in place of good ones.
    """

    def __init__(
        self,
        configured: Sequence[Fault],
        *,
        seed: int,
        key_header: bytes | None,
        on_request: bool,
        replies: Replies,
    ) -> None:
        self._configured = Chooser(configured, seed) if configured else None
        self._seed = seed
        self._key_header = key_header
        self._on_request = on_request
        self._replies = replies
        self._asked: Memo[Chooser] = Memo(ASKED_KEPT, ASKED_KEPT_BYTES)

    def early(self, request: Request, route: Route) -> bool:
        """Whether a request may meet a fault, as far as can be told before it is handled.

        That costs 0.2 µs where there is none (2-core AMD EPYC VM, CPython 3.11).
        """
        if self._configured is not None:
            return True
        return self._on_request and (FAULT_HEADER in request.headers or (not route.overridable and bool(request.body)))

    def answer(self, handler: Handler, route: Route, request: Request, exchange: Exchange, rest: str) -> Reply:
        """The handler's reply, refusals too, and what the faults make of it.

        Raises:
            RequestError: 400, the request asks for a fault that does not exist.
        """
        asked = self._from_header(request) if self._on_request else None
        if asked is None and self._on_request and not route.overridable:
            asked = self._chooser(fault_in_body(request.body))
        try:
            reply = handler(request, exchange, rest)
        except RequestError as error:
            exchange.outcome = End.REFUSED
            reply = self._replies.error(exchange, error)
        return self.after(reply, route, request, exchange, asked)

    def after(
        self, reply: Reply, route: Route, request: Request, exchange: Exchange, asked: Chooser | None = None
    ) -> Reply:
        """What the faults make of a reply.

        Args:
            asked: What the request asks for, where that is known; otherwise it is the exchange's.

        Raises:
            RequestError: See `answer`.
        """
        if asked is None:
            asked = self._chooser(exchange.asked_fault)
        chooser = self._configured if asked is None else asked
        if chooser is None:
            return reply
        seen = Seen(
            (request.target, route.path),
            asked is not None or (request.method == "POST" and not route.open),
            exchange.model,
            request.headers,
            request.body,
            None if self._key_header is None else request.headers.get(self._key_header),
        )
        for fault in chooser.choose(seen):
            reply = self._strike(fault, reply, exchange)
        return reply

    def _strike(self, fault: Fault, reply: Reply, exchange: Exchange) -> Reply:
        replies = self._replies

        def whole(status: int, content_type: bytes, more: bytes, body: bytes) -> Reply:
            return replies.whole(exchange, body, status=status, content_type=content_type, more=more)

        struck = fault.strike(reply, Site(exchange.endpoint, lambda error: replies.error(exchange, error), whole))
        if struck is None:
            return reply
        exchange.outcome = End.FAULTED
        exchange.fault = f"{exchange.fault}; {struck.words}" if exchange.fault else struck.words
        if struck.tokens is not None:
            exchange.token_steps = struck.tokens
        if struck.replaced:
            exchange.tokens = 0
        if struck.tokens == 0:  # no token is sent, so there is none whose time could be measured
            exchange.finish_reason = ""
        return struck.reply

    # ---- a request's own ---------------------------------------------------------------------

    def _from_header(self, request: Request) -> Chooser | None:
        """What the request's header asks for; the same faults count on from one request to the next."""
        text = request.headers.get(FAULT_HEADER)
        if text is None:
            return None
        return self._asked.get(text) or self._remember(text, parse_faults(_text(text), FAULT_HEADER.decode()))

    def _chooser(self, plain: Any) -> Chooser | None:
        """The same of what a body or a script asks for."""
        if plain is None:
            return None
        label = b"body:" + msgspec.json.encode(plain)
        chooser = self._asked.get(label)
        if chooser is not None:
            return chooser
        given = to_fault(plain, _BODY_FAULT)
        if isinstance(given, str):
            return self._remember(label, parse_faults(given, _BODY_FAULT))
        return self._remember(label, given if isinstance(given, tuple) else (given,))

    def _remember(self, label: bytes, faults: Sequence[Fault]) -> Chooser:
        return self._asked.keep(label, Chooser(faults, self._seed, limit=ASKED_SEEN))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:  # nothing says that a header is UTF-8 (RFC 9110 §5.5)
        return value.decode("latin-1")


def parse_faults(text: str, name: str) -> tuple[AnyFault, ...]:
    """Faults in the text form of `--fault`, separated by semicolons; `none` is none."""
    if text.strip().lower() == "none":
        return ()
    try:
        faults: tuple[AnyFault, ...] = read(_OPTION, split_list(_OPTION, text), name)
    except ConfigError as error:
        raise RequestError(str(error), param=name) from None
    except ValueError:
        raise RequestError(f"{name}: {text[:200]!r} is no JSON array", param=name) from None
    return faults
