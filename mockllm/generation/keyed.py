"""Randomness without a generator: every draw is a function of a key.

There is no shared state, so an answer depends neither on the order of arrival nor on the
process that gives it. A key is 16 bytes; from it SHAKE-128 yields as many bytes as are
asked for, and a longer answer begins with the shorter one.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from hashlib import blake2b, shake_128
from math import sqrt
from statistics import NormalDist

KEY_BYTES = 16


def make_key(seed: int, content: bytes) -> bytes:
    """The key of an answer: 16 bytes out of a seed (any int) and the request's content."""
    return blake2b(content, digest_size=KEY_BYTES, key=b"%d" % seed).digest()


def derive(key: bytes, purpose: bytes) -> bytes:
    """A key of its own for one purpose: `derive(key, b"choice:1")`."""
    return blake2b(purpose, digest_size=KEY_BYTES, key=key).digest()


def octets(key: bytes, count: int) -> bytes:
    """`count` uniform bytes; `octets(k, n)` begins `octets(k, n + 1)`."""
    return shake_128(key).digest(count)


def u16s(key: bytes, count: int) -> Sequence[int]:
    """`count` uniform integers in 0…65535; `u16s(k, n)` begins `u16s(k, n + 1)`."""
    raw = shake_128(key).digest(2 * count)
    if sys.byteorder == "little":
        return memoryview(raw).cast("H")
    values = array("H", raw)
    values.byteswap()
    return values


_NORMAL: list[float] = []


def normals(key: bytes, count: int) -> list[float]:
    """`count` draws from the standard normal distribution.

    Inverse transform over 65,536 equally likely quantiles, scaled to a variance of exactly 1;
    the tails end at ±4.3. The table is made at the first call (about 20 ms): a server that uses
    it asks once at start.
    """
    if not _NORMAL:
        inverse = NormalDist().inv_cdf
        upper = [inverse(0.5 + (i + 0.5) / 65536) for i in range(32768)]
        scale = 1 / sqrt(sum(z * z for z in upper) / 32768)
        upper = [z * scale for z in upper]
        _NORMAL.extend([-z for z in reversed(upper)])
        _NORMAL.extend(upper)
    return [_NORMAL[u] for u in u16s(key, count)]


class Draws:
    """A keyed source of single draws, for code that makes many small decisions.

    Args:
        key: 16 bytes; the same key gives the same sequence.
    """

    __slots__ = ("_block", "_key", "_position", "_values")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._block = 0
        self._position = 0
        self._values: Sequence[int] = ()

    def u32(self) -> int:
        """A uniform integer in 0…2**32-1."""
        if self._position + 2 > len(self._values):
            self._values = u16s(derive(self._key, b"%d" % self._block), 64)
            self._block += 1
            self._position = 0
        high, low = self._values[self._position], self._values[self._position + 1]
        self._position += 2
        return high << 16 | low

    def uniform(self) -> float:
        """A uniform float in [0, 1)."""
        return self.u32() / 4294967296

    def below(self, limit: int) -> int:
        """A uniform integer in 0…limit-1; `limit` ≥ 1, of any size."""
        if limit <= 1 << 32:
            return self.u32() * limit >> 32
        value = 0
        for _ in range(limit.bit_length() // 32 + 2):
            value = value << 32 | self.u32()
        return value % limit
