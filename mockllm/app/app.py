"""The application: from a whole request to a reply, without waiting for anything.

`App.handle` is the one way in.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mockllm.app.admin import ADMIN_PREFIX, Admin
from mockllm.app.anthropic import anthropic_routes
from mockllm.app.audio import audio_handler
from mockllm.app.auth import Keys
from mockllm.app.base import BaseApp, Observer
from mockllm.app.faults import Faults
from mockllm.app.generate import Generator
from mockllm.app.ratelimits import RateLimits
from mockllm.app.reading import reading_routes
from mockllm.app.responses import ResponsesRoutes
from mockllm.app.router import Handler, Route
from mockllm.app.script import Script
from mockllm.app.setup import make_planner, make_tokenizer
from mockllm.app.worker import Worker, make_truth
from mockllm.clock import Clock
from mockllm.config import Config
from mockllm.dialects.anthropic.models import VERSION_HEADER, model_list, one_model
from mockllm.dialects.chat import REASONING_FIELDS, Chat
from mockllm.dialects.completions import Completions
from mockllm.dialects.models import Models
from mockllm.dialects.overrides import OverrideReader
from mockllm.dialects.tokenizer import detokenize, read_detokenize, read_tokenize, tokenize
from mockllm.errors import RequestError
from mockllm.exchange import End, Exchange, Reply, Request
from mockllm.generation.ids import Ids
from mockllm.truth import AccessLog, SharedTruth
from mockllm.truth.received import Received
from mockllm.version import VERSION

log = logging.getLogger("mockllm.app")

EMBEDDED_KEEP_BODIES = 100
"""Requests kept where the settings say nothing: the command line then says 0."""


class App(BaseApp):
    """Answers requests as `config` says.

    Args:
        config: The settings.
        clock: Tells the wall time that stands in replies.
        observers: Get every exchange that has ended.
        api_keys: The keys of `config.api_key_file`, whose reading is the caller's.
        ids: Makes ids, for those who want them to repeat.
        hub_cache: Where `--processor` finds models by name; None for the usual place.
        worker: Which of several processes this is; None for the only one.

    Raises:
        ConfigError: The tokenizer cannot be used.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        observers: Sequence[Observer] = (),
        api_keys: Sequence[str] = (),
        ids: Ids | None = None,
        hub_cache: Path | None = None,
        worker: Worker | None = None,
    ) -> None:
        keys = (*config.api_key, *api_keys)
        if ids is None:
            ids = Ids() if worker is None else Ids(worker.stem())
        super().__init__(
            make_truth(config, clock, worker),
            clock,
            cors=config.cors,
            ids=ids,
            observers=(*observers, AccessLog()) if config.access_log else observers,
            keys=Keys(keys) if keys else None,
        )
        self._worker = worker
        if worker is not None:
            self._seq, self._seq_step = worker.first_seq - worker.of, worker.of
        if isinstance(self.truth, SharedTruth):
            self.truth.last_seq = lambda: self._seq
        self.tokenizer, text = make_tokenizer(config, hub_cache)
        self._models = Models(
            config.served_model_name or (config.model,),
            int(clock.wall()),
            config.max_model_len,
            strict=config.strict_model,
        )
        key_header = config.key_header.lower().encode() if config.key_header else None
        self.script = Script()
        self.received = Received(EMBEDDED_KEEP_BODIES if config.keep_bodies is None else config.keep_bodies)
        self._faults = Faults(
            config.faults,
            seed=config.seed,
            key_header=key_header,
            on_request=config.overrides,
            replies=self._replies,
        )
        self._limits = RateLimits(config.rpm, config.tpm) if config.rpm or config.tpm else None
        self._generator = Generator(
            make_planner(config, self.tokenizer, text, self._ids),
            self._models,
            self._replies,
            self._ids,
            self.truth,
            clock.wall,
            self.script,
            overrides=OverrideReader(key_header) if config.overrides else None,
            truth_headers=config.truth_headers,
            key_header=key_header,
            head_at_arrival=config.head_at == "arrival",
            lenient=config.lenient,
        )
        self._max_model_len = config.max_model_len
        self._add_routes(config)

    # ---- the protocol's calls ----------------------------------------------------------------

    def handle(self, request: Request, exchange: Exchange) -> Reply:
        if request.body and self.received.size and not request.target.startswith(ADMIN_PREFIX):
            self.received.add(request, exchange)
        return super().handle(request, exchange)

    def _respond(self, route: Route, request: Request, exchange: Exchange, rest: str) -> Reply:
        handler = self._router.handler(route, request.method)
        if self._limits is not None and route.recorded and not route.open:
            return self._limited(self._limits, route, handler, request, exchange, rest)
        return self._spoiled(route, handler, request, exchange, rest)

    def _spoiled(self, route: Route, handler: Handler, request: Request, exchange: Exchange, rest: str) -> Reply:
        """The handler's reply, and what faults make of it."""
        if not route.recorded:
            return handler(request, exchange, rest)
        if self._faults.early(request, route):
            return self._faults.answer(handler, route, request, exchange, rest)
        reply = handler(request, exchange, rest)
        return reply if exchange.asked_fault is None else self._faults.after(reply, route, request, exchange)

    def _limited(
        self, limits: RateLimits, route: Route, handler: Handler, request: Request, exchange: Exchange, rest: str
    ) -> Reply:
        """The reply under rate limits, which it tells; only POST requests are counted."""

        account = limits.account(request.headers)

        def counted(request: Request, exchange: Exchange, rest: str) -> Reply:
            account.admit(exchange)
            reply = handler(request, exchange, rest)
            account.charge(exchange)
            return reply

        chosen = counted if request.method == "POST" else handler
        try:
            reply = self._spoiled(route, chosen, request, exchange, rest)
        except RequestError as error:
            exchange.outcome = End.REFUSED
            reply = self._replies.error(exchange, error)
        if b"\r\nx-ratelimit-" not in reply.headers:  # a fault's own stand
            reply.headers += account.lines(request.arrival_s)
        return reply

    # ---- routes ------------------------------------------------------------------------------

    def _add_routes(self, config: Config) -> None:
        add = self._router.add
        generate = self._generator.handler
        chat = Chat(config.role_chunk, REASONING_FIELDS[config.reasoning_field], lenient=config.lenient)
        add(Route("/", {"GET": self._index}, open=True))
        add(Route("/health", {"GET": self._health}, open=True))
        add(Route("/ping", {"GET": self._ping, "POST": self._ping}, open=True))
        add(Route("/version", {"GET": self._version}, open=True))
        add(Route("/v1/models", {"GET": self._list_models}), api=True)
        add(Route("/v1/models/", {"GET": self._one_model}, prefix=True), api=True)
        add(Route("/v1/chat/completions", {"POST": generate(chat)}, overridable=True), api=True)
        responses = ResponsesRoutes(
            self._generator,
            self._replies,
            config.opening_events,
            config.max_model_len,
            self._worker,
            lenient=config.lenient,
        )
        for route in responses.routes():
            add(route, api=True)
        for route in anthropic_routes(self._generator, self._replies, config.opening_events):
            add(route, api=True)
        add(Route("/v1/completions", {"POST": generate(Completions(config.lenient))}, overridable=True), api=True)
        for name, task in (("transcriptions", "transcribe"), ("translations", "translate")):
            add(Route(f"/v1/audio/{name}", {"POST": audio_handler(self._generator, task)}), api=True)
        for route in reading_routes(self._generator, self.tokenizer, config.embedding_dimensions):
            add(route, api=route.path.startswith("/v1"))
        add(Route("/tokenize", {"POST": self._tokenize}), api=True)
        add(Route("/detokenize", {"POST": self._detokenize}), api=True)
        admin = Admin(
            self.truth, self.received, self.script, self._replies, open=not config.admin_auth, workers=config.workers
        )
        add(admin.metrics_route())
        for route in admin.routes() if config.admin else ():
            add(route)

    def _ping(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        """SageMaker's probe, which looks at the status alone."""
        status = 200 if self.lifecycle.state == "healthy" else 503
        return self._replies.whole(exchange, b"", status=status, content_type=b"")

    def _version(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        return self._replies.whole(exchange, msgspec.json.encode({"version": VERSION}))

    def _list_models(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        ask = model_list if VERSION_HEADER in request.headers else Models.list
        return self._replies.whole(exchange, ask(self._models))

    def _one_model(self, request: Request, exchange: Exchange, rest: str) -> Reply:
        ask = one_model if VERSION_HEADER in request.headers else Models.one
        return self._replies.whole(exchange, ask(self._models, rest))

    def _tokenize(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        asked = read_tokenize(request.body)
        self._generator.served(asked.model or "", exchange)
        return self._replies.whole(exchange, tokenize(asked, self.tokenizer, self._max_model_len))

    def _detokenize(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        asked = read_detokenize(request.body)
        self._generator.served(asked.model or "", exchange)
        return self._replies.whole(exchange, detokenize(asked, self.tokenizer))
