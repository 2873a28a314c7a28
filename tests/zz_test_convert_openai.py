"""Profile `openai`: the invariants on every input, the frame of a stream, and its endings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from mockllm.dialects.convert import ChatToResponses
from tests.chat_streams import Chunk, call, chunk, golden_pairs, streams, usage_chunk
from tests.converting import STOP, converted, numbered, output, types
from tests.invariants import sdk_violations, violations

# ---- rules for every stream ---------------------------------------------------------------------


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair["name"]) for pair in golden_pairs()])
def test_golden_inputs_cut_at_every_chunk(pair: dict[str, Any]) -> None:
    for length in range(len(pair["chunks"]) + 1):
        assert violations(converted(pair["chunks"][:length])) == []


def test_the_sdk_accepts_golden_inputs() -> None:
    for pair in golden_pairs():
        assert sdk_violations(converted(pair["chunks"])) == [], pair["name"]


@given(streams())
@settings(max_examples=1200, deadline=None)
def test_any_input_keeps_the_rules_wherever_it_is_cut(chunks: list[Chunk]) -> None:
    for length in range(len(chunks) + 1):
        assert violations(converted(chunks[:length])) == []


@given(streams())
@settings(max_examples=1200, deadline=None)
def test_the_sdk_accepts_any_input(chunks: list[Chunk]) -> None:
    assert sdk_violations(converted(chunks)) == []


@given(streams())
@settings(max_examples=1200, deadline=None)
def test_nothing_visible_is_lost_or_doubled(chunks: list[Chunk]) -> None:
    deltas = [choice["delta"] for each in chunks for choice in each["choices"]]
    events = converted(chunks)
    parts = [part for item in events[-1]["response"]["output"] for part in item.get("content", [])]
    texts = [part["text"] for part in parts if part["type"] == "output_text"]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    assert "".join(texts) == "".join(delta.get("content") or "" for delta in deltas)
    sent = "".join(delta.get("refusal") or "" for delta in deltas)
    assert "".join(refusals).replace("The provider's content filter withheld this reply.", "") == sent


@given(streams())
@settings(max_examples=1200, deadline=None)
def test_events_leave_with_the_chunk_that_makes_them(chunks: list[Chunk]) -> None:
    converter = ChatToResponses()
    for each in chunks:
        before = [event.type for event in converter.feed(each)]
        for choice in each["choices"]:
            if choice["delta"].get("content"):
                assert "response.output_text.delta" in before


def test_every_form_of_a_chunk_gives_the_same_events() -> None:
    from openai.types.chat import ChatCompletionChunk

    from mockllm.dialects.convert import ChatChunk

    (pair,) = [pair for pair in golden_pairs() if pair["name"] == "random_1"]
    forms: dict[str, Callable[[Chunk], Any]] = {
        "bytes": lambda each: json.dumps(each).encode(),
        "str": json.dumps,
        "mapping": lambda each: each,
        "struct": lambda each: msgspec.convert(each, ChatChunk),
        "SDK": ChatCompletionChunk.model_validate,
    }
    results = {}
    for name, form in forms.items():
        converter = ChatToResponses(ids=numbered())
        events = [event for each in pair["chunks"] for event in converter.feed(form(each))]
        results[name] = msgspec.json.encode([*events, *converter.finish()])
    assert len(set(results.values())) == 1


# ---- the frame ------------------------------------------------------------------------------------


def test_text() -> None:
    events = converted(
        [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}), STOP]
    )
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert events[6]["text"] == "Hello"
    assert events[4]["logprobs"] == []


def test_a_stream_without_chunks_is_created_and_fails() -> None:
    events = converted([])
    assert types(events) == ["created", "in_progress", "failed"]
    assert events[-1]["response"]["error"]["code"] == "server_error"


def test_the_response_has_the_fields_it_is_given_and_the_chunks_fill_the_rest() -> None:
    base = {"id": "resp_1", "tools": [{"type": "function", "name": "f"}], "temperature": 0.5, "status": "completed"}
    events = converted([chunk({"content": "a"}), STOP], response=base)
    first, last = events[0]["response"], events[-1]["response"]
    assert (first["id"], first["model"], first["created_at"], first["status"]) == (
        "resp_1",
        "m-1",
        1700000000,
        "in_progress",
    )
    assert (last["temperature"], last["tools"]) == (0.5, [{"type": "function", "name": "f"}])


def test_usage() -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 5, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    chunks = [chunk({"content": "a"}, usage={"prompt_tokens": 1}), STOP, usage_chunk(9, 4, **details)]
    assert converted(chunks)[-1]["response"]["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 13,
    }
    assert converted(chunks[:2])[-1]["response"]["usage"]["input_tokens"] == 1
    assert converted([STOP])[-1]["response"]["usage"] is None


# ---- endings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("end_turn", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("error", "failed", None),
        ("", "failed", None),
    ],
)
def test_the_finish_reason_decides_the_ending(finish: str, status: str, reason: str | None) -> None:
    events = converted([chunk({"content": "a"}), chunk(finish=finish), usage_chunk()])
    assert violations(events) == []
    response = events[-1]["response"]
    assert (events[-1]["type"], response["status"]) == (f"response.{status}", status)
    assert (response["incomplete_details"] or {}).get("reason") == reason
    assert response["output"][0]["status"] == ("completed" if status == "completed" else "incomplete")


def test_the_items_close_at_the_finish_reason_and_the_response_at_the_end() -> None:
    converter = ChatToResponses()
    converter.feed(chunk({"content": "a"}))
    assert converter.feed(STOP)[-1].type == "response.output_item.done"
    assert converter.feed(usage_chunk()) == []
    assert [event.type for event in converter.finish()] == ["response.completed"]


def test_an_error_in_the_stream_ends_it_at_once() -> None:
    converter = ChatToResponses()
    converter.feed(chunk({"content": "a"}))
    events = converter.feed({"error": {"message": "Slow down.", "type": "rate_limit_error", "code": "429"}})
    assert [event.type for event in events][-2:] == ["response.output_item.done", "response.failed"]
    failed = msgspec.to_builtins(events[-1])["response"]
    assert failed["error"] == {"code": "rate_limit_exceeded", "message": "Slow down."}
    assert failed["output"][0]["status"] == "incomplete"
    assert converter.feed(chunk({"content": "b"})) == []
    assert converter.finish() == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"error": {"message": "m", "code": "invalid_prompt"}}, "invalid_prompt", "m"),
        ({"error": {"message": "m", "type": "invalid_request_error"}}, "invalid_prompt", "m"),
        ({"error": {"message": "m", "code": 500}}, "server_error", "m"),
        ({"error": "broken"}, "server_error", "broken"),
        ({"error": {}}, "server_error", "The stream carried an error without a message."),
        ({"object": "error", "message": "old vLLM", "code": 400}, "invalid_prompt", "old vLLM"),
    ],
)
def test_errors_are_mapped_to_the_codes_of_the_api(error: Chunk, code: str, message: str) -> None:
    events = converted([chunk({"content": "a"}), error])
    assert events[-1]["response"]["error"] == {"code": code, "message": message}
    assert violations(events) == sdk_violations(events) == []


def test_a_filtered_reply_without_content_is_a_refusal() -> None:
    for chunks in (
        [chunk({"role": "assistant", "content": ""}), chunk(finish="content_filter")],
        [chunk({"reasoning_content": "hm"}, "content_filter")],
    ):
        message = output(chunks)[-1]
        assert [part["type"] for part in message["content"]] == ["refusal"]
        assert message["status"] == "incomplete"
    (message,) = output([chunk({"content": "a"}, "content_filter")])
    assert [part["type"] for part in message["content"]] == ["output_text"]


def test_of_several_calls_a_cut_hits_the_one_it_stands_in() -> None:
    chunks = [chunk(call(0, "call_a", "f", '{"x":1}')), chunk(call(1, "call_b", "g", '{"y":')), chunk(finish="length")]
    assert [item["status"] for item in output(chunks)] == ["completed", "incomplete"]
    interleaved = [chunk(call(0, "call_a", "f", '{"x"')), chunk(call(1, "call_b", "g", "{}")), chunk(finish="length")]
    assert [item["status"] for item in output(interleaved)] == ["incomplete", "incomplete"]


def test_content_after_a_finish_reason_opens_new_items() -> None:
    chunks = [
        chunk(call(0, "call_a", "f", "{}"), "tool_calls"),
        chunk(call(0, arguments="lost")),
        chunk(call(1, "call_b", "g", "{}"), "tool_calls"),
        chunk({"content": "x"}),
    ]
    items = output(chunks)
    assert [item["type"] for item in items] == ["function_call", "function_call", "message"]
    assert items[0]["arguments"] == "{}"
