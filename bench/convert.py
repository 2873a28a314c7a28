"""What a chunk costs the chat converter, beside the handler of openai-agents-python.

    python -m bench.convert

For each stream: microseconds a chunk, the best of several rounds, from ready-made chunks (structs
here, the SDK's objects for the handler), from their JSON, and, for the pipe filter, from SSE bytes
to SSE bytes. The handler is left out where openai-agents is not installed. Then each shape at one
length and at ten times that: the cost a chunk must not grow.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import platform
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from mockllm.cli.convert import main as run_filter
from mockllm.dialects.convert import ChatChunk, ChatToResponses, Profile

Chunk = dict[str, Any]

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m-1"}
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
END = {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def stream(first: Chunk, delta: Chunk, count: int) -> list[Chunk]:
    """`count` like chunks between an opening and an end."""
    deltas = [first, *[delta] * count]
    chunks = [{**HEAD, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas]
    return [*chunks, END]


def arguments(text: str, **more: Any) -> Chunk:
    """A piece of a call's arguments."""
    return {"tool_calls": [{"index": 0, "function": {"arguments": text, **more}, **({"id": "call_1"} if more else {})}]}


SHAPES: dict[str, Callable[[int], list[Chunk]]] = {
    "text": lambda count: stream({"role": "assistant", "content": ""}, {"content": " token"}, count),
    "reasoning": lambda count: stream({"role": "assistant"}, {"reasoning_content": " token"}, count),
    "arguments": lambda count: stream(arguments("", name="f"), arguments('"key": 1, '), count),
}


def best(run: Callable[[], None], count: int, rounds: int = 5) -> float:
    """Microseconds a chunk, in the fastest round."""
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / count * 1e6


def converting(chunks: list[Any], profile: Profile) -> Callable[[], None]:
    """A run of the converter over chunks in the form they are in."""

    def run() -> None:
        converter = ChatToResponses(None, profile, response=BASE)
        for chunk in chunks:
            converter.feed(chunk)
        converter.finish()

    return run


def filtering(chunks: list[bytes]) -> Callable[[], None]:
    """A run of the pipe filter, SSE to SSE."""
    recorded = b"".join(b"data: %b\n\n" % chunk for chunk in chunks)

    def run() -> None:
        run_filter([], io.BytesIO(recorded), io.BytesIO(), io.StringIO())

    return run


def handling(encoded: list[bytes]) -> tuple[Callable[[], None], Callable[[], None]] | None:
    """Runs of the handler, from the SDK's objects and from JSON; None where it is not installed."""
    try:
        handler = importlib.import_module("agents.models.chatcmpl_stream_handler").ChatCmplStreamHandler
    except ImportError:
        return None
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import Response

    response = Response.model_validate(BASE)

    def decode(chunk: bytes) -> ChatCompletionChunk:
        # As the SDK's stream does: json.loads, then models that are not validated.
        return ChatCompletionChunk.construct(**json.loads(chunk))

    async def through(source: AsyncIterator[ChatCompletionChunk]) -> None:
        async for _ in handler.handle_stream(response, source):
            pass

    async def ready() -> AsyncIterator[ChatCompletionChunk]:
        for each in objects:
            yield each

    async def decoding() -> AsyncIterator[ChatCompletionChunk]:
        for each in encoded:
            yield decode(each)

    objects = [decode(chunk) for chunk in encoded]
    return lambda: asyncio.run(through(ready())), lambda: asyncio.run(through(decoding()))


def compare(name: str, count: int) -> None:
    """Prints every way through one stream."""
    chunks = SHAPES[name](count)
    encoded = [msgspec.json.encode(chunk) for chunk in chunks]
    structs = [msgspec.convert(chunk, ChatChunk) for chunk in chunks]
    handlers = handling(encoded)
    forms: dict[str, list[Any]] = {"chunks": structs, "JSON": encoded}
    for place, (form, ready) in enumerate(forms.items()):
        openai = best(converting(ready, "openai"), count)
        agents = best(converting(ready, "agents"), count)
        line = f"{name:10}  from {form:6}  openai {openai:5.2f}  agents {agents:5.2f}"
        if handlers is not None:
            theirs = best(handlers[place], count, rounds=3)
            line += f"  handler {theirs:6.2f}  = {theirs / openai:4.1f} and {theirs / agents:4.1f} times as much"
        print(line)
    print(f"{name:10}  from SSE     filter {best(filtering(encoded), count):5.2f}")


def grow(name: str, profile: Profile, counts: tuple[int, int]) -> None:
    """One line: the cost a chunk at two lengths."""
    costs = []
    for count in counts:
        encoded = [msgspec.json.encode(chunk) for chunk in SHAPES[name](count)]
        costs.append(best(converting(encoded, profile), count, rounds=3))
    few, many = (f"{count:,}: {cost:.2f}" for count, cost in zip(counts, costs, strict=True))
    print(f"{name:10}  {profile:7}  {few}  {many}  ratio {costs[1] / costs[0]:.2f}")


def main() -> None:
    """Measures and prints."""
    try:
        handler = version("openai-agents")
    except PackageNotFoundError:
        handler = "not installed, so it is not measured"
    print(f"CPython {platform.python_version()}, {platform.machine()}, msgspec {msgspec.__version__}")
    print(f"openai-agents {handler}")
    print("\nµs a chunk, 2,000 chunks")
    for name in SHAPES:
        compare(name, 2_000)
    print("\nµs a chunk, from JSON bytes, at two lengths (100,000 pieces of arguments are 1 MB)")
    profiles: tuple[Profile, Profile] = ("openai", "agents")
    for name in SHAPES:
        for profile in profiles:
            grow(name, profile, (10_000, 100_000))


if __name__ == "__main__":
    main()
