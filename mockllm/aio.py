"""Asynchronous faces of what is pure below: the chat converter over an asynchronous iterator."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

from mockllm.dialects.convert import ChatToResponses, Profile, ResponseFields, StreamEvent, make_id


async def convert_stream(
    chunks: AsyncIterable[Any],
    model: str | None = None,
    profile: Profile = "openai",
    ids: Callable[[str], str] = make_id,
    response: ResponseFields | None = None,
    *,
    strict: bool = False,
) -> AsyncIterator[StreamEvent]:
    """The events of a chat stream, each as soon as its chunk has come.

    Args:
        chunks: Chunks in any form that `ChatToResponses.feed` takes; the SDK's `AsyncStream` will do.
        model, profile, ids, response, strict: As for `ChatToResponses`.

    Raises:
        ConversionError: A chunk is broken.
    """
    converter = ChatToResponses(model, profile, ids, response, strict=strict)
    async for chunk in chunks:
        for event in converter.feed(chunk):
            yield event
    for event in converter.finish():
        yield event
