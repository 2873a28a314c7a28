"""Pieces of JSON as bytes: the insides of strings, and what is built around them."""

from __future__ import annotations

import msgspec

_encode = msgspec.json.Encoder().encode


def quoted(text: str) -> bytes:
    """`text` as a JSON string, quotes included."""
    return _encode(text)


def inner(text: str) -> bytes:
    """`text` as the inside of a JSON string: a piece."""
    return _encode(text)[1:-1]


def plain(piece: bytes) -> str:
    """The text of a piece, or of several joined ones."""
    text: str = msgspec.json.decode(b'"' + piece + b'"')
    return text
