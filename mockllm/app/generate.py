"""From a generation request to its reply: decode, plan, render."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, TypeVar

from mockllm.app.known import Known, Seen
from mockllm.app.replies import EVENT_STREAM, JSON, Replies
from mockllm.app.script import Script
from mockllm.dialects.dialect import Context, Dialect
from mockllm.dialects.lenient import without_field
from mockllm.dialects.logprobs import forget
from mockllm.dialects.models import Models
from mockllm.dialects.overrides import OverrideReader, checked
from mockllm.dialects.reader import ReadContext, Reading
from mockllm.errors import RequestError
from mockllm.exchange import Exchange, Reply, Request, Timeline
from mockllm.generation.ids import Ids
from mockllm.generation.overrides import Override, ScriptedReply, merged
from mockllm.generation.plan import GenerationRequest, Plan, Prompt
from mockllm.generation.planner import Planner
from mockllm.truth import Truth

PART_S = 0.001
"""From one part of a long whole reply to the next; making one takes about 0.2 ms."""

T = TypeVar("T")

LOGPROBS_WEIGHT = 64
"""A chunk with the logprobs of 20 tokens costs as much as so many without: 66 µs against 1."""

LENIENT_ATTEMPTS = 128
"""Each fault of a body takes a whole reading of it: no body may keep the server for long."""


class Generator:
    """Answers the generation endpoints.

    Args:
        planner: Decides what is answered, and when.
        models: The names that are served.
        replies: Makes heads.
        ids: Makes the replies' ids.
        truth: Is told of every request, and tells whether the server is overloaded.
        wall: Unix time in seconds.
        script: Replies that were queued.
        overrides: Reads what a request changes about its own answer; None where it may not.
        truth_headers: Put the planned values on the wire.
        key_header: Lower-case name of the header that keys timing draws, or None.
        head_at_arrival: A stream's head does not wait for its first token.
        lenient: Fields that the API would refuse are left out.
    """

    def __init__(
        self,
        planner: Planner,
        models: Models,
        replies: Replies,
        ids: Ids,
        truth: Truth,
        wall: Callable[[], float],
        script: Script,
        *,
        overrides: OverrideReader | None,
        truth_headers: bool,
        key_header: bytes | None,
        head_at_arrival: bool,
        lenient: bool,
    ) -> None:
        self._planner = planner
        self._models = models
        self._replies = replies
        self._ids = ids
        self._truth = truth
        self._wall = wall
        self._script = script
        self._overrides = overrides
        self._truth_headers = truth_headers
        self._key_header = key_header
        self._head_at_arrival = head_at_arrival
        self._lenient = lenient

    def handler(self, dialect: Dialect) -> Callable[[Request, Exchange, str], Reply]:
        """The handler of one dialect's endpoint."""

        known = Known()

        def handle(request: Request, exchange: Exchange, _rest: str) -> Reply:
            seen = known.find(request.body)
            if seen is not None and self._as_before(request):
                return self._answer_again(dialect, seen, request, exchange)
            context = self.prepare(dialect, request, exchange)
            if not self._planner.draws and not self._script.given and context.request.override is None:
                known.keep(request.body, context)
            return self.reply(dialect, exchange, context)

        return handle

    def _as_before(self, request: Request) -> bool:
        """Whether the answer hangs on nothing but the body: neither a script nor a header changes it."""
        if self._script.given:
            return False
        return self._overrides is None or not self._overrides.in_headers(request.headers)

    def _answer_again(self, dialect: Dialect, seen: Seen, request: Request, exchange: Exchange) -> Reply:
        """The reply to a request that was answered before; the same as without that knowledge."""
        self.arrived(exchange)
        first = seen.context
        asked, plan = first.request, first.plan
        self._record(exchange, asked, plan)
        context = self._made(dialect.id_prefix, first.body, asked, plan)
        if asked.stream:
            return self.stream(exchange, plan, dialect.stream(context))
        body = seen.whole(context.id, context.created)
        if body is None:
            body = dialect.whole(context)
            seen.rendered(body, context)
        return self.whole(exchange, plan, body)

    def arrived(self, exchange: Exchange) -> None:
        """A request for a generation came, good or bad."""
        self._truth.arrived(exchange)

    def prepare(self, dialect: Dialect, request: Request, exchange: Exchange) -> Context:
        """Decode the body and plan the answer; the exchange gets the facts of both."""
        self.arrived(exchange)

        def read(given: bytes) -> Context:
            body, asked = dialect.decode(given)
            return self.context(dialect.id_prefix, body, asked, request, exchange)

        return self.leniently(request.body, read)

    def served(self, name: str, exchange: Exchange) -> str:
        """The model that answers a request for `name`; the exchange gets it.

        Raises:
            RequestError: 404, where only some models are served.
        """
        exchange.model = self._models.resolve(name)
        return exchange.model

    def leniently(self, body: bytes, read: Callable[[bytes], T]) -> T:
        """What `read` makes of a body; where the server is lenient, of as much as can be read."""
        attempts = LENIENT_ATTEMPTS if self._lenient else 0
        while True:
            try:
                return read(body)
            except RequestError as error:
                attempts -= 1
                shorter = without_field(body, error.param) if attempts >= 0 else None
                if shorter is None:
                    raise
                body = shorter

    def context(
        self, id_prefix: str, body: Any, asked: GenerationRequest, request: Request, exchange: Exchange
    ) -> Context:
        """Plan the answer to a decoded body; the exchange gets the facts of both."""
        asked.model = self.served(asked.model, exchange)
        scripted = self._overridden(asked, request, exchange)
        key = request.headers.get(self._key_header) if self._key_header is not None else None
        plan = self._planner.plan(asked, key)
        if self._script.given:
            self._script.taken(scripted, asked, exchange)
        self._record(exchange, asked, plan)
        return self._made(id_prefix, body, asked, plan)

    def _made(self, id_prefix: str, body: Any, asked: GenerationRequest, plan: Plan) -> Context:
        identity = self._ids(id_prefix) if asked.reply_id is None else id_prefix + asked.reply_id
        return Context(identity, int(self._wall()), body, asked, plan)

    @staticmethod
    def _record(exchange: Exchange, asked: GenerationRequest, plan: Plan) -> None:
        """Note the facts of a request and its plan."""
        exchange.model = asked.model
        exchange.limit_tokens = asked.limit_tokens
        exchange.seed = asked.seed
        exchange.stream = asked.stream
        exchange.prompt_tokens = plan.prompt_tokens
        exchange.cached_tokens = plan.cached_tokens
        exchange.choices = len(plan.choices)
        if len(plan.choices) > 1:
            exchange.choice_tokens = [choice.tokens for choice in plan.choices]
        exchange.tokens = plan.completion_tokens
        exchange.finish_reason = plan.choices[0].finish_reason

    def _overridden(self, asked: GenerationRequest, request: Request, exchange: Exchange) -> ScriptedReply | None:
        """Note what the request or the script changes about the answer; returns the script's reply."""
        override: Override | None = None
        if self._overrides is not None:
            override = self._overrides.read(asked.overrides, request.headers)
        scripted = self._script.find(asked, exchange) if self._script.given else None
        if scripted is not None:
            override = scripted if override is None else checked(merged(scripted, override))
        if override is not None:
            asked.override = override
            exchange.asked_fault = override.fault
            if override.seed is not None:
                asked.seed = override.seed
        return scripted

    def reading(
        self, id_prefix: str, body: Any, reading: Reading, request: Request, exchange: Exchange
    ) -> tuple[ReadContext, Plan]:
        """Plan the answer to a request that generates nothing; the exchange gets the facts of both."""
        model = self.served(reading.model, exchange)
        key = request.headers.get(self._key_header) if self._key_header is not None else None
        own = self._overrides.read(reading.overrides, request.headers) if self._overrides is not None else None
        plan = self._planner.reading(reading.prompts, reading.prompt_param, key, own)
        exchange.prompt_tokens = plan.prompt_tokens
        seed = self._planner.seed if own is None or own.seed is None else own.seed
        identity, created = self._ids(id_prefix), int(self._wall())
        return ReadContext(identity, created, model, body, reading, plan.prompt_tokens, seed), plan

    def prompt_tokens(self, prompt: Prompt) -> int:
        """Tokens of a prompt."""
        return self._planner.prompt_tokens(prompt)

    def reply(self, dialect: Dialect, exchange: Exchange, context: Context) -> Reply:
        """The reply that the plan makes."""
        plan = context.plan
        if context.request.stream:
            return self.stream(exchange, plan, dialect.stream(context))
        preparation = dialect.prepare(context)
        if preparation is None:
            return self.whole(exchange, plan, dialect.whole(context))
        lines = self._replies.lines(exchange, JSON) + self._planned(plan, exchange)

        def render(_first: int, _upto: int) -> list[bytes]:
            body = dialect.whole(context)
            forget(context)
            return [body]

        return Reply(200, lines, Timeline(1, render, plan.end_s, prepare=preparation))

    def whole(self, exchange: Exchange, plan: Plan, body: bytes, content_type: bytes = JSON) -> Reply:
        """A whole reply, due when the plan's last token is."""
        lines = self._replies.lines(exchange, content_type) + self._planned(plan, exchange)
        return Reply(200, lines, Timeline(1, lambda first, upto: [body], plan.end_s), len(body))

    def in_parts(self, exchange: Exchange, plan: Plan, steps: int, render: Callable[[int, int], list[bytes]]) -> Reply:
        """A whole reply that is long in the making, in parts.

        The first is due when the plan's last token is, each further one `PART_S` later, so that due
        chunks of other replies come in between.
        """
        lines = self._replies.lines(exchange, JSON) + self._planned(plan, exchange)
        return Reply(200, lines, Timeline(steps, render, plan.end_s, array("d", [k * PART_S for k in range(steps)])))

    def stream(self, exchange: Exchange, plan: Plan, timeline: Timeline) -> Reply:
        """A streamed reply."""
        weight = len(plan.choices) * (LOGPROBS_WEIGHT if plan.choices[0].scores is not None else 1)
        if weight > 1:
            timeline.burst = max(1, timeline.burst // weight)
        lines = self._replies.lines(exchange, EVENT_STREAM) + self._planned(plan, exchange)
        return Reply(200, lines, timeline, head_at_arrival=self._head_at_arrival)

    def _planned(self, plan: Plan, exchange: Exchange) -> bytes:
        """Head lines with the planned values."""
        if not self._truth_headers:
            return b""
        lines = (
            b"x-mockllm-ttft-ms: %.3f\r\nx-mockllm-itl-ms: %.3f\r\nx-mockllm-output-tokens: %d\r\nx-mockllm-seq: %d\r\n"
        ) % (plan.offset_s * 1e3, plan.itl_s * 1e3, plan.completion_tokens, exchange.seq)
        return lines + b"x-mockllm-overloaded: 1\r\n" if self._truth.overloaded else lines
