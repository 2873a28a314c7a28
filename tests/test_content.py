"""The text source: its tokens are what it says they are."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.generation import content, words
from mockllm.generation.content import TextSource
from mockllm.generation.keyed import KEY_BYTES, Draws
from mockllm.generation.tokens import BuiltinTokenizer

TOKENIZER = BuiltinTokenizer()
SOURCE = TextSource(TOKENIZER)
KEYS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


def text_of(pieces: list[bytes]) -> str:
    """What a client reads: the pieces put into a JSON string."""
    return msgspec.json.decode(b'"' + b"".join(pieces) + b'"', type=str)


@given(KEYS, st.integers(0, 600))
def test_text_has_as_many_tokens_as_asked_for(key: bytes, count: int) -> None:
    pieces = SOURCE.pieces(key, count)
    text = text_of(pieces)
    assert len(pieces) == TOKENIZER.count(text) == count
    assert TOKENIZER.pieces(text) == [text_of([piece]) for piece in pieces]


@given(KEYS, st.integers(0, 100), st.integers(0, 100))
def test_a_shorter_text_begins_the_longer_one(key: bytes, first: int, second: int) -> None:
    shorter, longer = sorted((first, second))
    assert SOURCE.pieces(key, longer)[:shorter] == SOURCE.pieces(key, shorter)


def test_no_piece_merges_with_the_next() -> None:
    vocabulary = SOURCE.vocabulary()
    marks = [piece for piece in vocabulary if not piece.startswith(" ")]
    some = vocabulary[::29] + marks
    for before in vocabulary:
        pairs = [(before, after) for after in some if not (before in marks and after in marks)]
        assert TOKENIZER.pieces("".join(a + b + " x" for a, b in pairs)) == [p for a, b in pairs for p in (a, b, " x")]


def test_different_keys_give_different_text() -> None:
    texts = {b"".join(SOURCE.pieces(b"%016d" % n, 16)) for n in range(2000)}
    assert len(texts) == 2000


def test_the_same_key_gives_the_same_text_for_ever() -> None:
    assert text_of(SOURCE.pieces(b"0123456789abcdef", 24)) == (
        "Our button really made since wings. Of its party, one guess like your pepper"
        " wept the tender engine. From one bear"
    )


def test_pieces_are_shared_not_copied() -> None:
    first, second = SOURCE.pieces(b"k" * 16, 200), SOURCE.pieces(b"k" * 16, 200)
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_text_reads_as_sentences() -> None:
    sentences = text_of(SOURCE.pieces(b"k" * 16, 4000)).split(". ")[:-1]
    for sentence in sentences:
        assert sentence[0].isupper()
        assert sentence[1:].replace(" I ", " ").islower()
    assert {TOKENIZER.count(sentence) + 1 for sentence in sentences} >= set(range(4, 21))
    assert len({word.strip(",").lower() for sentence in sentences for word in sentence.split()}) > 600


def test_the_word_list_is_large_and_short() -> None:
    lists = [value for name, value in vars(words).items() if name.isupper()]
    lexicon = {word for group in lists for word in group}
    assert len({word for word in lexicon if len(word) <= 6 and TOKENIZER.count(" " + word) == 1}) >= 1000


def test_a_flat_source_takes_its_pieces_in_any_order() -> None:
    source = TextSource(TOKENIZER, any_order=[" \u00e9", ' "', "\n"])
    pieces = source.pieces(b"k" * 16, 300)
    assert set(pieces) == {" \u00e9".encode(), b' \\"', b"\\n"}
    assert len(pieces) == 300
    assert source.vocabulary() == [" \u00e9", ' "', "\n"]


class _OneLetterEach(BuiltinTokenizer):
    def pieces(self, text: str) -> list[str]:
        return list(text)


def test_a_tokenizer_without_english_words_is_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        TextSource(_OneLetterEach())


@given(KEYS, st.integers(0, 20))
def test_helper_words_and_sentences_are_plain_english(key: bytes, count: int) -> None:
    chosen = content.words(Draws(key), count)
    assert len(chosen) == count
    assert all(word.isascii() and word.islower() and word.isalpha() for word in chosen)
    sentence = content.sentence(Draws(key))
    assert sentence == content.sentence(Draws(key))
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "  " not in sentence
