"""Hugging Face tokenizers: real ones, trained here on generated text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.errors import ConfigError
from mockllm.generation import huggingface
from mockllm.generation.content import TextSource
from mockllm.generation.huggingface import HuggingFaceTokenizer, cache_folder, find, load
from mockllm.generation.tokens import BuiltinTokenizer, Tokenizer

hf = pytest.importorskip("tokenizers")
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402  needs the package


def corpus(texts: int = 40) -> list[str]:
    source = TextSource(BuiltinTokenizer())
    return ["".join(source.text(b"%016d" % number, 800)) for number in range(texts)]


def byte_level(vocab_size: int) -> Any:
    """As GPT-2's and Llama 3's."""
    tokenizer = hf.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def word_piece(vocab_size: int) -> Any:
    """As BERT's: lower case, no spaces in tokens, a post-processor that adds special tokens."""
    tokenizer = hf.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def unigram(vocab_size: int) -> Any:
    """As T5's."""
    tokenizer = hf.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def unsplit_bpe(vocab_size: int) -> Any:
    """As Llama 2's: a space is put before the text, and nothing splits it before the merges."""
    tokenizer = hf.Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Strip(" ", 1, 0)])
    return tokenizer


def characters(_: int) -> Any:
    """No token is a word."""
    tokenizer = hf.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.train_from_iterator(corpus(1), trainers.BpeTrainer(vocab_size=60, show_progress=False))
    return tokenizer


MAKERS: dict[str, tuple[Callable[[int], Any], int]] = {
    "byte-level": (byte_level, 6000),
    "byte-level, few words": (byte_level, 500),
    "WordPiece": (word_piece, 6000),
    "WordPiece, few words": (word_piece, 300),
    "Unigram": (unigram, 3000),
    "unsplit BPE": (unsplit_bpe, 4000),
    "characters": (characters, 0),
}


@cache
def backend(name: str) -> Any:
    maker, size = MAKERS[name]
    return maker(size)


@cache
def made(name: str) -> tuple[HuggingFaceTokenizer, TextSource]:
    tokenizer = HuggingFaceTokenizer(name, backend(name))
    return tokenizer, huggingface.make_source(tokenizer)


@pytest.fixture(scope="module", params=MAKERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each tokenizer in turn, made before the test begins."""
    made(request.param)
    return str(request.param)


@given(key=st.binary(min_size=16, max_size=16), count=st.integers(0, 300))
def test_text_has_as_many_tokens_as_asked_for(name: str, key: bytes, count: int) -> None:
    tokenizer, source = made(name)
    pieces = source.text(key, count)
    assert tokenizer.count("".join(pieces)) == len(pieces) == count
    # Straight from the package, so that the count does not rest on our own code alone.
    assert len(backend(name).encode("".join(pieces), add_special_tokens=False).ids) == count


@given(text=st.text(st.characters(exclude_categories=())) | st.text("ab ,.\n\u00e9\U0001f600", max_size=30))
def test_pieces_are_the_text_one_for_each_token(name: str, text: str) -> None:
    tokenizer, _ = made(name)
    pieces = tokenizer.pieces(text)
    assert len(pieces) == tokenizer.count(text) == len(tokenizer.encode(text))
    assert "".join(pieces) == (text if pieces else "")


def test_a_character_of_several_tokens_belongs_to_the_first() -> None:
    tokenizer, _ = made("byte-level")
    assert tokenizer.pieces("a\U0001f600")[1:] == ["\U0001f600", "", "", ""]


@given(text=st.text())
def test_a_byte_level_tokenizer_is_lossless(text: str) -> None:
    tokenizer, _ = made("byte-level")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_english_is_spoken_where_it_is_known() -> None:
    for known in ("byte-level", "WordPiece"):
        _, source = made(known)
        assert len(source.vocabulary()) > 150
        assert {",", "."} <= set(source.vocabulary())
    assert "." not in made("Unigram")[1].vocabulary()


def test_special_tokens_are_not_counted() -> None:
    tokenizer, _ = made("WordPiece")
    assert tokenizer.count("") == 0
    assert tokenizer.count(" the") == 1


def test_truncation_and_padding_of_the_file_are_off() -> None:
    cutting = byte_level(500)
    cutting.enable_truncation(4)
    cutting.enable_padding(length=8)
    tokenizer = HuggingFaceTokenizer("x", cutting)
    assert tokenizer.count("a b c d e f") == 6
    assert tokenizer.count("a") == 1


@pytest.mark.parametrize("token_id", [-1, 6000, 2**31, 2**70])
def test_an_id_outside_the_vocabulary_is_refused(token_id: int) -> None:
    tokenizer: Tokenizer = made("byte-level")[0]
    with pytest.raises(ValueError, match=f"token id {token_id} is outside the vocabulary"):
        tokenizer.decode([0, token_id])


def test_a_tokenizer_that_cannot_keep_the_promise_is_refused() -> None:
    """Its words merge with each other, for there is nothing that splits them."""
    tokenizer = hf.Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1}, unk_token="[UNK]"))
    with pytest.raises(ConfigError, match=r"only 0 words stay whole") as caught:
        huggingface.make_source(HuggingFaceTokenizer("bad", tokenizer))
    assert caught.value.name == "--processor"
    assert caught.value.value == "bad"


def test_a_fault_is_found_in_a_source_made_for_another_tokenizer() -> None:
    """The check itself: sentences of the built-in tokenizer are no tokens of a small vocabulary."""
    foreign = TextSource(BuiltinTokenizer(), variety=4)
    assert huggingface.fault(BuiltinTokenizer(), foreign) is None
    assert huggingface.fault(made("byte-level, few words")[0], foreign) is not None


def test_a_file_a_folder_and_a_cached_name_load(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    byte_level(6000).save(str(snapshot / "tokenizer.json"))
    for processor in (str(snapshot / "tokenizer.json"), str(snapshot)):
        tokenizer, source = load(processor)
        assert tokenizer.count("".join(source.text(b"k" * 16, 50))) == 50
    assert find("org/name", tmp_path / "hub") == snapshot / "tokenizer.json"
    old = tmp_path / "hub" / "models--org--name" / "snapshots" / "older"
    old.mkdir()
    (old / "tokenizer.json").write_text("{}")
    refs = tmp_path / "hub" / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc123")
    assert load("org/name", tmp_path / "hub")[0].name == "org/name"


def test_what_cannot_be_found_or_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"--processor: .* that `tokenizers` can read"):
        load(str(tmp_path))
    with pytest.raises(ConfigError, match=r"a folder with a tokenizer\.json"):
        load(str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="in the local cache"):
        load("org/unknown", tmp_path)


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match="the package `tokenizers` is installed"):
        load("anything")


def test_the_cache_is_where_the_environment_says() -> None:
    home = Path("/home/x")
    assert cache_folder({}, home) == Path("/home/x/.cache/huggingface/hub")
    assert cache_folder({"XDG_CACHE_HOME": "/c"}, home) == Path("/c/huggingface/hub")
    assert cache_folder({"HF_HOME": "/h", "XDG_CACHE_HOME": "/c"}, home) == Path("/h/hub")
    assert cache_folder({"HF_HUB_CACHE": "/hub", "HF_HOME": "/h"}, home) == Path("/hub")
