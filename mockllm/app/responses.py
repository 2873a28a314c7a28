"""The Responses routes: create, read back, delete, cancel, list the input, count the input.

A background response is answered at once and then read back; where it stands is worked out
from its plan each time, so that nothing runs for it.

Source: https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec

from mockllm.app.generate import Generator
from mockllm.app.replies import Replies
from mockllm.app.router import Route
from mockllm.app.worker import Worker
from mockllm.dialects.responses import Responses, ResponseStore, Stored
from mockllm.dialects.responses.reading import input_items, replay, snapshot
from mockllm.errors import RequestError
from mockllm.exchange import Exchange, Reply, Request

_encode = msgspec.json.Encoder().encode


class ResponsesRoutes:
    """Handlers of the Responses API.

    Args:
        generator: Plans answers.
        replies: Makes heads.
        opening_events: When `created` and `in_progress` leave: `at-head` or `with-first-token`.
        max_model_len: Longest prompt and reply together, in tokens.
        worker: Which of several processes this is; None for the only one.
        lenient: Bounds that can be passed are.
    """

    def __init__(
        self,
        generator: Generator,
        replies: Replies,
        opening_events: str,
        max_model_len: int,
        worker: Worker | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self._generator = generator
        self._replies = replies
        self.store = ResponseStore()
        if worker is not None:
            self.store.elsewhere = worker.elsewhere
        self._dialect = Responses(self.store, opening_events, generator.prompt_tokens, max_model_len, lenient)

    def routes(self) -> list[Route]:
        """The route table's lines."""
        return [
            Route("/v1/responses", {"POST": self._create}, overridable=True),
            Route("/v1/responses/", {"GET": self._read, "POST": self._act, "DELETE": self._delete}, prefix=True),
        ]

    def _create(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        dialect = self._dialect
        context = self._generator.prepare(dialect, request, exchange)
        asked = context.body.asked
        if asked.stored:
            self.store.put(context, request.arrival_s)
        if asked.background and not asked.stream:
            exchange.tokens, exchange.finish_reason = 0, ""  # nothing of it is sent now
            return self._replies.whole(exchange, dialect.accepted(context))
        return self._generator.reply(dialect, exchange, context)

    def _read(self, request: Request, exchange: Exchange, rest: str) -> Reply:
        identity, _, tail = rest.partition("/")
        stored = self._stored(identity)
        query = parse_qs(request.query)
        if tail == "input_items":
            return self._replies.whole(exchange, input_items(self.store, stored, query))
        self._refuse_tail(tail, {"cancel": "POST"})
        context = stored.context
        exchange.model = context.request.model
        if _flag(query, "stream"):
            exchange.stream = True
            after = _number(query, "starting_after")
            plan = context.plan
            if after is None:  # a whole stream, token by token: a reply like any other
                exchange.prompt_tokens, exchange.tokens = plan.prompt_tokens, plan.completion_tokens
                exchange.finish_reason = plan.choices[0].finish_reason
            timeline = replay(stored, request.arrival_s, after, _flag(query, "include_obfuscation"))
            return self._generator.stream(exchange, plan, timeline)
        return self._replies.whole(exchange, snapshot(stored, request.arrival_s))

    def _act(self, request: Request, exchange: Exchange, rest: str) -> Reply:
        if rest == "input_tokens":
            _body, asked = self._dialect.decode(request.body)
            self._generator.served(asked.model, exchange)
            count = sum([self._generator.prompt_tokens(prompt) for prompt in asked.prompts])
            return self._replies.whole(exchange, _encode({"object": "response.input_tokens", "input_tokens": count}))
        identity, _, tail = rest.partition("/")
        if tail != "cancel":
            self._refuse_tail(tail, {"": "GET, DELETE", "input_items": "GET"})
        stored = self._stored(identity)
        if not stored.context.body.asked.background:
            raise RequestError("Cannot cancel a synchronous response.", param="response_id", code=None)
        if stored.status_at(request.arrival_s) is not None:
            stored.cancelled = True
        return self._replies.whole(exchange, snapshot(stored, request.arrival_s))

    def _delete(self, request: Request, exchange: Exchange, rest: str) -> Reply:
        identity, _, tail = rest.partition("/")
        self._refuse_tail(tail, {"cancel": "POST", "input_items": "GET"})
        self._stored(identity)
        self.store.remove(identity)
        return self._replies.whole(exchange, _encode({"id": identity, "object": "response", "deleted": True}))

    def _stored(self, identity: str) -> Stored:
        stored = self.store.get(identity)
        if stored is None:
            message = f"Response with id '{identity[:100]}' not found." + self.store.elsewhere(identity)
            raise RequestError(message, param="response_id", status=404, code=None)
        return stored

    def _refuse_tail(self, tail: str, methods: dict[str, str]) -> None:
        """Refuse what follows a response's id: 405 where another method knows it, else 404."""
        allow = methods.get(tail)
        if allow is not None:
            raise RequestError(
                f"This path allows {allow}.", status=405, code="method_not_allowed", headers={"allow": allow}
            )
        if tail:
            raise RequestError(
                f"A response has nothing at {tail[:100]!r}.", status=404, type="not_found_error", code="not_found"
            )


def _flag(query: dict[str, list[str]], name: str) -> bool:
    return query.get(name, ["false"])[-1].lower() in ("true", "1")


def _number(query: dict[str, list[str]], name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    if not values[-1].isascii() or not values[-1].isdigit():
        raise RequestError(f"{name} must be a whole number, got {values[-1][:40]!r}.", param=name)
    return int(values[-1][:18])
