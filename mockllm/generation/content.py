"""Text to answer with: sentences of common words, a token each, out of a key.

A text is a run of sentence *shapes* (`DAN VDN.`: determiner, adjective, noun, verb, …). One keyed
byte picks a shape, one byte each picks the words, so a token costs a table look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from operator import getitem

import msgspec

from mockllm.generation import words as lexicon
from mockllm.generation.keyed import Draws, octets
from mockllm.generation.tokens import Tokenizer

_Table = tuple[bytes, ...]  # 256 pieces: one for each value of a byte

_WORDS: Mapping[str, Sequence[str]] = {
    "D": lexicon.DETERMINERS,
    "A": lexicon.ADJECTIVES,
    "N": lexicon.NOUNS[::2],
    "M": lexicon.NOUNS[1::2],
    "P": lexicon.PLURALS,
    "S": lexicon.PRONOUNS,
    "V": lexicon.VERBS,
    "R": lexicon.ADVERBS,
    "I": lexicon.PREPOSITIONS,
    "C": lexicon.CONJUNCTIONS,
}
_OPENINGS = ("", "R,", "IDN,", "CSVDM,")
_SUBJECTS = ("DN", "DAM", "P", "AP", "S", "DNIDM", "PIDN", "DAAN")
_PREDICATES = ("VDM", "RVIP", "VDAN", "VDNIDM", "VIDAN", "VP", "RVDAM", "VAPCSVDN")
# One for each value of a byte: 4 × 8 × 8; 4 to 20 tokens, 11.4 on average.
_SHAPES = [
    opening + subject + predicate + "." for opening in _OPENINGS for subject in _SUBJECTS for predicate in _PREDICATES
]
ANCHOR = "a"  # a piece is tried behind this: some tokenizers treat the start of a text in another way
_ALL_WORDS = tuple(dict.fromkeys(word for kind in "NMAVPR" for word in _WORDS[kind]))


class TextSource:
    """Makes text whose tokens are known beforehand.

    Args:
        tokenizer: Decides which words may be used: those that are one token behind a space.
        variety: Words for each place of a sentence, 1 to 256; fewer make a source that is quicker to check.
        any_order: Pieces to be used in place of English sentences, each good behind any other: for a
            tokenizer that does not know enough English words. The first one of a text goes without
            its space if it is no single token there with it.

    Raises:
        ValueError: The tokenizer leaves no words for some place of a sentence.
    """

    def __init__(self, tokenizer: Tokenizer, *, variety: int = 256, any_order: Sequence[str] = ()) -> None:

        def begins(text: str) -> bool:
            return tokenizer.pieces(text) == [text]

        def follows(text: str) -> bool:
            return tokenizer.pieces(ANCHOR + text) == [ANCHOR, text]

        if any_order:
            table = _table(any_order)
            self._shapes: list[list[_Table]] = [[table] * len(shape) for shape in _SHAPES]
            self._first = {piece: piece if begins(_plain(piece)) else piece.removeprefix(b" ") for piece in table}
            return

        marks = {mark: _table([mark]) for mark in ",." if follows(mark)}
        lower = {
            kind: _table(islice(filter(follows, (" " + word for word in _spread(words))), variety))
            for kind, words in _WORDS.items()
        }
        starts = {kind: [word.capitalize() for word in _spread(words)] for kind, words in _WORDS.items()}
        upper = {
            kind: _table(islice((" " + word for word in words if follows(" " + word) and begins(word)), variety))
            for kind, words in starts.items()
        }
        tables = marks | lower
        if len(marks) < 2 or not all(lower.values()) or not all(upper[shape[0]] for shape in _SHAPES):
            raise ValueError("too few common English words are single tokens")
        self._shapes = [[upper[shape[0]], *(tables[kind] for kind in shape[1:])] for shape in _SHAPES]
        self._first = {piece: piece[1:] for table in upper.values() for piece in table}

    def pieces(self, key: bytes, count: int) -> list[bytes]:
        """`count` tokens of text for a key; the text of fewer tokens is its beginning.

        Args:
            key: 16 bytes; the same key gives the same text.
            count: Tokens, ≥ 0.

        Returns:
            One token's text each, as the inside of a JSON string (UTF-8); the objects are shared.
        """
        if count <= 0:
            return []
        draws = octets(key, count + 1)
        tables: list[_Table] = []
        while len(tables) < count:
            # A sentence's shape is drawn with the byte that the full stop before it does not need.
            tables += self._shapes[draws[len(tables)]]
        pieces = list(map(getitem, tables, draws[1:]))
        pieces[0] = self._first[pieces[0]]
        return pieces

    def text(self, key: bytes, count: int) -> list[str]:
        """The same as `pieces`, unescaped."""
        return [_plain(piece) for piece in self.pieces(key, count)]

    def vocabulary(self) -> list[str]:
        """Every piece that can occur behind another, as text."""
        pieces = dict.fromkeys(piece for shape in self._shapes for table in shape for piece in table)
        return [_plain(piece) for piece in pieces]


def words(draws: Draws, count: int) -> list[str]:
    """`count` plain lower-case English words."""
    return [_ALL_WORDS[draws.below(len(_ALL_WORDS))] for _ in range(count)]


def sentence(draws: Draws) -> str:
    """One English sentence: a capital first, a full stop last, 4 to 20 tokens."""
    text = ""
    for kind in _SHAPES[draws.below(len(_SHAPES))]:
        text += kind if kind in ",." else " " + _WORDS[kind][draws.below(len(_WORDS[kind]))]
    return text[1].upper() + text[2:]


def _table(pieces: Iterable[str]) -> _Table:
    """256 pieces, repeated where there are fewer, as the inside of JSON strings."""
    return tuple(islice(cycle([msgspec.json.encode(piece)[1:-1] for piece in pieces]), 256))


def _plain(piece: bytes) -> str:
    return msgspec.json.decode(b'"' + piece + b'"', type=str)


def _spread(words: Sequence[str]) -> Sequence[str]:
    """The words in another fixed order, so that the first few do not all begin with one letter."""
    return [word for start in range(17) for word in words[start::17]]
