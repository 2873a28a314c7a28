"""Which faults strike a request: matchers, draws and counts.

A draw is keyed by (seed, request, occurrence): the same multiset of requests meets the same
faults in any order, and a request that is sent again draws anew. `nth` and `first` count
arrivals, so with them the order matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate

import msgspec
from msgspec import Struct

from mockllm.faults.fault import Fault
from mockllm.generation.keyed import derive, make_key
from mockllm.generation.occurrence import Occurrences


class Seen(Struct, frozen=True, gc=False):
    """What a request shows to the matchers.

    Attributes:
        paths: Its path as sent, and the route's.
        generates: It is a POST to the API.
        headers: Lower-case names.
        content: What makes two requests the same one.
        key: Takes the place of the occurrence in draws (`--key-header`), or None.
    """

    paths: tuple[str, str]
    generates: bool
    model: str
    headers: Mapping[bytes, bytes]
    content: bytes
    key: bytes | None = None


class _Rule:
    """One fault with its matchers made ready."""

    def __init__(self, fault: Fault, limit: int) -> None:
        self.fault = fault
        self._label = msgspec.json.encode(fault)
        self._model = _pattern(fault.model)
        self._path = _pattern(fault.path)
        self._header, self._value = _header(fault.header)
        self._met = 0
        self._each = Occurrences(limit)
        self.draws = fault.probability is not None

    def concerns(self, seen: Seen) -> bool:
        """Whether what stands in the request fits."""
        if self._path is None:
            if not seen.generates:
                return False
        elif not any(map(self._path.match, seen.paths)):
            return False
        if self._model is not None and not self._model.match(seen.model):
            return False
        if self._header is None:
            return True
        value = seen.headers.get(self._header)
        return value is not None and (self._value is None or value == self._value)

    def strikes(self, key: bytes, occurrence: bytes) -> bool:
        """Whether it strikes a request that it concerns; counts the arrival."""
        fault = self.fault
        self._met += 1
        if fault.nth is not None and self._met % fault.nth:
            return False
        if fault.first is not None:
            before = self._met - 1 if fault.of == "all" else self._each.count(key)
            if before >= fault.first:
                return False
        if fault.probability is None:
            return True
        draw = derive(key, b"fault:" + self._label + b":" + occurrence)
        return int.from_bytes(draw[:8], "big") < fault.probability * 2**64


class Chooser:
    """Chooses among faults in their order.

    Args:
        faults: In the order in which they are looked at.
        seed: The server's seed.
        limit: How many different requests are remembered for counts.
    """

    def __init__(self, faults: Sequence[Fault], seed: int, limit: int = 65_536) -> None:
        self._rules = [_Rule(fault, limit) for fault in faults]
        self._seed = seed
        self._occurrences = Occurrences(limit)
        self._draws = any(rule.draws for rule in self._rules)
        self._keyed = self._draws or any(fault.first is not None and fault.of == "each" for fault in faults)

    def choose(self, seen: Seen) -> Iterator[Fault]:
        """The faults that strike a request, in order; call it once for each arrival."""
        key = occurrence = b""
        if self._keyed:
            key = make_key(self._seed, seen.paths[0].encode("utf-8", "surrogateescape") + b"\n" + seen.content)
            if seen.key is not None:
                occurrence = seen.key
                key = derive(key, b"key:" + seen.key)
            elif self._draws:
                occurrence = b"%d" % self._occurrences.count(key)
        for rule in self._rules:
            if rule.concerns(seen) and rule.strikes(key, occurrence):
                yield rule.fault
                if not rule.fault.also:
                    return


def _pattern(glob: str | None) -> re.Pattern[str] | None:
    return None if glob is None else re.compile(translate(glob))


def _header(given: str | None) -> tuple[bytes | None, bytes | None]:
    if given is None:
        return None, None
    name, colon, value = given.partition(":")
    return name.strip().lower().encode("latin-1"), value.strip().encode("latin-1", "replace") if colon else None
