"""`--processor`: with another tokenizer, usage is that tokenizer's count of what was sent."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mockllm import Config, Server, ServerThread
from mockllm.errors import ConfigError
from tests.answers import CHAT, COMPLETIONS, Json, Mock, assemble

pytest.importorskip("tokenizers")
from tests.test_huggingface import byte_level, unigram, word_piece

SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "sky": {"enum": ["☀️", "niebo—ołów"]}, "days": {"type": "integer"}},
    "required": ["city", "sky", "days"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
TRAINERS = {"byte-level": byte_level, "word-piece": word_piece, "unigram": unigram}


@cache
def trained(kind: str) -> Any:
    return TRAINERS[kind](1500)


def saved(kind: str, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    trained(kind).save(str(path))
    return path


def count(kind: str, text: str) -> int:
    return len(trained(kind).encode(text, add_special_tokens=False))


@pytest.mark.parametrize("kind", list(TRAINERS))
def test_usage_is_what_the_tokenizer_counts(kind: str, tmp_path: Path) -> None:
    mock = Mock(processor=str(saved(kind, tmp_path)), output_tokens=200, output_tokens_std=80)
    for seed in range(5):
        prompt = f"What about number {seed}, then?"
        reply = mock.whole(CHAT, seed=seed, messages=[{"role": "user", "content": prompt}])
        text = reply["choices"][0]["message"]["content"]
        assert reply["usage"]["completion_tokens"] == count(kind, text)
        assert reply["usage"]["prompt_tokens"] == count(kind, prompt)
        chunks = mock.chunks(CHAT, seed=seed, messages=[{"role": "user", "content": prompt}])
        assert assemble(chunks)["choices"][0]["message"]["content"] == text
        sent = [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]]
        assert len([piece for piece in sent if piece]) == count(kind, text)


@pytest.mark.parametrize("kind", list(TRAINERS))
def test_documents_and_calls_too(kind: str, tmp_path: Path) -> None:
    mock = Mock(processor=str(saved(kind, tmp_path)))
    wanted = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}
    for seed in range(5):
        reply = mock.whole(CHAT, response_format=wanted, seed=seed)
        text = reply["choices"][0]["message"]["content"]
        assert set(json.loads(text)) >= {"city", "sky", "days"}
        assert reply["usage"]["completion_tokens"] == count(kind, text)
        reply = mock.whole(CHAT, tools=TOOLS, tool_choice="required", seed=seed)
        arguments = reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        assert set(json.loads(arguments)) >= {"city", "sky", "days"}
        assert reply["usage"]["completion_tokens"] == 1 + count(kind, arguments)
        streamed = assemble(mock.chunks(CHAT, tools=TOOLS, tool_choice="required", seed=seed))
        assert streamed["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("kind", list(TRAINERS))
def test_logprobs_echo_and_stops(kind: str, tmp_path: Path) -> None:
    mock = Mock(processor=str(saved(kind, tmp_path)), output_tokens=30)
    body = {"prompt": "Tell me, 水!", "logprobs": 5, "max_tokens": 30}
    choice = mock.whole(COMPLETIONS, echo=True, **body)["choices"][0]
    assert "".join(choice["logprobs"]["tokens"]) == choice["text"]
    assert assemble(mock.chunks(COMPLETIONS, 3, echo=True, **body))["choices"][0] == choice
    text = mock.whole(COMPLETIONS, **body)["choices"][0]["text"]
    assert choice["text"] == "Tell me, 水!" + text
    stop = text[20:30]
    assert mock.whole(COMPLETIONS, stop=stop, **body)["choices"][0]["text"] == text[: text.index(stop)]
    token = trained(kind).encode(text, add_special_tokens=False).ids[4]
    assert mock.whole(COMPLETIONS, stop_token_ids=[token], **body)["usage"]["completion_tokens"] <= 5
    assert len(mock.whole(COMPLETIONS, prompt_logprobs=3)["choices"][0]["prompt_logprobs"]) == count(kind, "Hello")


def test_a_name_is_looked_up_in_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "models--some--model" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    saved("byte-level", folder)
    assert Mock(processor="some/model", hub_cache=tmp_path).text()
    config = Config(processor="some/model")
    assert Server(config, hub_cache=tmp_path).config == ServerThread(config, hub_cache=tmp_path).server.config == config
    with pytest.raises(ConfigError, match="--processor: 'other/model' is not valid"):
        Mock(processor="other/model", hub_cache=tmp_path)
