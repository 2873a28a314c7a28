"""Reasoning, refusals and the content filter: what a reply has besides its text, or in its place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers import CHAT, COMPLETIONS, TOKENIZER, Mock, assemble

MOCK = Mock(reasoning_tokens={"low": 5, "high": 9})


class TestReasoning:
    @pytest.mark.parametrize(("effort", "tokens"), [(None, 0), ("none", 0), ("minimal", 16), ("low", 5), ("high", 9)])
    def test_as_many_tokens_as_the_effort_has(self, effort: str | None, tokens: int) -> None:
        reply = MOCK.whole(CHAT, reasoning_effort=effort)
        message = reply["choices"][0]["message"]
        assert TOKENIZER.count(message.get("reasoning_content", "")) == tokens
        assert reply["usage"]["completion_tokens"] == tokens + TOKENIZER.count(message["content"])
        assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] == tokens

    def test_a_model_that_always_reasons(self) -> None:
        mock = Mock(reasoning_tokens={"default": 4})
        assert TOKENIZER.count(mock.message()["reasoning_content"]) == 4
        assert "reasoning_content" not in mock.message(reasoning_effort="none")
        assert mock.whole(COMPLETIONS)["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0

    def test_the_answer_is_the_same_with_and_without(self) -> None:
        assert MOCK.text(reasoning_effort="low") == MOCK.text()

    def test_it_is_streamed_before_the_text(self) -> None:
        deltas = [chunk["choices"][0]["delta"] for chunk in MOCK.chunks(CHAT, reasoning_effort="low")[1:-2]]
        assert [set(delta) for delta in deltas] == [{"reasoning_content"}] * 5 + [{"content"}] * 12

    def test_its_first_token_is_the_first_of_all(self) -> None:
        messages = [{"role": "user", "content": "Hello"}]
        body = {"model": "m", "messages": messages, "stream": True, "reasoning_effort": "low"}
        _, _, timeline = MOCK.send(CHAT, body)
        assert timeline.offset_s == 0.1
        assert b"reasoning_content" in timeline.render(0, 1)[-1]

    @pytest.mark.parametrize(
        ("field", "keys"),
        [
            ("reasoning_content", {"reasoning_content"}),
            ("reasoning", {"reasoning"}),
            ("both", {"reasoning_content", "reasoning"}),
        ],
    )
    def test_its_field_is_a_setting(self, field: str, keys: set[str]) -> None:
        mock = Mock(reasoning_field=field)
        message = mock.message(reasoning_effort="low")
        assert {key for key in message if key.startswith("reasoning")} == keys
        assert len({message[key] for key in keys}) == 1
        streamed = assemble(mock.chunks(CHAT, 3, reasoning_effort="low"))["choices"][0]["message"]
        assert {key: streamed[key] for key in keys} == {key: message[key] for key in keys}

    def test_it_may_be_left_out_and_is_counted_all_the_same(self) -> None:
        body = {"reasoning_effort": "low", "include_reasoning": False}
        assert "reasoning_content" not in MOCK.message(**body)
        chunks = MOCK.chunks(CHAT, **body)
        assert "reasoning_content" not in assemble(chunks)["choices"][0]["message"]
        assert chunks[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 5

    @pytest.mark.parametrize(("limit", "reasoning", "text"), [(3, 3, 0), (5, 5, 0), (7, 5, 2), (17, 5, 12)])
    def test_it_takes_its_share_of_the_limit(self, limit: int, reasoning: int, text: int) -> None:
        choice = MOCK.whole(CHAT, reasoning_effort="low", max_completion_tokens=limit)["choices"][0]
        assert TOKENIZER.count(choice["message"]["reasoning_content"]) == reasoning
        assert TOKENIZER.count(choice["message"]["content"]) == text
        assert choice["finish_reason"] == ("stop" if limit == 17 else "length")

    def test_exactly_the_limit_includes_it(self) -> None:
        reply = MOCK.whole(CHAT, reasoning_effort="high", max_tokens=50, ignore_eos=True)
        assert reply["usage"]["completion_tokens"] == 50

    def test_calls_come_behind_it(self) -> None:
        tools = [{"type": "function", "function": {"name": "now"}}]
        chunks = MOCK.chunks(CHAT, reasoning_effort="low", tools=tools, tool_choice="required")
        message = assemble(chunks)["choices"][0]["message"]
        assert message["tool_calls"][0]["function"]["name"] == "now"
        assert chunks[-1]["usage"]["completion_tokens"] == 5 + 3


class TestRefusal:
    MOCK = Mock(refusal_probability=1)

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"response_format": {"type": "json_object"}},
            {"tools": [{"type": "function", "function": {"name": "now"}}], "tool_choice": "required"},
        ],
    )
    def test_it_takes_the_place_of_any_answer(self, body: dict[str, Any]) -> None:
        reply = self.MOCK.whole(CHAT, **body)
        choice = reply["choices"][0]
        assert choice["message"]["content"] is None
        assert choice["message"]["refusal"].startswith("I'm sorry")
        assert choice["finish_reason"] == "stop"
        assert reply["usage"]["completion_tokens"] == TOKENIZER.count(choice["message"]["refusal"])
        streamed = assemble(self.MOCK.chunks(CHAT, **body))["choices"][0]["message"]
        assert streamed["refusal"] == choice["message"]["refusal"]

    def test_the_limit_cuts_it(self) -> None:
        choice = self.MOCK.whole(CHAT, max_tokens=2)["choices"][0]
        assert TOKENIZER.count(choice["message"]["refusal"]) == 2
        assert choice["finish_reason"] == "length"

    def test_completions_say_it_as_text(self) -> None:
        assert self.MOCK.whole(COMPLETIONS, max_tokens=50)["choices"][0]["text"].startswith("I'm sorry")

    def test_it_comes_as_often_as_it_is_told(self) -> None:
        mock = Mock(refusal_probability=0.3)
        choices = [choice for seed in range(5) for choice in mock.whole(CHAT, n=80, seed=seed)["choices"]]
        assert 80 < sum(choice["message"]["refusal"] is not None for choice in choices) < 160


class TestContentFilter:
    def test_it_cuts_the_text_off(self) -> None:
        mock = Mock(content_filter_probability=1, output_tokens=30)
        plain = Mock(output_tokens=30)
        for seed in range(10):
            choice = mock.whole(CHAT, seed=seed)["choices"][0]
            assert choice["finish_reason"] == "content_filter"
            text = plain.text(seed=seed)
            assert text.startswith(choice["message"]["content"])
            assert text != choice["message"]["content"]
            assert assemble(mock.chunks(CHAT, seed=seed))["choices"][0]["finish_reason"] == "content_filter"

    def test_a_limit_before_it_is_a_length(self) -> None:
        mock = Mock(content_filter_probability=1, output_tokens=100)
        reasons = {mock.whole(CHAT, max_tokens=10, seed=seed)["choices"][0]["finish_reason"] for seed in range(40)}
        assert reasons == {"content_filter", "length"}
