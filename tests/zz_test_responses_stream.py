"""The Responses dialect's replies: plans of every kind, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.responses import Response as SdkResponse

from mockllm.dialects.dialect import StepStream
from mockllm.dialects.responses.writer import ResponsesWriter
from mockllm.generation.logprobs import Scores, Vocabulary
from mockllm.generation.plan import FinishReason, Plan, Segment
from tests.invariants import sdk_violations, violations
from tests.responses_answers import (
    CREATED,
    ITL_S,
    RESPONSE_ID,
    TTFT_S,
    Event,
    call,
    make_context,
    make_dialect,
    make_plan,
    play,
    read_frame,
    reasoning,
    refusal,
    text,
)

SUMMARY = {"reasoning": {"effort": "low", "summary": "auto"}}

MIXES: dict[str, Sequence[Segment]] = {
    "text": [text("Hello", " there", "\n", ' "é"')],
    "one token": [text("Hello")],
    "reasoning, text": [reasoning("Let", " me"), text("So")],
    "reasoning alone": [reasoning("Let", " me")],
    "refusal": [refusal("I", " cannot", ".")],
    "text, refusal": [text("Well", ","), refusal(" no")],
    "call": [call("f", "{", "}")],
    "call without arguments": [call("f")],
    "calls": [call("f", '{"a":', "1}"), call("g", "{}")],
    "custom call": [call("shell", "ls", " -l", custom=True)],
    "all": [reasoning("Hm"), text("Look", ":"), call("f", "{", "}"), call("sh", "ls", custom=True), text("Done")],
    "reasoning twice": [reasoning("Hm"), call("f", "{}"), reasoning("And"), text("ok")],
    "cut by a stop sequence": [Segment("text", [b"He", b"", b""])],
    "an empty segment between": [text("a"), Segment("text", []), call("f", "{}")],
    "nothing": [],
}
FINISHES: list[FinishReason] = ["stop", "length", "content_filter"]


def stream_of(segments: Sequence[Segment], finish: FinishReason = "stop", *cuts: int, **body: Any) -> list[Event]:
    dialect = make_dialect()
    return play(dialect.stream(make_context(dialect, make_plan(segments, finish), stream=True, **body)), *cuts)


def whole_of(segments: Sequence[Segment], finish: FinishReason = "stop", **body: Any) -> dict[str, Any]:
    dialect = make_dialect()
    reply = json.loads(dialect.whole(make_context(dialect, make_plan(segments, finish), **body)))
    assert isinstance(reply, dict)
    return reply


def types_of(events: Sequence[Event]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


@pytest.mark.parametrize("body", [{}, SUMMARY], ids=["raw", "summary"])
@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("mix", MIXES)
def test_every_plan_makes_a_sound_stream_that_ends_in_the_whole_reply(
    mix: str, finish: FinishReason, body: dict[str, Any]
) -> None:
    events = stream_of(MIXES[mix], finish, **body)
    assert violations(events) == []
    assert sdk_violations(events) == []
    whole = whole_of(MIXES[mix], finish, **body)
    assert events[-1]["response"] == whole
    assert SdkResponse.model_validate_json(json.dumps(whole), strict=True).status == whole["status"]


SEGMENTS = st.one_of(
    st.builds(reasoning, st.text(max_size=3), st.text(max_size=3)),
    st.builds(text, st.text(max_size=3), st.text(max_size=3)),
    st.builds(refusal, st.text(min_size=1, max_size=3)),
    st.builds(lambda piece: call("f", piece), st.text(max_size=3)),
    st.builds(lambda piece: call("sh", piece, custom=True), st.text(max_size=3)),
)


@given(segments=st.lists(SEGMENTS, min_size=1, max_size=6), data=st.data(), padded=st.booleans())
def test_a_stream_does_not_depend_on_how_it_is_rendered(
    segments: list[Segment], data: st.DataObject, padded: bool
) -> None:
    steps = sum(segment.steps for segment in segments)
    cuts = sorted(data.draw(st.sets(st.integers(1, steps), max_size=5)) - {steps})
    body = {"stream_options": {"include_obfuscation": padded}}
    assert stream_of(segments, "stop", *cuts, **body) == stream_of(segments, "stop", **body)


def test_the_order_of_a_text_stream() -> None:
    assert types_of(stream_of([text("a", "b")])) == [
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


def test_each_step_brings_its_token_and_the_events_around_it() -> None:
    dialect = make_dialect()
    context = make_context(dialect, make_plan([reasoning("Hm"), call("f", "{", "}"), text("a")]), stream=True)
    timeline = dialect.stream(context)
    steps = [[frame.split(b"\n")[0].decode() for frame in timeline.render(k, k + 1)] for k in range(timeline.steps)]
    assert [[name.removeprefix("event: response.") for name in step] for step in steps] == [
        [
            "output_item.added",
            "content_part.added",
            "reasoning_text.delta",
            "reasoning_text.done",
            "content_part.done",
            "output_item.done",
        ],
        ["output_item.added"],
        ["function_call_arguments.delta"],
        ["function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ],
    ]
    assert (timeline.offset_s, timeline.end_s) == (TTFT_S, TTFT_S + 4 * ITL_S)


@pytest.mark.parametrize(("opening_events", "at_head"), [("at-head", 2), ("with-first-token", 0)])
def test_the_opening_events_leave_when_told(opening_events: str, at_head: int) -> None:
    dialect = make_dialect(opening_events)
    timeline = dialect.stream(make_context(dialect, make_plan([text("a")]), stream=True))
    assert len(timeline.preamble) == at_head
    assert play(timeline) == stream_of([text("a")])


def test_text_and_refusal_are_two_parts_of_one_message() -> None:
    (message,) = whole_of([text("Well"), refusal(" no")])["output"]
    assert [part["type"] for part in message["content"]] == ["output_text", "refusal"]


def test_reasoning_is_raw_unless_a_summary_is_asked_for() -> None:
    raw = whole_of([reasoning("Let", " me"), text("a")])["output"][0]
    assert (raw["summary"], raw["content"]) == ([], [{"type": "reasoning_text", "text": "Let me"}])
    for asked in ({"summary": "auto"}, {"generate_summary": "detailed"}):
        shown = whole_of([reasoning("Let", " me"), text("a")], reasoning=asked)["output"][0]
        assert shown["summary"] == [{"type": "summary_text", "text": "Let me"}]
        assert "content" not in shown
        assert "encrypted_content" not in shown


def test_sealed_reasoning_is_sent_when_included_and_repeats() -> None:
    include: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
    first, again = (whole_of([reasoning("Hm"), text("a")], **include)["output"][0] for _ in range(2))
    assert first["encrypted_content"] == again["encrypted_content"] != ""


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_cut_reply_is_incomplete_and_so_is_its_last_item(finish: FinishReason, reason: str) -> None:
    events = stream_of([reasoning("Hm"), text("a")], finish)
    assert events[-1]["type"] == "response.incomplete"
    response = events[-1]["response"]
    assert response["incomplete_details"] == {"reason": reason}
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]
    assert response["completed_at"] is None


def test_usage_counts_what_was_planned() -> None:
    dialect = make_dialect()
    plan = make_plan([reasoning("a", "b"), text("c"), call("f", "{}")], prompt_tokens=9, cached_tokens=4)
    assert json.loads(dialect.whole(make_context(dialect, plan)))["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 14,
    }


def test_ids_have_their_prefixes_and_none_repeats() -> None:
    output = whole_of(MIXES["all"])["output"]
    assert [item["id"].partition("_")[0] for item in output] == ["rs", "msg", "fc", "ctc", "msg"]
    assert len({item["id"] for item in output}) == len(output)


def test_obfuscation_is_off_by_default_and_pads_deltas_when_asked_for() -> None:
    plain = stream_of(MIXES["all"])
    assert all("obfuscation" not in event for event in plain)
    padded = stream_of(MIXES["all"], stream_options={"include_obfuscation": True})
    assert padded == stream_of(MIXES["all"], stream_options={"include_obfuscation": True})
    deltas = [event for event in padded if event["type"].endswith(".delta")]
    assert {(len(event["delta"]) + len(event["obfuscation"])) % 16 for event in deltas} == {0}
    assert [{**event, "obfuscation": None} for event in padded] == [{**event, "obfuscation": None} for event in plain]
    assert sdk_violations(padded) == []


def test_obfuscation_outlasts_a_long_reply() -> None:
    events = stream_of([text(*["a"] * 1000)], stream_options={"include_obfuscation": True})
    assert all(event["obfuscation"] for event in events if event["type"].endswith(".delta"))


def test_a_background_stream_is_queued_first() -> None:
    events = stream_of([text("a")], background=True)
    assert [(event["type"], event["response"]["status"]) for event in events[:3]] == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
        ("response.in_progress", "in_progress"),
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert sdk_violations(events) == []


def test_the_response_echoes_the_request() -> None:
    given: dict[str, Any] = {
        "instructions": "Be brief.",
        "max_output_tokens": 100,
        "max_tool_calls": 3,
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "top_p": 0.25,
        "top_logprobs": 2,
        "truncation": "auto",
        "metadata": {"a": "b"},
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "p",
        "prompt_cache_retention": "24h",
        "prompt": {"id": "pmpt_1", "version": None, "variables": {"a": "b"}},
        "store": False,
        "tool_choice": {"type": "function", "name": "f"},
    }
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False, "description": "d"}
    reply = whole_of([text("a")], **given, tools=[tool, {"type": "web_search"}])
    assert {name: reply[name] for name in given} == given
    assert reply["tools"] == [tool, {"type": "web_search"}]
    assert (reply["id"], reply["created_at"], reply["model"]) == (RESPONSE_ID, CREATED, "m")
    assert SdkResponse.model_validate_json(json.dumps(reply), strict=True).temperature == 0.5


def test_the_response_fills_in_what_the_request_leaves_out() -> None:
    reply = whole_of([text("a")], tools=[{"type": "function", "name": "f"}])
    expected = {
        "status": "completed",
        "background": False,
        "completed_at": CREATED,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [{"type": "function", "name": "f", "description": None, "parameters": None, "strict": True}],
        "top_p": 1.0,
        "truncation": "disabled",
        "metadata": {},
        "user": None,
    }
    assert {name: reply[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [(None, "auto", "default"), ("auto", "auto", "default"), ("fast", "fast", "priority"), ("flex", "flex", "flex")],
)
def test_the_service_tier_at_the_end_is_the_one_that_served(asked: str | None, first: str, last: str) -> None:
    events = stream_of([text("a")], service_tier=asked)
    assert (events[0]["response"]["service_tier"], events[-1]["response"]["service_tier"]) == (first, last)


def test_a_fault_ends_the_stream_with_what_was_done_until_then() -> None:
    dialect = make_dialect()
    plan = make_plan([reasoning("Hm"), text("a", "b")])
    context = make_context(dialect, plan, stream=True)
    writer = ResponsesWriter(context, opened_at_head=False, padded=False)
    frames = [*StepStream(plan, writer).render(0, 2), *writer.failed("The model fell over.")]
    events = [read_frame(frame) for frame in frames]
    failed = events[-1]["response"]
    assert sdk_violations(events) == []
    assert (failed["status"], failed["error"]) == (
        "failed",
        {"code": "server_error", "message": "The model fell over."},
    )
    assert [item["type"] for item in failed["output"]] == ["reasoning"]
    (error,) = [read_frame(frame) for frame in writer.error("The wire broke.", "broken")]
    assert error == {
        "type": "error",
        "sequence_number": len(events),
        "message": "The wire broke.",
        "code": "broken",
        "param": None,
    }


def scored(segments: Sequence[Segment], finish: FinishReason = "stop") -> Plan:
    plan = make_plan(segments, finish)
    vocabulary = Vocabulary(lambda: [f" w{k}" for k in range(64)], lambda text: [1])
    return replace(plan, choices=(replace(plan.choices[0], scores=Scores(b"k" * 16, vocabulary)),))


LOGPROBS: dict[str, Any] = {"include": ["message.output_text.logprobs"]}


@pytest.mark.parametrize("count", [0, 1, 5, 20])
@pytest.mark.parametrize("mix", MIXES)
def test_logprobs_come_with_the_text_and_end_in_its_part(mix: str, count: int) -> None:
    dialect = make_dialect()
    body: dict[str, Any] = {**LOGPROBS, "top_logprobs": count}
    context = make_context(dialect, scored(MIXES[mix]), stream=True, **body)
    events = play(dialect.stream(context), *range(1, context.plan.steps))
    assert violations(events) == []
    assert sdk_violations(events) == []
    assert events[-1]["response"] == json.loads(dialect.whole(context))
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    for event in deltas:
        (entry,) = event["logprobs"]
        assert entry["token"] == event["delta"]
        assert entry["logprob"] <= 0
        assert len(entry["top_logprobs"]) == count
        assert count == 0 or entry["token"] in [top["token"] for top in entry["top_logprobs"]]
    content = [part for item in events[-1]["response"]["output"] for part in item.get("content", [])]
    entries = [entry for part in content for entry in part.get("logprobs", [])]
    assert [entry["token"] for entry in entries] == [event["delta"] for event in deltas]
    assert all(bytes(entry["bytes"]).decode() == entry["token"] for entry in entries)


def test_logprobs_and_obfuscation_go_together() -> None:
    dialect = make_dialect()
    context = make_context(
        dialect, scored([text("a", "b")]), stream=True, **LOGPROBS, stream_options={"include_obfuscation": True}
    )
    deltas = [event for event in play(dialect.stream(context)) if event["type"].endswith(".delta")]
    assert all(event["logprobs"] and len(event["delta"] + event["obfuscation"]) == 16 for event in deltas)
