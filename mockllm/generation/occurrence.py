"""Counts how often a content was seen, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict


class Occurrences:
    """The k-th time of each content, so that a repeated request is a new draw.

    Args:
        limit: How many contents are remembered; then those longest unseen are forgotten, and
            begin at 0 again.
    """

    def __init__(self, limit: int = 65_536) -> None:
        self._limit = limit
        self._seen: OrderedDict[bytes, int] = OrderedDict()

    def count(self, key: bytes) -> int:
        """How often `key` was seen before this time: 0, 1, 2, …"""
        seen = self._seen.pop(key, -1) + 1
        self._seen[key] = seen
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)
        return seen
