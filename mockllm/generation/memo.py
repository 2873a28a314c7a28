"""Remembers what was made of the keys that were used last, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Values by keys that clients send; what was used longest ago makes room.

    Args:
        most: How many are kept.
        most_bytes: How long their keys may be together, but for the one used last: what is made of a
            key grows with it.
    """

    __slots__ = ("_bytes", "_kept", "_most", "_most_bytes")

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> T | None:
        """What is kept for a key."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def keep(self, key: bytes, value: T) -> T:
        """Keep a value for a key that has none; returns it."""
        kept = self._kept
        kept[key] = value
        self._bytes += len(key)
        while len(kept) > 1 and (len(kept) > self._most or self._bytes > self._most_bytes):
            self._bytes -= len(kept.popitem(last=False)[0])
        return value
