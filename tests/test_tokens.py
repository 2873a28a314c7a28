"""The built-in tokenizer: lossless, stable, fast to count, near cl100k."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mockllm.generation import tokens
from mockllm.generation.token_ids import CODE_POINTS, VOCAB_SIZE, unpack
from mockllm.generation.tokens import BuiltinTokenizer, Tokenizer

TOKENIZER = BuiltinTokenizer()
ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Texts that meet the rules' edges more often than chance does.
WORDS = ["a", "Z", "A", "abcdef", "ing", "tion", "ABCDE", "Before", "gene", "ration", "12", "0", "!", '{"']
OTHERS = ["\u00e9", "\u0436\u0438", "\u4e2d", "\U0001f600", "\ud83d", "\u2028", "\u00a0", "\x00", "\x85"]
SPACES = [" ", "  ", "\n", "\r\n", "\r", "\t"]
TRICKY_TEXT = st.lists(st.sampled_from(WORDS + OTHERS + SPACES), max_size=40).map("".join)


@given(ANY_TEXT | TRICKY_TEXT)
@example("\ud800\udc00")
def test_every_string_comes_back(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert all(0 <= token_id < VOCAB_SIZE for token_id in ids)


@given(ANY_TEXT | TRICKY_TEXT)
def test_count_encode_and_pieces_agree(text: str) -> None:
    pieces = TOKENIZER.pieces(text)
    assert "".join(pieces) == text
    assert TOKENIZER.count(text) == len(pieces) == len(TOKENIZER.encode(text))
    assert [TOKENIZER.decode([token_id]) for token_id in TOKENIZER.encode(text)] == pieces


@given(st.text(st.sampled_from("abZ \n9.\u00e9\u4e2d"), max_size=300), st.integers(40, 80))
def test_a_long_text_counts_the_same_in_stretches(text: str, stretch: int) -> None:
    """Many ways to cut; 40 is longer than any token, real stretches are 65,536."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_STRETCH", stretch)
        assert TOKENIZER.count(text) == len(TOKENIZER.pieces(text))


@pytest.mark.parametrize(
    "unit",
    ["a", "A", "a1", " ", "\n", "\n ", "\u4e2d", "\U0001f600", "word ", "abcdefghijklmnop", '{"a":1},', "Aa", "\u0436"],
)
def test_texts_beyond_a_stretch_count_as_their_pieces(unit: str) -> None:
    text = unit * (200_001 // len(unit))
    assert TOKENIZER.count(text) == len(TOKENIZER.pieces(text))


def test_ids_fit_31_bits_and_blocks_do_not_overlap() -> None:
    assert VOCAB_SIZE <= 2**31


@given(st.integers(0, VOCAB_SIZE - 1))
def test_every_id_has_a_text(token_id: int) -> None:
    text = unpack(token_id)
    assert text
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@pytest.mark.parametrize("token_id", [-1, VOCAB_SIZE, 2**31, 2**70])
def test_an_id_outside_the_vocabulary_is_refused(token_id: int) -> None:
    with pytest.raises(ValueError, match=f"token id {token_id} is outside the vocabulary"):
        TOKENIZER.decode([5, token_id])


def test_single_characters_have_their_code_point_as_id() -> None:
    text = "a \n\u00e9\u4e2d\U0001f600\ud800\x00"
    assert [TOKENIZER.encode(char) for char in text] == [[ord(char)] for char in text]
    assert CODE_POINTS == 0x110000


def test_ids_are_stable_for_ever() -> None:
    """One of every block: a change here breaks what users have stored."""
    pinned = {
        "\n\n": [1114144],
        "\r\n  ": [1114370],
        "    ": [1114402],
        "\t\t": [1114431],
        "42": [1114480],
        "007": [1114545],
        '{"': [1116467],
        "!!!!": [1149362],
        " =": [2197956],
        "\xe9\xe8": [3483962],
        " \u0436\u0438": [8795530],
        " a": [331929384],
        "hello": [14409104],
        " world": [342715955],
        "Hello": [656953916],
        " World": [676344991],
        "AI": [677915058],
        " HTTPS": [694292910],
        "generation": [848969080],
        " measure": [1232477076],
        " Before": [1920032746],
        "Information": [1776214422],
    }
    assert pinned == {text: TOKENIZER.encode(text) for text in pinned}


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello world!", ["Hello", " world", "!"]),
        ("information", ["information"]),
        (" photosynthesis", [" photos", "ynthes", "is"]),
        ("HTTPServer NOT", ["HTTP", "Server", " NOT"]),
        ("if x:\n    y = 12345", ["if", " x", ":", "\n    ", "y", " =", " ", "123", "45"]),
        ("caf\u00e9 \u4e2d\u6587", ["caf", "\u00e9", " ", "\u4e2d", "\u6587"]),
        ("", []),
    ],
)
def test_the_rules_by_example(text: str, pieces: list[str]) -> None:
    assert TOKENIZER.pieces(text) == pieces


COUNTS = json.loads(Path(__file__).with_name("cl100k_counts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", COUNTS["prose"])
def test_english_prose_counts_within_a_quarter_of_cl100k(name: str) -> None:
    sample = COUNTS["prose"][name]
    assert TOKENIZER.count(sample["text"]) == pytest.approx(sample["cl100k_tokens"], rel=0.25)


@pytest.mark.parametrize("name", COUNTS["other"])
def test_code_json_and_other_languages_count_near_cl100k(name: str) -> None:
    sample = COUNTS["other"][name]
    assert TOKENIZER.count(sample["text"]) == pytest.approx(sample["cl100k_tokens"], rel=0.25)


def test_it_is_a_tokenizer() -> None:
    tokenizer: Tokenizer = TOKENIZER
    assert (tokenizer.name, tokenizer.vocab_size) == ("built-in", VOCAB_SIZE)
