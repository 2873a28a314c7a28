"""Profile `openai`: what messages, reasoning and calls are made of."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.dialects.convert import ChatToResponses, ConversionError, make_id
from tests.chat_streams import Chunk, call, chunk
from tests.converting import STOP, converted, output, types
from tests.invariants import sdk_violations, violations

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
