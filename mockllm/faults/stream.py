"""Faults in the stream: the HTTP is right, the server-sent events are not.

All of them change events that are ready to be sent, so that they work for every dialect; what
differs between the dialects stands in `forms`.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (comments, line ends).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta

from mockllm.exchange import Reply
from mockllm.faults.fault import Count, Fault, Site, Struck, Tokens
from mockllm.faults.forms import error_event, last_number, without_end, without_finish
from mockllm.faults.timelines import Change, at_step, each_step, end_at, end_with, every_event, on_wire, place, within

_TEXT = re.compile(rb'("(?:content|text|delta|reasoning_content|reasoning|refusal|arguments|thinking|partial_json)":")')
"""Where a token's text begins, in any dialect."""

_WAVE = "🌊".encode()


class _Stream(Fault, frozen=True, kw_only=True, omit_defaults=True):
    """Strikes streams only."""

    def strike(self, reply: Reply, site: Site) -> Struck | None:
        """See `Fault`."""
        if reply.length_bytes is not None:
            return None
        return self._bend(reply, site)

    def _bend(self, reply: Reply, site: Site) -> Struck | None:
        raise NotImplementedError


class _AtToken(_Stream, frozen=True, kw_only=True, omit_defaults=True):
    """Strikes the token that comes after `after_tokens` others; the last one of a shorter reply."""

    after_tokens: Tokens = 1


class Error(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="error"):
    """An error event in place of the token; the stream ends with it."""

    message: str = "The server had an error while processing your request."
    type: str = "server_error"
    code: str | None = None

    def _bend(self, reply: Reply, site: Site) -> Struck:
        step = place(reply.timeline, self.after_tokens)
        numbers = _Numbers(reply)
        reply.timeline = end_with(
            reply.timeline,
            step,
            lambda: error_event(site.endpoint, self.message, self.type, self.code, numbers.next),
        )
        return Struck(reply, f"error event {within(step)}", step)


class NoDone(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="no-done"):
    """The event that ends the stream is left out: `[DONE]`, or the Responses' and Messages' last one."""

    def _bend(self, reply: Reply, site: Site) -> Struck:
        last = reply.timeline.steps - 1
        reply.timeline = at_step(reply.timeline, last, without_end)
        return Struck(reply, "left out the end of the stream")


class NoFinish(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="no-finish"):
    """No finish reason comes: it is null in every chunk; a Responses stream has no last event."""

    def _bend(self, reply: Reply, site: Site) -> Struck:
        reply.timeline = every_event(reply.timeline, lambda events: without_finish(site.endpoint, events))
        return Struck(reply, "left out the finish reason")


class Duplicate(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="duplicate"):
    """The token's event comes twice."""

    def _bend(self, reply: Reply, site: Site) -> Struck:
        step = place(reply.timeline, self.after_tokens)
        reply.timeline = at_step(reply.timeline, step, _on_token(lambda event: [event, event]))
        return Struck(reply, f"sent an event twice {within(step)}")


class Reorder(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="reorder"):
    """The token's event comes after the next token's, when that is due."""

    def _bend(self, reply: Reply, site: Site) -> Struck | None:
        steps = reply.timeline.steps
        if steps < 2:
            return None
        step = min(self.after_tokens, steps - 2)
        held: list[bytes] = []

        def swap(number: int, events: list[bytes]) -> list[bytes]:
            if number == step:
                held.extend(events[_token_at(events) :][:1])
                return [event for event in events if event not in held]
            if number == step + 1:
                at = _token_at(events) + 1
                return events[:at] + held + events[at:]
            return events

        reply.timeline = each_step(reply.timeline, swap)
        return Struck(reply, f"swapped two events {within(step)}")


class Malformed(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="malformed"):
    """The token's event is no JSON: its last brace is missing."""

    def _bend(self, reply: Reply, site: Site) -> Struck:
        step = place(reply.timeline, self.after_tokens)
        reply.timeline = at_step(reply.timeline, step, _on_token(lambda event: [event.replace(b"}\n\n", b"\n\n")]))
        return Struck(reply, f"malformed JSON {within(step)}")


