"""Logprobs in both shapes: values that a model could have given, and the text they belong to."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.generation.keyed import derive
from mockllm.generation.logprobs import Scores, Vocabulary
from tests.answers import CHAT, COMPLETIONS, TOKENIZER, Mock, assemble

MOCK = Mock(output_tokens=20)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 10_000), st.integers(0, 40), st.integers(0, 60))
def test_a_score_is_a_distribution(key: bytes, position: int, count: int, words: int) -> None:
    texts = [f" w{number}" for number in range(words)]
    scores = Scores(key, Vocabulary(lambda: texts, TOKENIZER.encode))
    score = scores.score(b" w3", position, count)
    names = [b" w3" if number is None else scores.vocabulary.pieces[number] for number, _ in score.top]
    assert score.logprob <= 0
    assert len(score.top) == max(1, count) or len(score.top) == len(scores.vocabulary.pieces)
    assert len(set(names)) == len(names)
    assert b" w3" in names
    assert [logprob for _, logprob in score.top] == sorted((logprob for _, logprob in score.top), reverse=True)
    assert sum(math.exp(logprob) for _, logprob in score.top) <= 1 + 1e-9
    longer = scores.score(b" w3", position, count + 7)
    assert (longer.logprob, longer.rank) == (score.logprob, score.rank)
    assert set(score.top) <= set(longer.top)


def test_scores_have_the_mean_that_is_promised() -> None:
    scores = Scores(derive(bytes(16), b"mean"), Vocabulary(lambda: [], TOKENIZER.encode))
    values = [scores.score(b"x", position, 1).logprob for position in range(4000)]
    assert sum(values) / len(values) == pytest.approx(-0.6, rel=0.1)


class TestChat:
    @pytest.mark.parametrize("count", [0, 1, 5, 20])
    def test_each_token_has_an_entry(self, count: int) -> None:
        choice = MOCK.whole(CHAT, logprobs=True, top_logprobs=count)["choices"][0]
        entries = choice["logprobs"]["content"]
        assert [entry["token"] for entry in entries] == TOKENIZER.pieces(choice["message"]["content"])
        for entry in entries:
            assert entry["logprob"] <= 0
            assert bytes(entry["bytes"]).decode() == entry["token"]
            assert len(entry["top_logprobs"]) == count
            own = {key: entry[key] for key in ("token", "logprob", "bytes")}
            assert not count or own in entry["top_logprobs"]

    def test_they_are_the_same_however_many_alternatives_are_asked_for(self) -> None:
        def values(count: int) -> list[float]:
            entries = MOCK.whole(CHAT, logprobs=True, top_logprobs=count)["choices"][0]["logprobs"]["content"]
            return [entry["logprob"] for entry in entries]

        assert values(0) == values(3) == values(20)

    def test_null_without_logprobs(self) -> None:
        assert MOCK.whole(CHAT)["choices"][0]["logprobs"] is None
        assert MOCK.whole(CHAT, logprobs=False)["choices"][0]["logprobs"] is None

    def test_a_refusal_has_them_too(self) -> None:
        mock = Mock(refusal_probability=1)
        choice = mock.whole(CHAT, logprobs=True)["choices"][0]
        assert choice["logprobs"]["content"] is None
        assert "".join(entry["token"] for entry in choice["logprobs"]["refusal"]) == choice["message"]["refusal"]

    def test_prompt_logprobs_are_by_token_id(self) -> None:
        reply = MOCK.whole(CHAT, prompt_logprobs=2, messages=[{"role": "user", "content": "Tell me more"}])
        check_prompt(reply["prompt_logprobs"], "Tell me more", 2)
        assert "prompt_logprobs" not in MOCK.whole(CHAT)

    def test_top_logprobs_need_logprobs(self) -> None:
        assert MOCK.error(CHAT, top_logprobs=2)["param"] == "top_logprobs"


def check_prompt(tables: list[Any], text: str, count: int) -> None:
    ids = TOKENIZER.encode(text)
    assert len(tables) == len(ids)
    assert tables[0] is None
    for table, identity, piece in zip(tables[1:], ids[1:], TOKENIZER.pieces(text)[1:], strict=True):
        assert table[str(identity)]["decoded_token"] == piece
        assert len(table) == count
        for number, entry in table.items():
            assert entry["logprob"] <= 0
            assert entry["rank"] >= 1
            assert TOKENIZER.decode([int(number)]) == entry["decoded_token"]


class TestCompletions:
    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_four_lists_of_one_length(self, count: int) -> None:
        choice = MOCK.whole(COMPLETIONS, logprobs=count, max_tokens=9)["choices"][0]
        logprobs = choice["logprobs"]
        assert logprobs["tokens"] == TOKENIZER.pieces(choice["text"])
        for offset, token, value, top in zip(*map(logprobs.get, LISTS), strict=True):
            assert choice["text"][offset:].startswith(token)
            assert top[token] == value == pytest.approx(min(value, 0))
            assert len(top) == max(1, count)

    @pytest.mark.parametrize("prompt", ["Warsaw is", 'Zażółć 水 "gęślą"\n', [72, 105], [[1]]])
    def test_echo_begins_with_the_prompt(self, prompt: Any) -> None:
        body = {"prompt": prompt, "max_tokens": 4, "echo": True, "logprobs": 2}
        choice = MOCK.whole(COMPLETIONS, **body)["choices"][0]
        text = prompt if isinstance(prompt, str) else TOKENIZER.decode(prompt[0] if prompt == [[1]] else prompt)
        logprobs = choice["logprobs"]
        assert choice["text"].startswith(text)
        assert "".join(logprobs["tokens"]) == choice["text"]
        assert logprobs["token_logprobs"][0] is logprobs["top_logprobs"][0] is None
        assert all(value <= 0 for value in logprobs["token_logprobs"][1:])
        assert all(len(top) == 2 for top in logprobs["top_logprobs"][1:])
        assert assemble(MOCK.chunks(COMPLETIONS, 1, 2, **body))["choices"][0] == choice

    def test_scoring_a_prompt_generates_nothing(self) -> None:
        body = {"prompt": ["Tell me", "and me"], "max_tokens": 0, "echo": True, "logprobs": 1}
        reply = MOCK.whole(COMPLETIONS, **body)
        assert [choice["text"] for choice in reply["choices"]] == ["Tell me", "and me"]
        assert [choice["finish_reason"] for choice in reply["choices"]] == ["length", "length"]
        assert [choice["logprobs"]["tokens"] for choice in reply["choices"]] == [["Tell", " me"], ["and", " me"]]
        assert reply["usage"]["completion_tokens"] == 0
        assert assemble(MOCK.chunks(COMPLETIONS, **body))["choices"] == reply["choices"]

    def test_the_same_prompt_has_the_same_score(self) -> None:
        def score(**body: Any) -> list[float]:
            choice = MOCK.whole(COMPLETIONS, prompt="Tell me more", echo=True, logprobs=1, **body)["choices"][0]
            values = choice["logprobs"]["token_logprobs"]
            assert isinstance(values, list)
            return values[:3]

        assert score(max_tokens=0) == score(max_tokens=3)

    def test_prompt_logprobs_of_each_choice(self) -> None:
        reply = MOCK.whole(COMPLETIONS, prompt=["Tell me", "Ask her now"], prompt_logprobs=1)
        for choice, text in zip(reply["choices"], ["Tell me", "Ask her now"], strict=True):
            check_prompt(choice["prompt_logprobs"], text, 1)
            assert not choice["text"].startswith(text)


LISTS = ("text_offset", "tokens", "token_logprobs", "top_logprobs")
