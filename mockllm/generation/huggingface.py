"""A Hugging Face tokenizer in place of the built-in one (`--processor`).

It counts and encodes plain text, without the special tokens that a chat template adds. Nothing is
ever fetched: the tokenizer is a file, a folder, or a model in the local cache.

Its text must keep the promise of the built-in one: what is streamed re-encodes to exactly the
tokens that were counted. So pieces are taken which are one token each, and at start every one is
tried behind every other, and long random texts as a whole. In a BPE tokenizer a sequence of tokens
is what its text encodes to if each neighbouring pair is; the others split at spaces first, and the
pairs cover what stands between two spaces.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mockllm.errors import ConfigError
from mockllm.generation.content import ANCHOR, TextSource
from mockllm.generation.tokens import Tokenizer

_OPTION = "--processor"
_FILE = "tokenizer.json"
_VARIETY = 20  # words for each place of a sentence: 250 pieces in all, 60,000 pairs, a third of a second
_FLAT = 128  # pieces where there are no English words
_FEWEST = 16
_WORD_MARKS = "\u0120\u2581"  # how byte-level BPE (Ġ) and SentencePiece (▁) spell a space
_SAMPLES, _SAMPLE_TOKENS = 4, 2048


class HuggingFaceTokenizer:
    """A tokenizer of the package `tokenizers`.

    Args:
        name: For people.
        backend: A `tokenizers.Tokenizer`; its truncation and padding are switched off.
    """

    def __init__(self, name: str, backend: Any) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.name = name
        self._backend = backend
        self._tokens: dict[int, str] = {number: token for token, number in backend.get_vocab().items()}
        self.vocab_size = max(self._tokens, default=-1) + 1

    def count(self, text: str) -> int:
        return len(self._encoding(text))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._encoding(text).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        for number in ids:
            if number not in self._tokens:
                raise ValueError(f"token id {number} is outside the vocabulary (0 to {self.vocab_size - 1})")
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def pieces(self, text: str) -> list[str]:
        """The text of each token.

        What belongs to no token (spaces, with some tokenizers) goes to the next one, at the end to the
        last. Of several tokens that make up one character the first has it, the others are empty.
        Only a text without any token (white space, with some tokenizers) is not covered.
        """
        ends: list[int] = []
        end = 0
        for _, stop in self._encoding(text).offsets:
            end = max(end, stop)
            ends.append(end)
        if ends:
            ends[-1] = len(text)
        return [text[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]

    def words(self) -> list[str]:
        """The words of the vocabulary, the oldest first: the letters of its tokens, each once.

        Byte-level vocabularies spell other letters than ASCII in bytes: those are no words here.
        """
        plain = [self._tokens[number].lstrip(_WORD_MARKS) for number in sorted(self._tokens)]
        return [word for word in dict.fromkeys(plain) if word.isalpha()]

    def _encoding(self, text: str) -> Any:
        try:
            return self._backend.encode(text, add_special_tokens=False)
        except (UnicodeEncodeError, TypeError):
            # Half a surrogate pair has no UTF-8; the replacement character stands for it.
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._backend.encode(whole, add_special_tokens=False)


def load(processor: str, cache: Path | None = None) -> tuple[HuggingFaceTokenizer, TextSource]:
    """The tokenizer that `--processor` names, and a text source that has been checked with it.

    Args:
        processor: A `tokenizer.json`, its folder, or a model's name in the cache.
        cache: Folder of the cache, see `cache_folder`; None for the usual place.

    Raises:
        ConfigError: The package `tokenizers` or the file is missing, the file is no tokenizer, or
            its text cannot be counted exactly.
    """
    try:
        package = importlib.import_module("tokenizers")
    except ImportError:
        raise ConfigError(
            _OPTION, processor, "nothing but the built-in tokenizer until the package `tokenizers` is installed"
        ) from None
    path = find(processor, cache)
    try:
        backend = package.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exceptions
        raise ConfigError(_OPTION, processor, f"a {_FILE} that `tokenizers` can read ({path}: {error})") from None
    tokenizer = HuggingFaceTokenizer(processor, backend)
    return tokenizer, make_source(tokenizer)


def cache_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Where Hugging Face's tools keep downloaded models.

    Source: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables.
    """
    if "HF_HUB_CACHE" in environ:
        return Path(environ["HF_HUB_CACHE"])
    if "HF_HOME" in environ:
        return Path(environ["HF_HOME"]) / "hub"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface" / "hub"


