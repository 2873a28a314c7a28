"""The text of messages, in every way the APIs write it."""

from __future__ import annotations

import msgspec
import pytest

from mockllm.dialects.messages import ChatMessage, prompt_of
from mockllm.generation.plan import Message


def text_of(content: object) -> str:
    body = msgspec.json.encode({"role": "user", "content": content})
    (message,) = prompt_of([msgspec.json.decode(body, type=ChatMessage)]).messages
    return message.text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ("Hello", "Hello"),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": " b"}], "a b"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": []}], "ab"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,x"}}, "b"], "ab"),
        ([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}], ""),
        ([{"type": "image_url", "image_url": "x", "text": "not counted"}], ""),
        ([{"text": "type left out, as vLLM lets it be"}], "type left out, as vLLM lets it be"),
    ],
)
def test_text(content: object, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    "content",
    [5, {}, {"type": "text", "text": "x"}, [5], [None], [{"type": "text"}], [{"type": "refusal", "text": "x"}]],
)
def test_what_is_no_content(content: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        text_of(content)


CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
    {"id": "call_2", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
]


@pytest.mark.parametrize(
    ("turn", "calls"),
    [
        ({"tool_calls": CALLS}, ('add({"a":1})', "sh(ls)")),
        ({"function_call": {"name": "now", "arguments": "{}"}}, ("now({})",)),
        ({"content": "x"}, ()),
    ],
)
def test_calls_are_part_of_what_is_said(turn: dict[str, object], calls: tuple[str, ...]) -> None:
    (message,) = prompt_of([msgspec.convert({"role": "assistant"} | turn, ChatMessage)]).messages
    assert (message.calls, message.texts) == (calls, (message.text, *calls))


def test_a_refusal_is_text() -> None:
    assert prompt_of([ChatMessage("assistant", None, refusal="I can't.")]).messages[0].text == "I can't."


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function", "ipython"])
def test_every_role_is_known_and_content_may_be_left_out(role: str) -> None:
    assert prompt_of([ChatMessage(role)]).messages == (Message(role, ""),)
