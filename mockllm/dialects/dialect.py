"""What a generation dialect is, and the walk through a plan that all of them share.

A dialect decodes a body into a `GenerationRequest`, and writes a plan as a whole body or as
events. `StepStream` walks the plan; a `Writer` says what each part looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Plan, Segment


class Context(Struct, gc=False):
    """One answer on its way out.

    Attributes:
        id: The reply's id, e.g. `chatcmpl-…`.
        created: Unix time in whole seconds.
        body: The dialect's own decoded request.
        request: The same in no dialect.
    """

    id: str
    created: int
    body: Any
    request: GenerationRequest
    plan: Plan


class Dialect(Protocol):
    """One API's way to ask for a generation and to answer it."""

    id_prefix: str

    def decode(self, body: bytes) -> tuple[Any, GenerationRequest]:
        """Decode and validate a body.

        Raises:
            RequestError: The body is no JSON, or not what the API takes.
        """
        ...

    def whole(self, context: Context) -> bytes:
        """The body of a whole reply."""
        ...

    def prepare(self, context: Context) -> Iterator[None] | None:
        """Do the slow parts of a whole reply bit by bit, before `whole`; None where there are none."""
        ...

    def stream(self, context: Context) -> Timeline:
        """The events of a streamed reply."""
        ...


class Writer(Protocol):
    """Writes the events of a stream; each event becomes one HTTP chunk."""

    def open(self, choice: Choice) -> list[bytes]:
        """Events before a choice's first token, due with it."""
        ...

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        """Events at the start of a segment, due with its first step; for a call, its name."""
        ...

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        """Events of the segment's pieces first … upto-1; `before` tokens of the choice came before `first`."""
        ...

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        """Events after a segment's last token, due with it."""
        ...

    def close(self, choice: Choice) -> list[bytes]:
        """Events after a choice's last token, due with it."""
        ...

    def finish(self) -> list[bytes]:
        """Events after the last token of all, due with it."""
        ...


Around = tuple[bytes, bytes]
"""What stands before and after every piece of a segment, where that is the same for all."""


class StepStream:
    """Renders a plan step by step: step k holds token k of every choice that has one.

    Nothing is made before it is due, so a waiting stream costs a few kilobytes however long it is.

    Args:
        plan: What is rendered.
        writer: Says what it looks like.
        around: Tells what stands around the pieces of a segment; None where that differs. Then the
            writer is not asked for the steps between the first and the last.
    """

    __slots__ = ("_around", "_choices", "_only", "_pieces", "_prefix", "_steps", "_suffix", "_writer")

    def __init__(
        self, plan: Plan, writer: Writer, around: Callable[[Choice, Segment], Around | None] | None = None
    ) -> None:
        self._steps = plan.steps
        self._writer = writer
        self._choices = choices = plan.choices
        self._only: Segment | None = None  # the one segment that all steps belong to, where there is just one
        if len(choices) == 1 and len(choices[0].segments) == 1 and choices[0].segments[0].call is None:
            self._only = choices[0].segments[0]
        self._around = around
        self._pieces: list[bytes] = []
        self._prefix = self._suffix = b""

    def render(self, first: int, upto: int) -> list[bytes]:
        """The events of steps first … upto-1."""
        # Most steps of most streams: a piece between two constants, without the writer's objects, which a
        # waiting stream's turn would have to bring back into the cache. With the connection's slots 16.0 to
        # 13.7 µs of CPU a token at 1,000 streams (`python -m bench paced-1000`).
        if self._prefix and first > 0 and upto < self._steps:
            prefix, suffix = self._prefix, self._suffix
            return [prefix + piece + suffix for piece in self._pieces[first:upto] if piece]
        if self._only is not None and first > 0 and upto < self._steps:
            if self._around is not None:
                around = self._around(self._choices[0], self._only)
                self._around = None
                if around is not None:
                    self._prefix, self._suffix = around
                    self._pieces = self._only.pieces
            # Most steps of most streams: nothing begins or ends, so there is nothing to walk (0.5 µs less).
            return self._writer.tokens(self._choices[0], self._only, first, upto, first)
        if len(self._choices) == 1:
            events = self._walk(self._choices[0], first, upto)
        else:
            events = []
            for step in range(first, upto):
                for choice in self._choices:
                    if step < choice.tokens or step == 0:
                        events += self._walk(choice, step, step + 1)
        if upto == self._steps:
            events += self._writer.finish()
        return events

    def _walk(self, choice: Choice, first: int, upto: int) -> list[bytes]:
        writer = self._writer
        events = writer.open(choice) if first == 0 else []
        start = 0
        for segment in choice.segments:
            named = segment.call is not None
            end = start + named + len(segment.pieces)
            if first < end and upto > start:
                if first <= start:
                    events += writer.begin(choice, segment)
                a = max(first - start - named, 0)
                b = min(upto, end) - start - named
                if b > a:
                    events += writer.tokens(choice, segment, a, b, start + named + a)
                if upto >= end:
                    events += writer.end(choice, segment)
            start = end
        if upto >= choice.tokens:
            events += writer.close(choice)
        return events
