"""The handlers of the audio endpoints, whose bodies are forms."""

from __future__ import annotations

from mockllm.app.generate import Generator
from mockllm.app.replies import JSON, TEXT
from mockllm.app.router import Handler
from mockllm.dialects.audio import Audio
from mockllm.exchange import Exchange, Reply, Request


def audio_handler(generator: Generator, task: str) -> Handler:
    """The handler of one audio task, `transcribe` or `translate`."""
    audio = Audio(task)

    def handle(request: Request, exchange: Exchange, _rest: str) -> Reply:
        generator.arrived(exchange)
        body, asked = audio.decode(request.headers.get(b"content-type", b""), request.body)
        context = generator.context(audio.id_prefix, body, asked, request, exchange)
        if asked.stream:
            return generator.stream(exchange, context.plan, audio.stream(context))
        return generator.whole(exchange, context.plan, audio.whole(context), TEXT if body.format == "text" else JSON)

    return handle
