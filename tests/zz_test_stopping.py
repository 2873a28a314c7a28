"""Stop sequences: taken out of a first, unstopped reply, they cut a second one there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.generation.stopping import stop_text, stop_token
from tests.answers import CHAT, COMPLETIONS, TOKENIZER, Mock, assemble

MOCK = Mock(output_tokens=40)
TEXT = MOCK.text()
TOKENS = TOKENIZER.pieces(TEXT)


def stopped(**body: object) -> tuple[str, str, int]:
    """Text, finish reason and completion tokens of a reply, which its stream has as well."""
    whole = MOCK.whole(CHAT, **body)
    streamed = assemble(MOCK.chunks(CHAT, **body))
    choice = whole["choices"][0]
    assert streamed["choices"][0]["message"]["content"] == choice["message"]["content"]
    assert streamed["usage"] == whole["usage"]
    return choice["message"]["content"], choice["finish_reason"], whole["usage"]["completion_tokens"]


@given(st.integers(0, len(TEXT) - 1), st.integers(1, 30))
def test_the_text_is_cut_before_the_sequence(start: int, length: int) -> None:
    stop = TEXT[start : start + length]
    text, reason, tokens = stopped(stop=stop)
    assert text == TEXT[: TEXT.index(stop)]
    assert reason == "stop"
    # What was generated is counted: up to the token that completes the sequence.
    end = TEXT.index(stop) + len(stop)
    assert len("".join(TOKENS[: tokens - 1])) < end <= len("".join(TOKENS[:tokens]))


def test_a_sequence_over_several_tokens_sends_nothing_of_them() -> None:
    stop = "".join(TOKENS[3:7])
    chunks = MOCK.chunks(CHAT, stop=[stop, "never"])
    sent = [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]]
    assert [piece for piece in sent if piece] == TOKENS[:3]
    assert chunks[-1]["usage"]["completion_tokens"] == 7


def test_include_stop_str_in_output_keeps_it() -> None:
    stop = TEXT[10:17]
    assert stopped(stop=stop, include_stop_str_in_output=True)[0] == TEXT[: TEXT.index(stop)] + stop


def test_the_sequence_that_is_complete_first_counts() -> None:
    assert stopped(stop=[TEXT[30:34], TEXT[12:16]])[0] == TEXT[: TEXT.index(TEXT[12:16])]


def test_stop_reason_says_which() -> None:
    stop = TEXT[20:26]
    assert MOCK.whole(CHAT, stop=["never", stop])["choices"][0]["stop_reason"] == stop
    assert MOCK.whole(CHAT, stop=["never"])["choices"][0]["stop_reason"] is None
    token = TOKENIZER.encode(TEXT)[5]
    choice = MOCK.whole(CHAT, stop_token_ids=[token])["choices"][0]
    assert (choice["stop_reason"], choice["finish_reason"]) == (token, "stop")
    assert choice["message"]["content"] == "".join(TOKENS[:5])


def test_a_stop_token_may_be_kept() -> None:
    token = TOKENIZER.encode(TEXT)[5]
    text, _, tokens = stopped(stop_token_ids=[token], include_stop_str_in_output=True)
    assert (text, tokens) == ("".join(TOKENS[:6]), 6)


def test_a_sequence_behind_the_limit_stops_nothing() -> None:
    assert stopped(stop=TEXT[-8:], max_tokens=5)[1:] == ("length", 5)


def test_min_tokens_come_before_any_stop() -> None:
    first = TOKENS[0]
    assert stopped(stop=first)[2] == 1
    assert stopped(stop=first, min_tokens=4)[2] > 4


def test_a_json_document_is_cut_as_well() -> None:
    text = MOCK.text(response_format={"type": "json_object"})
    stop = '","'
    assert stopped(response_format={"type": "json_object"}, stop=stop)[0] == text[: text.index(stop)]


def test_every_choice_is_cut_for_itself() -> None:
    choices = MOCK.whole(COMPLETIONS, n=3, max_tokens=30)["choices"]
    stop = choices[1]["text"][10:20]
    again = MOCK.whole(COMPLETIONS, n=3, max_tokens=30, stop=stop)["choices"]
    for ours, theirs in zip(again, choices, strict=True):
        assert ours["text"] == theirs["text"].split(stop)[0]
    assert again[1]["finish_reason"] == "stop"


@pytest.mark.parametrize("stops", [(), ("",), ("☃",)])
def test_nothing_to_stop_at(stops: tuple[str, ...]) -> None:
    assert stop_text([b"a", b"b"], stops, include=False, after_tokens=0) is None
    assert stop_token([b"a", b"b"], [1, 2], [3], include=False, after_tokens=0) is None


def test_escapes_are_not_cut_in_two() -> None:
    found = stop_text([b'a\\"', b'\\n\\"b'], ['"b'], include=False, after_tokens=0)
    assert found is not None
    assert found.pieces == [b'a\\"', b"\\n"]
