"""`stream_options.include_obfuscation`: chunks of like sizes, and the same content."""

from __future__ import annotations

import json

import pytest

from mockllm.dialects.padding import PAD_BYTES
from tests.answers import CHAT, Json, Mock, assemble

BODIES: list[Json] = [
    {},
    {"n": 2, "logprobs": True, "top_logprobs": 1},
    {"tools": [{"type": "function", "function": {"name": "now"}}], "tool_choice": "required"},
]


def padded(mock: Mock, **body: Json) -> list[Json]:
    return mock.chunks(CHAT, stream_options={"include_usage": True, "include_obfuscation": True}, **body)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("role_chunk", ["with-first-token", "at-head", "none"])
def test_each_chunk_of_a_choice_is_padded_and_says_the_same(body: Json, role_chunk: str) -> None:
    mock = Mock(role_chunk=role_chunk)
    chunks, plain = padded(mock, **body), mock.chunks(CHAT, **body)
    texts = [chunk.pop("obfuscation") for chunk in chunks[:-1]]
    assert all(1 <= len(text) <= PAD_BYTES and text.isalnum() for text in texts)
    assert "obfuscation" not in chunks[-1]  # the usage
    for chunk in (*chunks, *plain):
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                call.pop("id", None)  # unique, and so no part of the answer
    assert assemble(chunks) == assemble(plain)


def test_sizes_do_not_tell_the_tokens_lengths() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    body |= {"stream_options": {"include_obfuscation": True}}
    _, _, timeline = Mock().send(CHAT, body)
    sizes = {len(frame) for frame in timeline.render(0, timeline.steps)[1:-2]}
    assert len({size % PAD_BYTES for size in sizes}) == 1


def test_padding_is_the_same_each_time_and_only_for_those_who_ask() -> None:
    first, second = ([chunk.get("obfuscation") for chunk in padded(Mock())] for _ in range(2))
    assert first == second
    for options in (None, {}, {"include_usage": True}, {"include_obfuscation": False}):
        assert "obfuscation" not in json.dumps(Mock().chunks(CHAT, stream_options=options))
