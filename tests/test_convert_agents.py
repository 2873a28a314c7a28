"""Profile `agents` against what the handler of openai-agents-python 0.16.0 emitted."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from mockllm.dialects.convert import ChatToResponses, ConversionError, Profile
from tests.chat_streams import Chunk, call, chunk, golden_pairs


def converted(chunks: list[Chunk], model: str | None = None, **settings: Any) -> list[Any]:
    converter = ChatToResponses(model, "agents", lambda kind: "__fake_id__", **settings)
    events = [event for each in chunks for event in converter.feed(msgspec.json.encode(each))]
    return [msgspec.to_builtins(event, str_keys=True) for event in [*events, *converter.finish()]]


def without_nulls(value: Any) -> Any:
    """Null and absent are the same to a reader of the API."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(inner) for inner in value]
    return value


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair["name"]) for pair in golden_pairs()])
def test_golden_pair(pair: dict[str, Any]) -> None:
    base = {**pair["events"][0]["response"], "output": [], "usage": None}
    events = converted(pair["chunks"], pair["model"], response=base)
    assert without_nulls(events) == without_nulls(pair["events"])


def test_there_are_many_golden_pairs_and_none_is_named_twice() -> None:
    names = [pair["name"] for pair in golden_pairs()]
    assert len(names) == len(set(names)) == 164


def test_an_error_in_the_stream_is_raised_as_the_sdk_raises_it() -> None:
    converter = ChatToResponses(profile="agents")
    converter.feed(chunk({"content": "a"}))
    with pytest.raises(ConversionError, match="overloaded") as caught:
        converter.feed({"error": {"message": "overloaded"}})
    assert (caught.value.chunk, caught.value.path) == (1, "$.error")


def test_version_0_16_1_puts_the_message_after_earlier_calls() -> None:
    chunks = [chunk(call(0, "call_a", "f", "{}")), chunk({"content": "x"})]
    places = {}
    for profile in get_args(Profile)[1:]:
        converter = ChatToResponses(profile=profile)
        events = [event for each in chunks for event in converter.feed(each)]
        added = [msgspec.to_builtins(event) for event in events if event.type == "response.output_item.added"]
        places[profile] = [(event["item"]["type"], event["output_index"]) for event in added]
    assert places["agents"] == [("function_call", 0), ("message", 0)]
    assert places["agents-0.16.1"] == [("function_call", 0), ("message", 1)]
