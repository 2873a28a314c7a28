"""`/tokenize` and `/detokenize`: bodies in, bodies out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.dialects.tokenizer import detokenize, read_detokenize, read_tokenize, tokenize
from mockllm.errors import RequestError
from mockllm.generation.token_ids import VOCAB_SIZE
from mockllm.generation.tokens import BuiltinTokenizer

TOKENIZER = BuiltinTokenizer()


def ask_tokenize(**body: Any) -> dict[str, Any]:
    reply = json.loads(tokenize(read_tokenize(json.dumps(body).encode()), TOKENIZER, 4096))
    assert isinstance(reply, dict)
    return reply


def ask_detokenize(**body: Any) -> dict[str, Any]:
    reply = json.loads(detokenize(read_detokenize(json.dumps(body).encode()), TOKENIZER))
    assert isinstance(reply, dict)
    return reply


def test_a_prompt() -> None:
    assert ask_tokenize(model="m", prompt="Hello world!", add_special_tokens=True) == {
        "count": 3,
        "max_model_len": 4096,
        "tokens": TOKENIZER.encode("Hello world!"),
        "token_strs": None,
    }


@pytest.mark.parametrize("key", ["prompt", "text"])
@given(text=st.text())
def test_text_comes_back_under_both_names(key: str, text: str) -> None:
    reply = ask_tokenize(**{key: text}, return_token_strs=True)
    assert reply["count"] == len(reply["tokens"]) == len(reply["token_strs"]) == TOKENIZER.count(text)
    assert "".join(reply["token_strs"]) == text
    assert ask_detokenize(tokens=reply["tokens"]) == {"prompt": text, "text": text}


CALLED = {"name": "add", "arguments": '{"a":1}'}


def test_messages_count_as_the_sum_of_their_texts() -> None:
    """Words that would be one token if the texts were joined stay apart."""
    reply = ask_tokenize(
        messages=[
            {"role": "system", "content": "be"},
            {"role": "user", "content": [{"type": "text", "text": "gin"}, {"type": "image_url", "image_url": "x"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": CALLED}]},
            {"role": "assistant", "content": "so", "function_call": CALLED},
        ],
        add_generation_prompt=True,
        return_token_strs=True,
        chat_template_kwargs={"enable_thinking": False},
        tools=[],
    )
    call = TOKENIZER.pieces('add({"a":1})')
    assert reply["token_strs"] == ["be", "gin", *call, "so", *call]
    assert reply["count"] == len(reply["token_strs"])
    assert ask_tokenize(prompt="begin")["count"] == 1


def test_nothing_has_no_tokens() -> None:
    assert ask_tokenize(prompt="", return_token_strs=True) == {
        "count": 0,
        "max_model_len": 4096,
        "tokens": [],
        "token_strs": [],
    }
    assert ask_tokenize(messages=[])["count"] == 0
    assert ask_detokenize(tokens=[]) == {"prompt": "", "text": ""}


def test_ids_that_spell_half_a_surrogate_pair_are_answered_escaped() -> None:
    asked = read_detokenize(b'{"tokens":[97,55357]}')
    assert detokenize(asked, TOKENIZER) == b'{"prompt":"a\\ud83d","text":"a\\ud83d"}'


@given(st.lists(st.integers(0, VOCAB_SIZE - 1)))
def test_any_ids_of_the_vocabulary_have_a_text(tokens: list[int]) -> None:
    assert ask_detokenize(tokens=tokens)["prompt"] == TOKENIZER.decode(tokens)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["a"]}, "prompt"),
        ({"text": 5}, "text"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"prompt": "a", "return_token_strs": "yes"}, "return_token_strs"),
        ({"messages": [], "add_generation_prompt": True, "continue_final_message": True}, "continue_final_message"),
    ],
)
def test_tokenize_says_what_is_wrong(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        ask_tokenize(**body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "invalid_request", param)
    assert f"$.{param}" in caught.value.message


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "tokens"),
        ({"tokens": "abc"}, "tokens"),
        ({"tokens": [1, -1]}, "tokens[1]"),
        ({"tokens": [1, "2"]}, "tokens[1]"),
        ({"tokens": [True]}, "tokens[0]"),
        ({"tokens": [1, VOCAB_SIZE]}, "tokens"),
        ({"tokens": [10**30]}, "tokens"),
    ],
)
def test_detokenize_says_what_is_wrong(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        ask_detokenize(**body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "invalid_request", param)
    assert f"$.{param}" in caught.value.message
