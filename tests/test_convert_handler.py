"""The agents profile beside the handler it copies, on streams that nobody has written down.

Runs where openai-agents 0.16 is installed, which needs an environment of its own:

    python -m venv agents-env
    agents-env/bin/pip install 'openai-agents==0.16.*' 'openai>=2.26,<2.35' pytest hypothesis msgspec h11
    agents-env/bin/python -m pytest tests/test_convert_handler.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.dialects.convert import ChatToResponses, Profile
from tests.chat_streams import Chunk, handler_deltas, streams

try:
    VERSION = version("openai-agents")
except PackageNotFoundError:
    VERSION = ""
if not VERSION.startswith("0.16."):
    pytest.skip(f"needs openai-agents 0.16, here is {VERSION or 'none'}", allow_module_level=True)

handler_module = pytest.importorskip("agents.models.chatcmpl_stream_handler")

# 0.16.1 has moved the items to other output indexes.
PROFILE: Profile = "agents" if VERSION == "0.16.0" else "agents-0.16.1"
BASE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1700000000,
    "model": "m-1",
    "output": [],
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
}


@given(chunks=streams(handler_deltas), model=st.sampled_from([None, "gpt-x", "gemini-2.5-pro"]))
@settings(max_examples=1000, deadline=None)
def test_events_are_those_of_the_handler(chunks: list[Chunk], model: str | None) -> None:
    assert ours(chunks, model) == theirs(chunks, model)


def ours(chunks: list[Chunk], model: str | None) -> list[Any]:
    converter = ChatToResponses(model, PROFILE, lambda kind: "__fake_id__", BASE)
    events = [event for chunk in chunks for event in converter.feed(msgspec.json.encode(chunk))]
    events += converter.finish()
    return [without_nulls(msgspec.to_builtins(event)) for event in events]


def theirs(chunks: list[Chunk], model: str | None) -> list[Any]:
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import Response

    async def source() -> AsyncIterator[ChatCompletionChunk]:
        for chunk in chunks:
            # As the SDK makes them from the wire: unchecked.
            yield ChatCompletionChunk.construct(**chunk)

    async def run() -> list[Any]:
        stream = handler_module.ChatCmplStreamHandler.handle_stream(Response(**BASE), source(), model)
        # Dumped one by one: the handler goes on changing what it has sent.
        return [without_nulls(event.model_dump(mode="json", warnings=False)) async for event in stream]

    return asyncio.run(run())


def without_nulls(value: Any) -> Any:
    """Null and absent are the same to a reader of the API."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(inner) for inner in value]
    return value
