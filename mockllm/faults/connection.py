"""Faults in the connection: it ends, or the framing of the reply is wrong.

Source: RFC 9112 §6.3 and §8 (what an incomplete message is), §7.1 (the last chunk); RFC 9293 §3.5.2 for resets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from mockllm.exchange import Reply, Timeline
from mockllm.faults.fault import Fault, Seconds, Site, Struck, Tokens
from mockllm.faults.timelines import cut_after, on_wire, place, within

End = Literal["close", "reset", "hold"]

_DONE: dict[End, str] = {"close": "closed", "reset": "reset", "hold": "fell silent"}


class _Cut(Fault, frozen=True, kw_only=True, omit_defaults=True):
    """The connection ends before the reply does.

    Attributes:
        at: `before-head` or `after-head`; where neither `after_tokens` nor `at_byte` is given.
        after_tokens: When the token after so many is due. A whole reply ends after its head.
        at_byte: After so many bytes of the reply, its head included.
        delay_s: So much later than that.
    """

    at: Literal["before-head", "after-head"] = "before-head"
    after_tokens: Tokens | None = None
    at_byte: Annotated[int, Meta(ge=0)] | None = None
    delay_s: Seconds = 0.0

    def _strike(self, reply: Reply, end: End) -> Struck:
        done = _DONE[end]
        streamed = reply.length_bytes is None
        if self.after_tokens is not None and streamed:
            step = place(reply.timeline, self.after_tokens)
            due_s = reply.timeline.offset_s + reply.timeline.after_s[step] + self.delay_s
            reply.timeline = cut_after(reply.timeline, step)
            on_wire(reply, end=end, unfinished=True, end_s=due_s)
            return Struck(reply, f"{done} {within(step)}", step)
        if self.at_byte is not None:
            wire = on_wire(reply, end=end, stop_bytes=self.at_byte, delay_s=self.delay_s)
            if streamed:
                wire.step_bytes = sizes = [0]
                reply.timeline = measured(reply.timeline, sizes)
            return Struck(reply, f"{done} after {self.at_byte} bytes")
        if self.at == "after-head" or self.after_tokens is not None:
            on_wire(reply, end=end, stop_after_head=True, delay_s=self.delay_s)
            return Struck(reply, f"{done} after the head", 0)
        on_wire(reply, end=end, stop_bytes=0, delay_s=self.delay_s)
        return Struck(reply, f"{done} before the head", 0)


class Close(_Cut, frozen=True, kw_only=True, omit_defaults=True, tag="close"):
    """The connection is closed (FIN) before the reply is whole."""

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        return self._strike(reply, "close")


class Reset(_Cut, frozen=True, kw_only=True, omit_defaults=True, tag="reset"):
    """The connection is reset (RST) before the reply is whole."""

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        return self._strike(reply, "reset")


class Length(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="length"):
    """A whole reply's `Content-Length` is off by so many bytes; then the connection is closed, or kept."""

    off_bytes: int = 10
    then: Literal["close", "keep"] = "close"

    def strike(self, reply: Reply, site: Site) -> Struck | None:
        """See `Fault`."""
        if reply.length_bytes is None:
            return None
        reply.length_bytes = max(0, reply.length_bytes + self.off_bytes)
        if self.then == "close":
            on_wire(reply, end="close")
        return Struck(reply, f"content-length off by {self.off_bytes:+d}")


class NoLastChunk(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="no-last-chunk"):
    """A stream's chunked body does not end; the connection is closed, or stays as it is."""

    then: Literal["close", "hold"] = "close"

    def strike(self, reply: Reply, site: Site) -> Struck | None:
        """See `Fault`."""
        if reply.length_bytes is not None:
            return None
        on_wire(reply, end=self.then, unfinished=True)
        return Struck(reply, "left out the last chunk")


def measured(timeline: Timeline, sizes: list[int]) -> Timeline:
    """Append the size of every step, framed as chunks and all steps before it included, to `sizes`."""
    render = timeline.render

    def bent(first: int, upto: int) -> list[bytes]:
        steps = [render(step, step + 1) for step in range(first, upto)]
        sizes.extend(list(accumulate(map(framed_bytes, steps), initial=sizes[-1]))[1:])
        return [event for events in steps for event in events]

    return replace(timeline, render=bent)


def framed_bytes(events: Sequence[bytes]) -> int:
    """How many bytes chunks take (RFC 9112 §7.1): a size, two line ends, the data."""
    return sum([len(b"%x" % len(event)) + 4 + len(event) for event in events if event])


def whole_steps(sizes: list[int], body_bytes: int) -> int:
    """How many steps lie wholly within so many bytes of the framed steps."""
    return max(0, bisect_right(sizes, body_bytes) - 1)
