"""Asks an application without a socket, and plays its replies to their end."""

from __future__ import annotations

import json
from typing import Any

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Exchange, Reply, Request


class Answer:
    """A reply, played to its end.

    Attributes:
        exchange: The request's record.
        body: What stands in the body, whole.
    """

    def __init__(self, reply: Reply, exchange: Exchange) -> None:
        self.exchange = exchange
        self.timeline = reply.timeline
        self.status = reply.status
        self.length = reply.length_bytes
        self.headers = dict(line.split(": ", 1) for line in reply.headers.decode("latin-1").splitlines())
        self.body = b"".join([*reply.timeline.preamble, *reply.timeline.render(0, reply.timeline.steps)])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str | None]:
        """Status and param of a refusal in OpenAI's shape."""
        return self.status, self.json["error"]["param"]


class Asker:
    """One application; `ask` posts JSON to it, and gets where there is none."""

    def __init__(self, **settings: Any) -> None:
        self.app = App(Config(**({"output_tokens": 12} | settings)), FakeClock())

    def ask(self, path: str, body: Any = None, headers: dict[bytes, bytes] | None = None) -> Answer:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        request = Request(method, path, "", headers or {}, content, 1000.0, 1000.0)
        exchange = self.app.exchange(request)
        return Answer(self.app.handle(request, exchange), exchange)

    def post(self, path: str, **body: Any) -> Answer:
        return self.ask(path, {"model": "m"} | body)
