"""A board in shared memory: one place of fixed size for each process, written by that one alone.

A place has two pages in turn and a counter that says which is the latest, so that readers never
wait for a writer, nor for one that died in the midst of writing. A checksum tells a page that was
overwritten while it was read. The memory is a file without a name, which the workers inherit.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import zlib

PAGE_BYTES = 1 << 20
"""Most that a process publishes: an hour's curve of the load takes a quarter of it. Untouched memory costs nothing."""

_HEADER_BYTES = mmap.PAGESIZE
_EPOCH = struct.Struct("<dQ")  # when the last reset was, how many there were
_COUNTER = struct.Struct("<Q")
_PAGE_HEAD = struct.Struct("<II")  # length, CRC-32
_PLACE_BYTES = _HEADER_BYTES + 2 * PAGE_BYTES
_TRIES = 100


class SharedBoard:
    """See `truth.Board`.

    Args:
        fd: The file, which the board closes.
        places: How many places it has.
    """

    def __init__(self, fd: int, places: int) -> None:
        self.fd = fd
        self._places = places
        self._memory = mmap.mmap(fd, _HEADER_BYTES + places * _PLACE_BYTES)

    @classmethod
    def create(cls, places: int, now_s: float) -> SharedBoard:
        """A new board, whose first interval begins now."""
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
        os.truncate(fd, _HEADER_BYTES + places * _PLACE_BYTES)
        board = cls(fd, places)
        _EPOCH.pack_into(board._memory, 0, now_s, 0)
        return board

    @property
    def epoch(self) -> tuple[int, float]:
        """How many resets there were, and when the last one was."""
        at_s, count = _EPOCH.unpack_from(self._memory, 0)
        return count, at_s

    def advance(self, now_s: float) -> int:
        """Ask all to begin a new interval; returns its epoch."""
        count = self.epoch[0] + 1  # two at the same instant are one reset
        _EPOCH.pack_into(self._memory, 0, now_s, count)
        return count

    def publish(self, place: int, data: bytes) -> None:
        """Replace what stands at a place; nothing is published for b"".

        Raises:
            ValueError: It is more than a page.
        """
        if len(data) > PAGE_BYTES - _PAGE_HEAD.size:
            raise ValueError(f"a share of {len(data)} bytes is larger than a page")
        start = _HEADER_BYTES + place * _PLACE_BYTES
        number = int(_COUNTER.unpack_from(self._memory, start)[0]) + 1
        page = start + _HEADER_BYTES + number % 2 * PAGE_BYTES
        _PAGE_HEAD.pack_into(self._memory, page, len(data), zlib.crc32(data))
        body = page + _PAGE_HEAD.size
        self._memory[body : body + len(data)] = data
        _COUNTER.pack_into(self._memory, start, number)

    def read(self) -> list[bytes]:
        """What stands at every place that something was published at."""
        return [data for place in range(self._places) if (data := self.at(place))]

    def at(self, place: int) -> bytes:
        """What stands at a place; b"" for nothing."""
        start = _HEADER_BYTES + place * _PLACE_BYTES
        for _ in range(_TRIES):
            number = int(_COUNTER.unpack_from(self._memory, start)[0])
            if number == 0:
                return b""
            page = start + _HEADER_BYTES + number % 2 * PAGE_BYTES
            length, checksum = _PAGE_HEAD.unpack_from(self._memory, page)
            body = page + _PAGE_HEAD.size
            data = self._memory[body : body + min(length, PAGE_BYTES)]
            if zlib.crc32(data) == checksum:
                return data
        return b""

    def close(self) -> None:
        """Let it go; it lives until the last process does so. Idempotent."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self.fd)
