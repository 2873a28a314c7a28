"""Unique ids. They are no part of the answer, so they need not repeat."""

from __future__ import annotations

from itertools import count
from secrets import token_hex


class Ids:
    """Makes ids: a prefix, 16 random hex digits drawn once, and a running number of 8 or more.

    Unique within a process by the number, between processes by the digits.

    Args:
        stem: The digits; random where omitted.
    """

    def __init__(self, stem: str | None = None) -> None:
        self._stem = token_hex(8) if stem is None else stem
        self._numbers = count(1)

    def __call__(self, prefix: str) -> str:
        """An id such as `chatcmpl-5f1e…00000001`."""
        return f"{prefix}{self._stem}{next(self._numbers):08x}"