class HalfEvent(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="half-event"):
    """Half of the token's event comes; then the stream ends, or goes on with the next one."""

    then: Literal["end", "next"] = "end"

    def _bend(self, reply: Reply, site: Site) -> Struck:
        step = place(reply.timeline, self.after_tokens)
        half = _on_token(lambda event: [event[: len(event) // 2]], ends=self.then == "end")
        bend = end_at if self.then == "end" else at_step
        reply.timeline = bend(reply.timeline, step, half)
        return Struck(reply, f"half an event {within(step)}", step if self.then == "end" else None)


class CutUtf8(_AtToken, frozen=True, kw_only=True, omit_defaults=True, tag="cut-utf8"):
    """An HTTP chunk ends inside a character of four bytes, which is put before the token's text.

    Then comes the `rest` of the event in a chunk of its own, or the `next` event, or the stream's `end`.
    """

    then: Literal["rest", "next", "end"] = "rest"

    def _bend(self, reply: Reply, site: Site) -> Struck:
        step = place(reply.timeline, self.after_tokens)
        bend = end_at if self.then == "end" else at_step
        reply.timeline = bend(reply.timeline, step, _on_token(self._cut, ends=self.then == "end"))
        return Struck(reply, f"cut inside a character {within(step)}", step if self.then == "end" else None)

    def _cut(self, event: bytes) -> list[bytes]:
        event = _TEXT.sub(lambda match: match[1] + _WAVE, event, count=1)
        at = event.find(_WAVE) + 2
        return [event[:at], event[at:]] if self.then == "rest" else [event[:at]]


class Comments(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="comments"):
    """A comment with the head, and one before every `every`-th token, as proxies keep streams alive."""

    every: Count = 1
    text: Annotated[str, Meta(pattern=r"^[^\r\n]*$")] = "keep-alive"

    def _bend(self, reply: Reply, site: Site) -> Struck:
        comment = f": {self.text}\n\n".encode()
        every = self.every
        timeline = each_step(reply.timeline, lambda step, events: events if (step + 1) % every else [comment, *events])
        timeline.preamble = [comment, *timeline.preamble]
        reply.timeline = timeline
        return Struck(reply, "sent comments")


class Pack(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="pack"):
    """`events` of them (or more) come in one HTTP chunk, when the last one's token is due."""

    events: Annotated[int, Meta(ge=2)] = 3

    def _bend(self, reply: Reply, site: Site) -> Struck:
        last = reply.timeline.steps - 1
        held: list[bytes] = []

        def pack(step: int, events: list[bytes]) -> list[bytes]:
            held.extend(events)
            if len(held) < self.events and step < last:
                return []
            joined = b"".join(held)
            held.clear()
            return [joined]

        reply.timeline = each_step(reply.timeline, pack)
        return Struck(reply, f"packed {self.events} events into a chunk")


class Split(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="split"):
    """Every event comes in `chunks` HTTP chunks, and the reply in segments of `segment_bytes`, `gap_ms` apart."""

    chunks: Annotated[int, Meta(ge=2)] = 3
    segment_bytes: Count = 64
    gap_ms: Annotated[float, Meta(gt=0)] = 1.0

    def _bend(self, reply: Reply, site: Site) -> Struck:
        reply.timeline = every_event(reply.timeline, self._split)
        on_wire(reply, piece_bytes=self.segment_bytes, gap_s=self.gap_ms / 1e3)
        return Struck(reply, f"split events into {self.chunks} chunks")

    def _split(self, events: list[bytes]) -> list[bytes]:
        pieces = []
        for event in events:
            size = -(-len(event) // self.chunks)
            pieces += [event[at : at + size] for at in range(0, len(event), size or 1)]
        return pieces


class Crlf(_Stream, frozen=True, kw_only=True, omit_defaults=True, tag="crlf"):
    """Lines end with CR LF."""

    def _bend(self, reply: Reply, site: Site) -> Struck:
        reply.timeline = every_event(reply.timeline, lambda events: [event.replace(b"\n", b"\r\n") for event in events])
        return Struck(reply, "ended lines with CR LF")


def _token_at(events: list[bytes]) -> int:
    """Which of a step's events has the token's text; the first one where none has."""
    for number, event in enumerate(events):
        match = _TEXT.search(event)
        if match is not None and not event.startswith(b'"', match.end()):
            return number
    return 0


def _on_token(change: Callable[[bytes], list[bytes]], ends: bool = False) -> Change:
    """Change the token's event of a step and leave the others; with `ends`, drop those after it."""

    def bent(events: list[bytes]) -> list[bytes]:
        if not events:
            return events
        at = _token_at(events)
        return events[:at] + change(events[at]) + ([] if ends else events[at + 1 :])

    return bent


class _Numbers:
    """Follows the sequence numbers of a Responses stream."""

    def __init__(self, reply: Reply) -> None:
        self._last = last_number(reply.timeline.preamble)
        reply.timeline = every_event(reply.timeline, self._see)

    def _see(self, events: list[bytes]) -> list[bytes]:
        self._last = max(self._last, last_number(events))
        return events

    def next(self) -> int:
        """The number after those that were sent."""
        return self._last + 1
