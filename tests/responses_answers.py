"""Hand-made answers for the tests of the Responses dialect: plans of every kind of segment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mockllm.dialects.dialect import Context
from mockllm.dialects.jsontext import inner
from mockllm.dialects.responses import Responses, ResponseStore
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, FinishReason, Plan, Segment, ToolCall

Event = dict[str, Any]

TTFT_S = 0.5
ITL_S = 0.1
RESPONSE_ID = "resp_0123456789abcdef00000001"
CREATED = 1_700_000_000


def reasoning(*texts: str) -> Segment:
    return Segment("reasoning", [inner(text) for text in texts])


def text(*texts: str) -> Segment:
    return Segment("text", [inner(text) for text in texts])


def refusal(*texts: str) -> Segment:
    return Segment("refusal", [inner(text) for text in texts])


def call(name: str, *arguments: str, custom: bool = False) -> Segment:
    return Segment(
        "tool",
        [inner(piece) for piece in arguments],
        ToolCall(f"call_{name}", name, "custom" if custom else "function"),
    )


def make_plan(
    segments: Sequence[Segment], finish_reason: FinishReason = "stop", *, prompt_tokens: int = 7, cached_tokens: int = 0
) -> Plan:
    """A plan of one choice; step k is due at TTFT_S + k · ITL_S."""
    steps = sum(segment.steps for segment in segments)
    thought = sum(segment.steps for segment in segments if segment.kind == "reasoning")
    choice = Choice(0, tuple(segments), finish_reason, steps, b"k" * 16, reasoning_tokens=thought)
    steps = max(1, steps)
    after_s = [k * ITL_S for k in range(steps)]
    return Plan((choice,), prompt_tokens, steps, TTFT_S, after_s, cached_tokens=cached_tokens)


def make_context(dialect: Responses, plan: Plan, identity: str = RESPONSE_ID, **body: Any) -> Context:
    """The answer to a body, with a plan of ours in place of the planner's."""
    own, request = dialect.decode(json.dumps({"model": "m", "input": "hi", **body}).encode())
    return Context(identity, CREATED, own, request, plan)


def make_dialect(opening_events: str = "at-head") -> Responses:
    return Responses(ResponseStore(), opening_events)


def play(timeline: Timeline, *cuts: int) -> list[Event]:
    """All events of a timeline, rendered in stretches that end at `cuts`."""
    frames = list(timeline.preamble)
    first = 0
    for upto in (*cuts, timeline.steps):
        frames += timeline.render(first, upto)
        first = upto
    return [read_frame(frame) for frame in frames]


def read_frame(frame: bytes) -> Event:
    """One server-sent event: `event:` and `data:` lines, an empty line, and nothing else."""
    name, data, *rest = frame.decode().split("\n")
    assert rest == ["", ""]
    assert name.startswith("event: ")
    assert data.startswith("data: ")
    event = json.loads(data[6:])
    assert isinstance(event, dict)
    assert event["type"] == name[7:]
    return event
