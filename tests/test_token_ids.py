"""vLLM's parameters about tokens: their ids in the reply, and how much of a prompt is read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers import CHAT, COMPLETIONS, TOKENIZER, Json, Mock, assemble

MOCK = Mock(output_tokens=10, reasoning_tokens={"low": 5, "high": 50})
SHOWN: Json = {"return_token_ids": True}


class TestReturnTokenIds:
    def test_chat(self) -> None:
        reply = MOCK.whole(CHAT, **SHOWN, n=2)
        assert reply["prompt_token_ids"] == TOKENIZER.encode("Hello")
        for choice in reply["choices"]:
            assert choice["token_ids"] == TOKENIZER.encode(choice["message"]["content"])
        chunks = MOCK.chunks(CHAT, 2, 5, **SHOWN, n=2)
        assert chunks[0]["prompt_token_ids"] == reply["prompt_token_ids"]
        assert assemble(chunks)["choices"][1]["token_ids"] == reply["choices"][1]["token_ids"]
        assert "token_ids" not in MOCK.whole(CHAT)["choices"][0]

    def test_completions(self) -> None:
        reply = MOCK.whole(COMPLETIONS, **SHOWN, prompt=["One", [72, 105]])
        assert [choice["prompt_token_ids"] for choice in reply["choices"]] == [TOKENIZER.encode("One"), [72, 105]]
        for choice in reply["choices"]:
            assert choice["token_ids"] == TOKENIZER.encode(choice["text"])
        streamed = assemble(MOCK.chunks(COMPLETIONS, **SHOWN, prompt=["One", [72, 105]]))
        assert streamed["choices"] == reply["choices"]

    def test_reasoning_and_calls_have_them_too(self) -> None:
        tools = [{"type": "function", "function": {"name": "now"}}]
        body = SHOWN | {"tools": tools, "tool_choice": "required", "reasoning_effort": "low"}
        choice = MOCK.whole(CHAT, **body)["choices"][0]
        assert choice["token_ids"][:5] == TOKENIZER.encode(choice["message"]["reasoning_content"])
        assert TOKENIZER.decode(choice["token_ids"][5:]) == "{}"
        assert assemble(MOCK.chunks(CHAT, **body))["choices"][0]["token_ids"] == choice["token_ids"]

    def test_those_of_a_text_that_was_cut_away_are_there(self) -> None:
        text = MOCK.text()
        stop = text[12:20]
        reply = MOCK.whole(CHAT, **SHOWN, stop=stop)
        ids = TOKENIZER.encode(text)[: reply["usage"]["completion_tokens"]]
        assert reply["choices"][0]["token_ids"] == ids
        assert assemble(MOCK.chunks(CHAT, **SHOWN, stop=stop))["choices"][0]["token_ids"] == ids


class TestTokensAsIds:
    BODY: Json = {"return_tokens_as_token_ids": True}

    def test_chat(self) -> None:
        choice = MOCK.whole(CHAT, **self.BODY, logprobs=True, top_logprobs=2)["choices"][0]
        entries = choice["logprobs"]["content"]
        ids = TOKENIZER.encode(choice["message"]["content"])
        assert [entry["token"] for entry in entries] == [f"token_id:{identity}" for identity in ids]
        assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == choice["message"]["content"]
        assert all(top["token"].startswith("token_id:") for entry in entries for top in entry["top_logprobs"])
        streamed = assemble(MOCK.chunks(CHAT, **self.BODY, logprobs=True, top_logprobs=2))
        assert streamed["choices"][0]["logprobs"] == choice["logprobs"]

    def test_completions(self) -> None:
        body = self.BODY | {"logprobs": 2, "echo": True, "prompt": "Tell me"}
        choice = MOCK.whole(COMPLETIONS, **body)["choices"][0]
        ids = TOKENIZER.encode(choice["text"])
        assert choice["logprobs"]["tokens"] == [f"token_id:{identity}" for identity in ids]
        assert assemble(MOCK.chunks(COMPLETIONS, **body))["choices"][0] == choice


@pytest.mark.parametrize(("limit", "tokens"), [(2, 2), (50, 4), (-1, 4), (0, 0)])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_truncated_prompts_count_what_is_read(path: str, limit: int, tokens: int) -> None:
    text = "Tell me more, do"
    prompt: Any = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    tokens = min(tokens, TOKENIZER.count(text)) if tokens < 4 else TOKENIZER.count(text)
    assert MOCK.whole(path, truncate_prompt_tokens=limit, **prompt)["usage"]["prompt_tokens"] == tokens


def test_an_echo_is_truncated_as_well() -> None:
    body: Json = {"prompt": "Tell me more", "truncate_prompt_tokens": 2, "echo": True, "max_tokens": 0}
    assert MOCK.whole(COMPLETIONS, **body)["choices"][0]["text"] == " me more"


@pytest.mark.parametrize(("budget", "tokens"), [(None, 50), (7, 7), (0, 0), (80, 50), (-1, 50)])
def test_a_budget_for_thinking(budget: int | None, tokens: int) -> None:
    usage = MOCK.whole(CHAT, reasoning_effort="high", thinking_token_budget=budget)["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == tokens


class TestChatEcho:
    TURNS = ({"role": "user", "content": "Poem!"}, {"role": "assistant", "content": "Roses are"})

    def test_the_reply_goes_on_with_the_last_message(self) -> None:
        plain = MOCK.whole(CHAT, messages=self.TURNS)
        reply = MOCK.whole(CHAT, messages=self.TURNS, echo=True)
        text = "Roses are" + plain["choices"][0]["message"]["content"]
        assert reply["choices"][0]["message"]["content"] == text
        assert reply["usage"] == plain["usage"]
        streamed = assemble(MOCK.chunks(CHAT, messages=self.TURNS, echo=True))
        assert streamed["choices"][0]["message"]["content"] == text

    def test_a_users_message_is_not_repeated(self) -> None:
        assert MOCK.text(messages=self.TURNS[:1], echo=True) == MOCK.text(messages=self.TURNS[:1])
