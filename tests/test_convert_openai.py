"""Profile `openai`: the invariants on every input, and what is made of each kind of content."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.dialects.convert import ChatToResponses, ConversionError, make_id
from tests.chat_streams import Chunk, call, chunk, golden_pairs, streams, usage_chunk
from tests.invariants import Event, sdk_violations, violations


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

# ---- rules for every stream ---------------------------------------------------------------------


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair["name"]) for pair in golden_pairs()])
def test_golden_inputs_cut_at_every_chunk(pair: dict[str, Any]) -> None:
    for length in range(len(pair["chunks"]) + 1):
        assert violations(converted(pair["chunks"][:length])) == []


def test_the_sdk_accepts_golden_inputs() -> None:
    for pair in golden_pairs():
        assert sdk_violations(converted(pair["chunks"])) == [], pair["name"]


@given(streams())
@settings(max_examples=300, deadline=None)
def test_any_input_keeps_the_rules(chunks: list[Chunk]) -> None:
    assert violations(converted(chunks)) == []


@given(streams())
@settings(max_examples=50, deadline=None)
def test_the_sdk_accepts_any_input(chunks: list[Chunk]) -> None:
    assert sdk_violations(converted(chunks)) == []


@given(streams())
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=100, deadline=None)
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


# ---- messages and reasoning -------------------------------------------------------------------------


def test_text_and_refusal_are_parts_of_one_message() -> None:
    (message,) = output([chunk({"content": "a"}), chunk({"refusal": "b"}), chunk({"content": "c"}), STOP])
    assert [part.get("text", part.get("refusal")) for part in message["content"]] == ["a", "b", "c"]


def test_an_item_closes_when_one_of_another_kind_opens() -> None:
    chunks = [chunk({"content": "a"}), chunk({"reasoning_content": "b"}), chunk({"content": "c"}), STOP]
    events = converted(chunks)
    assert [item["type"] for item in output(chunks)] == ["message", "reasoning", "message"]
    moves = [
        (kind, event["output_index"])
        for kind, event in zip(types(events), events, strict=True)
        if "output_item" in kind
    ]
    assert moves == [
        ("output_item.added", 0),
        ("output_item.done", 0),
        ("output_item.added", 1),
        ("output_item.done", 1),
        ("output_item.added", 2),
        ("output_item.done", 2),
    ]
    assert len({item["id"] for item in output(chunks)}) == 3


def test_reasoning_content_is_a_summary_and_reasoning_is_text() -> None:
    (item,) = output(
        [chunk({"reasoning_content": "a"}), chunk({"reasoning": "b"}), chunk({"reasoning_content": "c"}), STOP]
    )
    assert item["summary"] == [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "c"}]
    assert item["content"] == [{"type": "reasoning_text", "text": "b"}]


def test_one_text_under_both_names_is_shown_once() -> None:
    (item,) = output([chunk({"reasoning": "a", "reasoning_content": "a"}), STOP])
    assert (item["summary"], item.get("content")) == ([{"type": "summary_text", "text": "a"}], None)


def thinking(text: str | None = None, signature: str | None = None) -> Chunk:
    return {"thinking_blocks": [{"type": "thinking", "thinking": text, "signature": signature}]}


def test_thinking_blocks_alone_are_reasoning_text() -> None:
    (item, message) = output([chunk(thinking("deep")), chunk(thinking(None, "SIG")), chunk({"content": "x"}), STOP])
    assert item["content"] == [{"type": "reasoning_text", "text": "deep"}]
    assert (item["summary"], item["encrypted_content"], message["type"]) == ([], "SIG", "message")


def test_thinking_blocks_are_not_doubled_where_reasoning_content_repeats_them() -> None:
    same_chunk = [chunk({"reasoning_content": "deep", **thinking("deep")}), chunk(thinking("", "SIG")), STOP]
    at_the_end = [
        chunk({"reasoning_content": "de"}),
        chunk({"reasoning_content": "ep"}),
        chunk(thinking("deep", "SIG")),
        STOP,
    ]
    for chunks in (same_chunk, at_the_end):
        (item,) = output(chunks)
        assert item["summary"] == [{"type": "summary_text", "text": "deep"}]
        assert ("content" in item, item["encrypted_content"]) == (False, "SIG")


def test_a_redacted_block_is_a_reasoning_item_without_text() -> None:
    (item,) = output([chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "XYZ"}]}), STOP])
    assert (item["type"], item["encrypted_content"]) == ("reasoning", "XYZ")


def test_logprobs_come_with_the_deltas_and_gather_in_the_part() -> None:
    token = {
        "token": "é",
        "logprob": -0.5,
        "bytes": [195, 169],
        "top_logprobs": [{"token": "e", "logprob": -2, "bytes": None}],
    }
    events = converted([chunk({"content": "é"}, logprobs={"content": [token]}), chunk({"content": "!"}), STOP])
    brief = {"token": "é", "logprob": -0.5, "top_logprobs": [{"token": "e", "logprob": -2}]}
    deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == [[brief], []]
    (part,) = events[-1]["response"]["output"][0]["content"]
    assert part["logprobs"] == [{**token, "top_logprobs": [{"token": "e", "logprob": -2, "bytes": []}]}]


def test_citations_become_annotations() -> None:
    citation = {"start_index": 0, "end_index": 1, "url": "https://example.com", "title": "Example"}
    chunks = [
        chunk({"content": "a", "annotations": [{"type": "url_citation", "url_citation": citation}, {"type": "other"}]}),
        STOP,
    ]
    events = converted(chunks)
    assert violations(events) == sdk_violations(events) == []
    (part,) = events[-1]["response"]["output"][0]["content"]
    assert part["annotations"] == [{"type": "url_citation", **citation}]
    assert "output_text.annotation.added" in types(events)


# ---- calls ------------------------------------------------------------------------------------------


def test_calls_interleave_and_stay_open_beside_a_late_message() -> None:
    chunks = [
        chunk(call(0, "call_a", "f", '{"x":')),
        chunk(call(1, "call_b", "g", "{}")),
        chunk({"content": "late"}),
        chunk(call(0, arguments="1}")),
        chunk(finish="tool_calls"),
    ]
    items = output(chunks)
    assert [item["type"] for item in items] == ["function_call", "function_call", "message"]
    assert [item.get("arguments") for item in items] == ['{"x":1}', "{}", None]


def test_arguments_that_come_before_the_name_are_in_the_deltas() -> None:
    chunks = [
        chunk(call(0, "call_a", None, '{"x"')),
        chunk(call(0, None, "f", ":1")),
        chunk(call(0, arguments="}")),
        STOP,
    ]
    deltas = [
        event["delta"] for event in converted(chunks) if event["type"] == "response.function_call_arguments.delta"
    ]
    assert deltas == ['{"x"', ":1", "}"]
    (item,) = output(chunks)
    assert (item["name"], item["arguments"]) == ("f", '{"x":1}')


def test_a_call_whose_name_or_id_never_comes_is_announced_at_the_end() -> None:
    items = output(
        [chunk(call(0, None, "f", "{}")), chunk(call(1, "call_b", None, "{}")), chunk({"content": "x"}), STOP]
    )
    assert [item["type"] for item in items] == ["message", "function_call", "function_call"]
    assert items[1]["name"] == "f"
    assert items[1]["call_id"].startswith("call_")
    assert (items[2]["name"], items[2]["call_id"]) == ("", "call_b")


def test_a_new_id_under_an_old_index_is_a_new_call_and_a_repeated_id_is_not() -> None:
    chunks = [
        chunk(call(0, "call_a", "f", '{"x":')),
        chunk(call(0, "call_a", "f", "1}")),
        chunk(call(0, "call_b", "f", "{}")),
        STOP,
    ]
    assert [(item["call_id"], item["arguments"]) for item in output(chunks)] == [
        ("call_a", '{"x":1}'),
        ("call_b", "{}"),
    ]


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    chunks = [
        chunk({"tool_calls": [*call(None, "a", "f", "{}")["tool_calls"], *call(None, "b", "g", "[]")["tool_calls"]]}),
        STOP,
    ]
    assert [(item["call_id"], item["arguments"]) for item in output(chunks)] == [("a", "{}"), ("b", "[]")]


def test_two_calls_under_one_id_get_different_ones() -> None:
    items = output([chunk(call(index, "call_a", "f", "{}")) for index in range(3)] + [STOP])
    assert [item["call_id"] for item in items] == ["call_a", "call_a_2", "call_a_3"]


def test_a_call_of_which_nothing_comes_is_none() -> None:
    assert output([chunk({"tool_calls": [{"index": 0}]}), chunk(finish="tool_calls")]) == []


def test_custom_tool_calls() -> None:
    pieces: list[Chunk] = [
        {"id": "call_a", "type": "custom", "custom": {"name": "run", "input": "ls"}},
        {"custom": {"input": " -l"}},
    ]
    chunks = [chunk({"tool_calls": [{"index": 0, **piece}]}) for piece in pieces]
    events = converted([*chunks, STOP])
    assert violations(events) == sdk_violations(events) == []
    (item,) = events[-1]["response"]["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "run", "ls -l")
    assert item["id"].startswith("ctc_")


def test_the_function_call_of_old_streams_becomes_a_call() -> None:
    chunks = [
        chunk({"function_call": {"name": "f", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}, "function_call"),
    ]
    (item,) = output(chunks)
    assert (item["type"], item["name"], item["arguments"], item["status"]) == ("function_call", "f", "{}", "completed")


def test_litellms_suffix_is_cut_from_the_ids_of_gemini_calls_only() -> None:
    chunks = [chunk(call(0, "call_a__thought__sig", "f", "{}")), STOP]
    assert output(chunks, model="gemini-3")[0]["call_id"] == "call_a"
    assert output(chunks, model="gpt-x")[0]["call_id"] == "call_a__thought__sig"


# ---- choices and ids ----------------------------------------------------------------------------------


def test_other_choices_are_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    other = {**chunk(), "choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    with caplog.at_level(logging.WARNING, "mockllm.dialects.convert"):
        (message,) = output([chunk({"content": "yes"}), other, other, STOP])
    assert message["content"][0]["text"] == "yes"
    assert len(caplog.records) == 1
    assert "choice 1" in caplog.text


def test_other_choices_are_refused_when_strict() -> None:
    both = chunk({"content": "yes"})
    both["choices"].append({"index": 1, "delta": {"content": "no"}})
    converter = ChatToResponses(strict=True)
    with pytest.raises(ConversionError, match="choice 1") as caught:
        converter.feed(both)
    assert (caught.value.chunk, caught.value.path) == (0, "$.choices[1].index")


def test_ids_are_asked_for_by_kind() -> None:
    asked: list[str] = []

    def ids(kind: str) -> str:
        asked.append(kind)
        return f"{kind}_{len(asked)}"

    chunks = [chunk({"reasoning_content": "a"}), chunk({"content": "b"}), chunk(call(0, "call_a", "f")), STOP]
    assert [item["id"] for item in output(chunks, ids=ids)] == ["rs_2", "msg_3", "fc_4"]
    assert asked == ["resp", "rs", "msg", "fc"]


def test_random_ids_differ() -> None:
    assert make_id("msg").startswith("msg_")
    assert make_id("msg") != make_id("msg")


@given(st.text(st.sampled_from("ab"), max_size=12), st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=30))
def test_a_text_in_two_fields_is_shown_once_however_it_is_cut(text: str, turns: list[tuple[bool, int]]) -> None:
    at = {"reasoning_content": 0, "thinking_blocks": 0}
    chunks = []
    for blocks, count in [*turns, (False, 99), (True, 99)]:
        field = "thinking_blocks" if blocks else "reasoning_content"
        piece = text[at[field] : at[field] + count]
        at[field] += len(piece)
        chunks.append(chunk(thinking(piece) if blocks else {"reasoning_content": piece}))
    deltas = [event["delta"] for event in converted([*chunks, STOP]) if event["type"].endswith(".delta")]
    assert "".join(deltas) == text


def test_a_text_that_only_began_alike_is_shown_whole() -> None:
    chunks = [chunk({"reasoning_content": "the cat sat"}), chunk(thinking("the ")), chunk(thinking("cat ran")), STOP]
    (item,) = output(chunks)
    assert (item["summary"][0]["text"], item["content"][0]["text"]) == ("the cat sat", "the cat ran")
