"""Faults in time: the reply is as planned, but later."""

from __future__ import annotations

from array import array
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from mockllm.exchange import Reply, Timeline
from mockllm.faults.fault import Count, Fault, Seconds, Site, Struck, Tokens
from mockllm.faults.timelines import cut_after, on_wire, place, within


class Ttft(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="ttft"):
    """The first token (or the whole reply) comes `seconds` later than planned, and all that follows with it."""

    seconds: Seconds

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        timeline = reply.timeline
        reply.timeline = replace(timeline, offset_s=timeline.offset_s + self.seconds)
        return Struck(reply, f"first token {self.seconds:g} s late")


class Stall(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="stall"):
    """After `after_tokens` tokens nothing comes for `seconds`; for ever, where that is not given.

    A whole reply is held up at its beginning.
    """

    seconds: Seconds | None = None
    after_tokens: Tokens = 1

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        if reply.length_bytes is not None:
            return self._whole(reply)
        step = place(reply.timeline, self.after_tokens)
        if self.seconds is None:
            reply.timeline = cut_after(reply.timeline, step)
            on_wire(reply, end="hold", unfinished=True)
            return Struck(reply, f"stalled for ever {within(step)}", step)
        reply.timeline = stalled(reply.timeline, step, self.seconds)
        return Struck(reply, f"stalled for {self.seconds:g} s {within(step)}")

    def _whole(self, reply: Reply) -> Struck:
        if self.seconds is None:
            on_wire(reply, end="hold", stop_bytes=0)
            return Struck(reply, "stalled for ever", 0, replaced=True)
        reply.timeline = replace(reply.timeline, offset_s=reply.timeline.offset_s + self.seconds)
        return Struck(reply, f"stalled for {self.seconds:g} s")


class SlowHead(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="slow-head"):
    """The head comes in small pieces over `seconds`; the body waits behind it."""

    seconds: Seconds

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        on_wire(reply, head_s=self.seconds)
        return Struck(reply, f"head spread over {self.seconds:g} s")


class Trickle(Fault, frozen=True, kw_only=True, omit_defaults=True, tag="trickle"):
    """The whole reply comes `piece_bytes` at a time, one piece every `gap_ms`."""

    piece_bytes: Count = 16
    gap_ms: Annotated[float, Meta(gt=0)] = 10.0

    def strike(self, reply: Reply, site: Site) -> Struck:
        """See `Fault`."""
        on_wire(reply, piece_bytes=self.piece_bytes, gap_s=self.gap_ms / 1e3)
        return Struck(reply, f"sent {self.piece_bytes} bytes every {self.gap_ms:g} ms")


def stalled(timeline: Timeline, step: int, seconds: float) -> Timeline:
    """The timeline with `seconds` between step-1 and `step`, on top of what there was."""
    if step == 0:
        return replace(timeline, offset_s=timeline.offset_s + seconds)
    after_s = timeline.after_s
    later = [after_s[k] + seconds for k in range(step, timeline.steps)]
    return replace(timeline, after_s=array("d", [*after_s[:step], *later]))
