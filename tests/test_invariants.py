"""The checker has to find what is wrong: every event of a good stream is needed where it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mockllm.dialects.convert import ChatToResponses
from tests.chat_streams import call, chunk, usage_chunk
from tests.invariants import Event, sdk_violations, violations

RICH = [
    chunk({"role": "assistant", "reasoning_content": "think"}),
    chunk({"reasoning_content": " twice"}),
    chunk({"reasoning": "raw"}),
    chunk({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": -1, "bytes": [97], "top_logprobs": []}]}),
    chunk({"content": "b"}),
    chunk({"refusal": "no"}),
    chunk(call(0, "call_a", "f", '{"x":')),
    chunk(call(1, "call_b", "g", "{}")),
    chunk(call(0, arguments="1}")),
    chunk({"tool_calls": [{"index": 2, "id": "call_c", "type": "custom", "custom": {"name": "run", "input": "ls"}}]}),
    chunk({"content": "late"}),
    chunk(finish="stop"),
    usage_chunk(),
]


@pytest.fixture
def events() -> list[Event]:
    converter = ChatToResponses()
    made = [event for each in RICH for event in converter.feed(each)]
    return [json.loads(msgspec.json.encode(event)) for event in [*made, *converter.finish()]]


def renumbered(events: list[Event]) -> list[Event]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def test_a_good_stream_passes(events: list[Event]) -> None:
    assert violations(events) == []
    assert sdk_violations(events) == []
    assert len({event["type"] for event in events}) == 21


def test_every_missing_event_is_noticed(events: list[Event]) -> None:
    for index in range(len(events)):
        assert violations(renumbered(events[:index] + events[index + 1 :])), events[index]


def test_every_doubled_event_is_noticed(events: list[Event]) -> None:
    for index in range(len(events)):
        assert violations(renumbered(events[: index + 1] + events[index:])), events[index]


def test_every_changed_value_is_noticed(events: list[Event]) -> None:
    # Log probabilities and the base's own fields may be anything.
    free = {"token", "logprob", "object", "tool_choice", "parallel_tool_calls", "cached_tokens", "reasoning_tokens"}

    def changed(value: Any) -> Any:
        return value + 1 if isinstance(value, int) else f"{value}?" if isinstance(value, str) else value

    def places(value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, dict):
            leaves = [(value, key) for key, inner in value.items() if isinstance(inner, int | str) and key not in free]
            return leaves + [place for key, inner in value.items() if key != "type" for place in places(inner)]
        if isinstance(value, list):
            return [place for inner in value if isinstance(inner, dict | list) for place in places(inner)]
        return []

    for event in events:
        for holder, key in places(event):
            if key in ("type", "cache_write_tokens"):
                continue
            kept = holder[key]
            holder[key] = changed(kept)
            assert violations(events), (event["type"], key)
            holder[key] = kept
    assert violations(events) == []


def test_an_index_that_is_a_bool_is_noticed(events: list[Event]) -> None:
    (event,) = [event for event in events if event["type"] == "response.refusal.delta"]
    event["output_index"] = True
    assert violations(events)


def test_the_sdk_notices_a_missing_announcement(events: list[Event]) -> None:
    index = next(i for i, event in enumerate(events) if event["type"] == "response.content_part.added")
    message = next(i for i, event in enumerate(events) if event.get("item", {}).get("type") == "message")
    assert index < message
    assert sdk_violations(renumbered(events[:message] + events[message + 1 :]))
    del events[3]["output_index"]
    assert sdk_violations(events)
