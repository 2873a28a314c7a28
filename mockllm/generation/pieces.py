"""Pieces: one token's text each, as the inside of a JSON string (escaped, UTF-8)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mockllm.generation.tokens import Tokenizer

_encode = msgspec.json.Encoder().encode
_decode_list = msgspec.json.Decoder(list[str]).decode


def piece(text: str) -> bytes:
    """A text as a piece; half a surrogate pair, which UTF-8 has no bytes for, is replaced by U+FFFD."""
    try:
        return _encode(text)[1:-1]
    except UnicodeEncodeError:
        return _encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))[1:-1]


def pieces_of(tokenizer: Tokenizer, text: str) -> list[bytes]:
    """A text's tokens as pieces."""
    return list(map(piece, tokenizer.pieces(text)))


def texts_of(pieces: Sequence[bytes]) -> list[str]:
    """The text of each piece."""
    return _decode_list(b'["' + b'","'.join(pieces) + b'"]') if pieces else []
