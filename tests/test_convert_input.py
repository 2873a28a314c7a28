"""What the converter reads: bad chunks, odd ones, and an asynchronous source."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.aio import convert_stream
from mockllm.dialects.convert import ChatToResponses, ConversionError
from tests.chat_streams import Chunk, chunk, usage_chunk

BROKEN = [
    (b"", "$"),
    (b"{", "$"),
    (b"nonsense", "$"),
    (b"[]", "$"),
    (b"{}", "$"),
    (b'{"choices":null}', "$.choices"),
    (b'{"choices":{}}', "$.choices"),
    (b'{"choices":[null]}', "$.choices[0]"),
    (b'{"choices":[{"index":0,"delta":null}]}', "$.choices[0].delta"),
    (b'{"choices":[{"index":"0","delta":{}}]}', "$.choices[0].index"),
    (b'{"choices":[{"index":0,"delta":{"content":1}}]}', "$.choices[0].delta.content"),
    (b'{"choices":[{"delta":{}},{"delta":{"refusal":[]}}]}', "$.choices[1].delta.refusal"),
    (b'{"choices":[{"delta":{"tool_calls":[{"index":0},{"index":"1"}]}}]}', "$.choices[0].delta.tool_calls[1].index"),
    (b'{"choices":[{"delta":{"tool_calls":{}}}]}', "$.choices[0].delta.tool_calls"),
    (b'{"choices":[{"delta":{"thinking_blocks":["x"]}}]}', "$.choices[0].delta.thinking_blocks[0]"),
    (b'{"choices":[{"delta":{},"finish_reason":0}]}', "$.choices[0].finish_reason"),
    (b'{"choices":[{"delta":{},"logprobs":{"content":[{}]}}]}', "$.choices[0].logprobs.content[0]"),
    (b'{"choices":[],"usage":{"prompt_tokens":"7"}}', "$.usage.prompt_tokens"),
    (b'{"choices":[{"delta":{"content":"\xff"}}]}', "$"),
]


@pytest.mark.parametrize("profile", ["openai", "agents"])
@pytest.mark.parametrize(("data", "path"), BROKEN)
def test_a_broken_chunk_is_named_and_closes_the_converter(data: bytes, path: str, profile: Any) -> None:
    converter = ChatToResponses(profile=profile)
    converter.feed(chunk({"content": "a"}))
    with pytest.raises(ConversionError) as caught:
        converter.feed(data)
    assert (caught.value.chunk, caught.value.path) == (1, path)
    with pytest.raises(ConversionError, match="the converter is closed: chunk 1 was broken"):
        converter.feed(chunk())
    with pytest.raises(ConversionError, match="the converter is closed: chunk 1 was broken"):
        converter.finish()


keys = st.sampled_from(["choices", "delta", "index", "usage", "error"])
trees = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(keys, inner)
)


@given(st.binary() | st.text() | trees)
def test_no_input_raises_anything_else(data: Any) -> None:
    converter = ChatToResponses()
    with contextlib.suppress(ConversionError):
        converter.feed(data)
        converter.finish()


def test_unknown_fields_are_out_of_the_way() -> None:
    odd = chunk({"content": "a", "role": "assistant", "audio": {"x": 1}, "x_y": None}, system_fingerprint="fp")
    odd["choices"][0]["content_filter_results"] = {"hate": {"filtered": False}}
    plain = chunk({"content": "a"})
    assert kinds([odd, chunk(finish="stop")]) == kinds([plain, chunk(finish="stop")])


def test_azures_chunks_without_a_delta_or_a_choice_pass() -> None:
    azure: list[Chunk] = [
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"start_offset": 1}}]},
    ]
    assert kinds([*azure, chunk(finish="stop")]) == kinds([chunk(finish="stop")])


def test_the_done_marker_is_no_chunk() -> None:
    converter = ChatToResponses()
    assert converter.feed(b"[DONE]") == converter.feed("[DONE]") == []


def test_after_the_end_nothing_is_taken() -> None:
    converter = ChatToResponses()
    assert len(converter.finish()) == 3
    assert converter.finish() == []
    with pytest.raises(ConversionError, match="was finished"):
        converter.feed(chunk())


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(ValueError, match="profile must be one of openai, agents"):
        ChatToResponses(profile="anthropic")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match=r"response: Expected `int \| float`, got `str` - at `\$.created_at`"):
        ChatToResponses(response={"created_at": "now"})
    with pytest.raises(ValueError, match="response must be a Response or a mapping, not list"):
        ChatToResponses(response=[])  # type: ignore[arg-type]  # that is the point


def test_the_sdks_response_object_is_taken() -> None:
    from openai.types.responses import Response

    given = Response.model_construct(id="resp_1", created_at=1700000000.0, model="m-2", tools=[], object="response")
    first = msgspec.to_builtins(ChatToResponses(response=given).finish()[0])["response"]
    assert (first["id"], first["created_at"], first["model"]) == ("resp_1", 1700000000.0, "m-2")


def test_an_asynchronous_source_is_converted_as_it_comes() -> None:
    chunks = [chunk({"content": "a"}), chunk({"content": "b"}, "stop"), usage_chunk()]
    seen: list[str] = []
    note = seen.append

    async def source() -> AsyncIterator[Chunk]:
        for number, each in enumerate(chunks):
            note(f"chunk {number}")
            yield each

    async def run() -> None:
        async for event in convert_stream(source()):
            note(event.type)

    asyncio.run(run())
    assert [text for text in seen if not text.startswith("chunk")] == kinds(chunks)
    assert seen.index("response.output_text.delta") < seen.index("chunk 1")


def test_the_asynchronous_helper_passes_errors_on() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"{"

    async def run() -> None:
        async for _ in convert_stream(source()):
            pass

    with pytest.raises(ConversionError, match="chunk 0"):
        asyncio.run(run())


def kinds(chunks: list[Chunk]) -> list[str]:
    converter = ChatToResponses()
    events = [event for each in chunks for event in converter.feed(each)]
    return [event.type for event in [*events, *converter.finish()]]
