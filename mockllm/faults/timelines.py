"""How timelines are bent: at one step, at every event, or cut short.

A render is asked for ascending steps, each once, and may keep state; so must what wraps it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mockllm.exchange import Reply, Timeline, Wire

Change = Callable[[list[bytes]], list[bytes]]
"""Makes other events out of some events."""


def place(timeline: Timeline, after_tokens: int) -> int:
    """The step before which a fault strikes: the last one, where a reply is too short for it."""
    return min(after_tokens, timeline.steps - 1)


def within(step: int) -> str:
    """Where that is, in words."""
    return f"after {step} token{'' if step == 1 else 's'}"


def at_step(timeline: Timeline, step: int, change: Change) -> Timeline:
    """Change the events of one step."""
    render = timeline.render

    def bent(first: int, upto: int) -> list[bytes]:
        if not first <= step < upto:
            return render(first, upto)
        events = render(first, step) if step > first else []
        events += change(render(step, step + 1))
        return events + render(step + 1, upto) if upto > step + 1 else events

    return replace(timeline, render=bent)


def each_step(timeline: Timeline, change: Callable[[int, list[bytes]], list[bytes]]) -> Timeline:
    """Change the events of every step, one step at a time; `change(step, events)`."""
    render = timeline.render

    def bent(first: int, upto: int) -> list[bytes]:
        events: list[bytes] = []
        for step in range(first, upto):
            events += change(step, render(step, step + 1))
        return events

    return replace(timeline, render=bent)


def every_event(timeline: Timeline, change: Change) -> Timeline:
    """Change all events, those that leave with the head too."""
    render = timeline.render
    return replace(timeline, render=lambda first, upto: change(render(first, upto)), preamble=change(timeline.preamble))


def cut_after(timeline: Timeline, steps: int) -> Timeline:
    """The first so many steps; for none, one that sends nothing at the first one's time."""
    if steps:
        return replace(timeline, steps=steps)
    return replace(timeline, steps=1, render=lambda first, upto: [])


def end_at(timeline: Timeline, step: int, change: Change) -> Timeline:
    """End with `step`, whose events are changed."""
    return replace(at_step(timeline, step, change), steps=step + 1)


def end_with(timeline: Timeline, step: int, last: Callable[[], bytes]) -> Timeline:
    """End with an event of its own in place of `step`, whose events are never made."""
    render = timeline.render

    def bent(first: int, upto: int) -> list[bytes]:
        events = render(first, min(upto, step)) if first < step else []
        return [*events, last()] if upto > step else events

    return replace(timeline, steps=step + 1, render=bent)


def on_wire(reply: Reply, **fields: Any) -> Wire:
    """Let something go wrong on the wire, on top of what does already."""
    reply.wire = replace(reply.wire or Wire(), **fields)
    return reply.wire
