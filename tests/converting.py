"""Runs of the converter for tests, checked as they go."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import msgspec

from mockllm.dialects.convert import ChatToResponses
from tests.chat_streams import Chunk, chunk
from tests.invariants import Event, violations


def converted(chunks: list[Chunk], **settings: Any) -> list[Event]:
    converter = ChatToResponses(**settings)
    events = [event for each in chunks for event in converter.feed(msgspec.json.encode(each))]
    decoded: list[Event] = json.loads(msgspec.json.encode([*events, *converter.finish()]))
    return decoded


def numbered() -> Callable[[str], str]:
    numbers = itertools.count()
    return lambda kind: f"{kind}_{next(numbers)}"


def output(chunks: list[Chunk], **settings: Any) -> list[Any]:
    """The final output; the events have to be in order."""
    events = converted(chunks, **settings)
    assert violations(events) == []
    items: list[Any] = events[-1]["response"]["output"]
    return items


def types(events: list[Event]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


STOP = chunk(finish="stop")
