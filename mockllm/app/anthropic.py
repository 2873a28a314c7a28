"""The routes of Anthropic's API: create a message, count a prompt."""

from __future__ import annotations

import msgspec

from mockllm.app.generate import Generator
from mockllm.app.replies import Replies
from mockllm.app.router import Route
from mockllm.dialects.anthropic import Messages
from mockllm.exchange import Exchange, Reply, Request


def anthropic_routes(generator: Generator, replies: Replies, opening_events: str) -> list[Route]:
    """The route table's lines.

    Args:
        generator: Plans answers.
        replies: Makes heads.
        opening_events: When `message_start` leaves: `at-head` or `with-first-token`.
    """
    messages = Messages(opening_events)

    def count(request: Request, exchange: Exchange, _rest: str) -> Reply:
        model, prompt = messages.counted(request.body)
        generator.served(model, exchange)
        return replies.whole(exchange, msgspec.json.encode({"input_tokens": generator.prompt_tokens(prompt)}))

    return [
        Route("/v1/messages", {"POST": generator.handler(messages)}, overridable=True),
        Route("/v1/messages/count_tokens", {"POST": count}),
    ]
