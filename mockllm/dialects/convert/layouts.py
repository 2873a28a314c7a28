"""Where the agents handler puts its items: the output indexes of two of its versions.

Both are odd where items come in an unusual order (two items under one index, an index that
changes on the way), and both are kept as they are. `reasoning` says each time whether there is a
reasoning item by now; it stands at index 0, always.
"""

from __future__ import annotations

from typing import Protocol


class Layout(Protocol):
    """Output indexes of one stream; a call is named by its place among the calls, from 0."""

    def new_call(self, *, reasoning: bool, parts: int) -> None:
        """A call has come for the first time; `parts` counts the message's parts so far."""
        ...

    def message(self, *, reasoning: bool) -> int:
        """Index of the message."""
        ...

    def call(self, place: int, *, reasoning: bool) -> int:
        """Index of a call."""
        ...

    def calls_before_message(self, *, reasoning: bool) -> int:
        """How many calls stand before the message in the final output; a negative number counts from the end."""
        ...


class Layout0160:
    """Versions up to 0.16.0: a call's index is fixed when it is first seen, the message's never."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[int] = []

    def new_call(self, *, reasoning: bool, parts: int) -> None:
        self._calls.append(reasoning + parts + len(self._calls))

    def message(self, *, reasoning: bool) -> int:
        return int(reasoning)

    def call(self, place: int, *, reasoning: bool) -> int:
        return self._calls[place]

    def calls_before_message(self, *, reasoning: bool) -> int:
        return 0


class Layout0161:
    """Version 0.16.1: every index is fixed at its first use."""

    __slots__ = ("_calls", "_message", "_seen")

    def __init__(self) -> None:
        self._seen = 0
        self._calls: dict[int, int] = {}
        self._message: int | None = None

    def new_call(self, *, reasoning: bool, parts: int) -> None:
        self._seen += 1

    def message(self, *, reasoning: bool) -> int:
        if self._message is None:
            self._message = reasoning + (self._seen if self._calls else 0)
        return self._message

    def call(self, place: int, *, reasoning: bool) -> int:
        if place not in self._calls:
            after = self._message is not None and place >= self._message - reasoning
            self._calls[place] = reasoning + place + after
        return self._calls[place]

    def calls_before_message(self, *, reasoning: bool) -> int:
        return 0 if self._message is None else self._message - reasoning