def find(processor: str, cache: Path | None = None) -> Path:
    """The `tokenizer.json` that is meant.

    Raises:
        ConfigError: There is none.
    """
    path = Path(processor).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        if (path / _FILE).is_file():
            return path / _FILE
        raise ConfigError(_OPTION, processor, f"a folder with a {_FILE}")
    model = (cache or cache_folder({}, Path.home())) / ("models--" + processor.replace("/", "--"))
    head = model / "refs" / "main"
    snapshots = sorted((model / "snapshots").glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    if head.is_file():
        snapshots.insert(0, model / "snapshots" / head.read_text().strip())
    for snapshot in snapshots:
        if (snapshot / _FILE).is_file():
            return snapshot / _FILE
    raise ConfigError(
        _OPTION, processor, f"a {_FILE}, its folder, or a model in the local cache (no {model}); nothing is fetched"
    )


def make_source(tokenizer: HuggingFaceTokenizer) -> TextSource:
    """A text source whose every text re-encodes to the tokens it was made of.

    English sentences where the tokenizer has the words for them, else words of its vocabulary.

    Raises:
        ConfigError: No such source was found.
    """
    try:
        source = TextSource(tokenizer, variety=_VARIETY)
    except ValueError:
        pass
    else:
        if fault(tokenizer, source) is None:
            return source
    reason = ""
    for space in (" ", ""):
        pieces = _agreeing(tokenizer, list(islice(_candidates(tokenizer, space), _FLAT)))
        if len(pieces) < _FEWEST:
            reason = reason or f"only {len(pieces)} words stay whole whatever stands beside them"
            continue
        source = TextSource(tokenizer, any_order=pieces)
        found = fault(tokenizer, source)
        if found is None:
            return source
        reason = found
    raise ConfigError(_OPTION, tokenizer.name, f"a tokenizer whose text can be counted exactly; with this one {reason}")


def _candidates(tokenizer: HuggingFaceTokenizer, space: str) -> Iterator[str]:
    """Words that are one token behind another, and at the start of a text."""
    for word in tokenizer.words():
        piece = space + word
        if tokenizer.pieces(ANCHOR + piece) == [ANCHOR, piece] and any(
            tokenizer.pieces(first) == [first] for first in (piece, word)
        ):
            yield piece


def fault(tokenizer: Tokenizer, source: TextSource) -> str | None:
    """Why a source's texts are not always what was counted; None if every test passed."""
    for before, after in _pairs(source):
        parts = [ANCHOR, *(part for piece in after for part in (before, piece))]
        if tokenizer.pieces("".join(parts)) != parts:
            return f"{before!r} merges with a piece beside it"
    for number in range(_SAMPLES):
        sample = source.text(b"%016d" % number, _SAMPLE_TOKENS)
        if tokenizer.pieces("".join(sample)) != sample:
            return "a long text re-encodes to other tokens"
    return None


def _pairs(source: TextSource) -> Iterator[tuple[str, list[str]]]:
    """Each piece with those that may stand beside it; two marks never do."""
    pieces = source.vocabulary()
    words = [piece for piece in pieces if piece not in (",", ".")]
    for piece in pieces:
        yield piece, words if piece in (",", ".") else pieces


def _agreeing(tokenizer: Tokenizer, pieces: list[str]) -> list[str]:
    """Those of the pieces that stay whole beside each other; the most quarrelsome are dropped first."""
    quarrels: dict[str, set[str]] = {piece: set() for piece in pieces}
    for before in pieces:
        parts = [ANCHOR, *(part for piece in pieces for part in (before, piece))]
        if tokenizer.pieces("".join(parts)) == parts:
            continue
        for piece in pieces:
            if tokenizer.pieces(ANCHOR + before + piece) != [ANCHOR, before, piece]:
                quarrels[before].add(piece)
                quarrels[piece].add(before)
    while quarrels:
        worst = max(quarrels, key=lambda piece: len(quarrels[piece]))
        if not quarrels[worst]:
            break
        del quarrels[worst]
        for others in quarrels.values():
            others.discard(worst)
    return list(quarrels)
