"""The official SDK against a live server: its exceptions, and its test suite's bodies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from mockllm import Config, ServerThread

KEY = "sk-a-key-for-these-tests"
MESSAGES: Any = [{"role": "user", "content": "Hello"}]
FAST: dict[str, Any] = {"port": 0, "ttft_ms": 0, "itl_ms": 0, "output_tokens": 12, "log_level": "error"}

# What the SDK's own suite sends to prove that each parameter can be sent.
CHAT_WITH_EVERYTHING: dict[str, Any] = {
    "messages": [{"content": "string", "role": "developer", "name": "name"}],
    "model": "gpt-5.4",
    "audio": {"format": "wav", "voice": "string"},
    "frequency_penalty": -2,
    "function_call": "none",
    "functions": [{"name": "name", "description": "description", "parameters": {"foo": "bar"}}],
    "logit_bias": {"foo": 0},
    "logprobs": True,
    "max_completion_tokens": 0,
    "max_tokens": 0,
    "metadata": {"foo": "string"},
    "modalities": ["text"],
    "n": 1,
    "parallel_tool_calls": True,
    "prediction": {"content": "string", "type": "content"},
    "presence_penalty": -2,
    "prompt_cache_key": "prompt-cache-key-1234",
    "prompt_cache_retention": "in_memory",
    "reasoning_effort": "none",
    "response_format": {"type": "text"},
    "safety_identifier": "safety-identifier-1234",
    "seed": -9007199254740991,
    "service_tier": "auto",
    "stop": "\n",
    "store": True,
    "stream_options": {"include_obfuscation": True, "include_usage": True},
    "temperature": 1,
    "tool_choice": "none",
    "tools": [
        {
            "function": {
                "name": "name",
                "description": "description",
                "parameters": {"foo": "bar"},
                "strict": True,
            },
            "type": "function",
        }
    ],
    "top_logprobs": 0,
    "top_p": 1,
    "user": "user-1234",
    "verbosity": "low",
    "web_search_options": {
        "search_context_size": "low",
        "user_location": {
            "approximate": {"city": "city", "country": "country", "region": "region", "timezone": "timezone"},
            "type": "approximate",
        },
    },
}
COMPLETION_WITH_EVERYTHING: dict[str, Any] = {
    "model": "string",
    "prompt": "This is a test.",
    "best_of": 0,
    "echo": True,
    "frequency_penalty": -2,
    "logit_bias": {"foo": 0},
    "logprobs": 0,
    "max_tokens": 16,
    "n": 1,
    "presence_penalty": -2,
    "seed": 0,
    "stop": "\n",
    "stream_options": {"include_obfuscation": True, "include_usage": True},
    "suffix": "test.",
    "temperature": 1,
    "top_p": 1,
    "user": "user-1234",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A strict server: one model, keys from both of their places."""
    keys: Path = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("# ours\nsk-in-the-file\n")
    config = Config(**FAST, api_key=(KEY,), api_key_file=str(keys), strict_model=True, served_model_name=("m", "org/m"))
    with ServerThread(config) as server:
        yield server.base_url


@pytest.fixture(scope="module")
def lenient_url() -> Iterator[str]:
    with ServerThread(Config(**FAST, lenient=True)) as server:
        yield server.base_url


def sdk(url: str, key: str = KEY, *, strict: bool = True) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0, _strict_response_validation=strict)


def facts(error: openai.APIStatusError) -> tuple[int, str | None, str | None, str | None]:
    return error.status_code, error.type, error.param, error.code


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"n": 0}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "4"}]}, "messages[0].tool_call_id"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"stream": True, "top_logprobs": 3}, "top_logprobs"),
    ],
)
def test_a_bad_request(url: str, more: dict[str, Any], param: str) -> None:
    with sdk(url) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**{"model": "m", "messages": MESSAGES} | more)
    assert facts(caught.value) == (400, "invalid_request_error", param, "invalid_request")


def test_a_model_that_is_not_served(url: str) -> None:
    with sdk(url) as client:
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="gpt-9", messages=MESSAGES)
        assert facts(caught.value) == (404, "invalid_request_error", "model", "model_not_found")
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-9")
        assert [model.id for model in client.models.list()] == ["m", "org/m"]
        assert client.models.retrieve("org/m").id == "org/m"
        assert client.completions.create(model="org/m", prompt="Hello").model == "org/m"


def test_a_wrong_key(url: str) -> None:
    wrong = KEY + "-or-not"
    with sdk(url, wrong) as client, pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert facts(caught.value) == (401, "invalid_request_error", None, "invalid_api_key")
    assert wrong not in str(caught.value)


@pytest.mark.parametrize("key", [KEY, "sk-in-the-file"])
def test_a_right_key(url: str, key: str) -> None:
    with sdk(url, key) as client:
        assert client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content
        chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True, service_tier="flex"))
    assert {chunk.service_tier for chunk in chunks} == {"flex"}


class TestEverythingAtOnce:
    def test_chat(self, lenient_url: str) -> None:
        with sdk(lenient_url) as client:
            reply = client.chat.completions.create(**CHAT_WITH_EVERYTHING, stream=False)
            chunks = list(client.chat.completions.create(**CHAT_WITH_EVERYTHING, stream=True))
        text = reply.choices[0].message.content
        assert text
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
        assert chunks[-1].usage == reply.usage

    def test_completions(self, lenient_url: str) -> None:
        # The SDK's types know neither the null logprob of a prompt's first token nor the null finish
        # reason of a chunk before the last, though the API sends both.
        with sdk(lenient_url, strict=False) as client:
            reply = client.completions.create(**COMPLETION_WITH_EVERYTHING, stream=False)
            chunks = list(client.completions.create(**COMPLETION_WITH_EVERYTHING, stream=True))
        text = reply.choices[0].text
        assert text.startswith("This is a test.")
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == text
