"""The same request in two dialects is one answer: the server's chat stream, converted, is its Responses stream."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm import Config, VirtualServer
from mockllm.dialects.convert import ChatToResponses
from tests.answers import CHAT as CHAT_PATH
from tests.answers import RESPONSES as RESPONSES_PATH
from tests.answers import Mock
from tests.asking import Asker
from tests.invariants import violations

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CHAT_TOOLS = [{"type": "function", "function": {"name": "forecast", "parameters": PARAMETERS}}]
RESPONSES_TOOLS = [{"type": "function", "name": "forecast", "parameters": PARAMETERS}]

Event = dict[str, Any]


def events(config: Config, target: str, body: dict[str, Any]) -> list[str]:
    server = VirtualServer(config)
    reply = server.post(target, {"model": "m", "stream": True, "seed": 7} | body)
    server.run()
    assert reply.status == 200, reply.body
    return [data for _, data in reply.events if data != "[DONE]"]


def native(config: Config, body: dict[str, Any]) -> list[Event]:
    return [json.loads(data) for data in events(config, "/v1/responses", body)]


def converted(config: Config, body: dict[str, Any]) -> list[Event]:
    body = {"stream_options": {"include_usage": True}} | body
    converter = ChatToResponses()
    made = [event for data in events(config, "/v1/chat/completions", body) for event in converter.feed(data.encode())]
    made += converter.finish()
    return [json.loads(msgspec.json.encode(event)) for event in made]


def visible(stream: list[Event]) -> dict[str, Any]:
    """What a person or an agent sees of a stream: items with their texts and arguments, the ending, the usage."""
    assert violations(stream) == []
    response = stream[-1]["response"]
    items = []
    for item in response["output"]:
        parts = [part for part in item.get("content") or [] if part.get("type") != "reasoning_text"]
        reasoning = [
            part["text"] for part in [*(item.get("summary") or []), *(item.get("content") or [])] if "text" in part
        ]
        items.append(
            {
                "type": item["type"],
                "texts": [part.get("text", part.get("refusal")) for part in parts],
                "parts": [part["type"] for part in parts],
                "reasoning": "".join(reasoning) if item["type"] == "reasoning" else "",
                "call": (item.get("name"), item.get("arguments")),
                "status": item.get("status") if item["type"] != "reasoning" else None,
            }
        )
    deltas: dict[str, str] = {}
    for event in stream:
        if event["type"].endswith(".delta"):
            kind = "reasoning" if "reasoning" in event["type"] else event["type"]
            deltas[kind] = deltas.get(kind, "") + event["delta"]
    usage = response["usage"]
    return {
        "ending": (stream[-1]["type"], response["status"], response["incomplete_details"]),
        "items": items,
        "deltas": deltas,
        "usage": {
            "input": usage["input_tokens"],
            "output": usage["output_tokens"],
            "total": usage["total_tokens"],
            "reasoning": usage["output_tokens_details"]["reasoning_tokens"],
        },
    }


def assert_one_truth(config: Config, chat: dict[str, Any], responses: dict[str, Any]) -> dict[str, Any]:
    seen = visible(native(config, responses))
    assert visible(converted(config, chat)) == seen
    return seen


ASK = "Plan a trip."
CHAT = {"messages": [{"role": "user", "content": ASK}]}
RESPONSES = {"input": ASK}


def test_text() -> None:
    seen = assert_one_truth(Config(), CHAT, RESPONSES)
    assert [item["type"] for item in seen["items"]] == ["message"]
    assert seen["ending"] == ("response.completed", "completed", None)


def test_instructions_are_a_system_message() -> None:
    chat = {"messages": [{"role": "system", "content": "Be brief."}, *CHAT["messages"]]}
    assert_one_truth(Config(), chat, RESPONSES | {"instructions": "Be brief."})


@pytest.mark.parametrize("limit", [1, 5, 127, 128, 500])
def test_a_limit(limit: int) -> None:
    seen = assert_one_truth(Config(), CHAT | {"max_tokens": limit}, RESPONSES | {"max_output_tokens": max(limit, 1)})
    assert seen["ending"][1] == ("incomplete" if limit < 128 else "completed")
    assert seen["usage"]["output"] == min(limit, 128)


def test_reasoning_then_text() -> None:
    config = Config(output_tokens=20, reasoning_tokens={"high": 9})
    seen = assert_one_truth(config, CHAT | {"reasoning_effort": "high"}, RESPONSES | {"reasoning": {"effort": "high"}})
    assert [item["type"] for item in seen["items"]] == ["reasoning", "message"]
    assert seen["usage"] == {
        "input": seen["usage"]["input"],
        "output": 29,
        "total": 29 + seen["usage"]["input"],
        "reasoning": 9,
    }


@pytest.mark.parametrize("limit", [3, 9, 12])
def test_reasoning_cut_by_the_limit(limit: int) -> None:
    config = Config(output_tokens=20, reasoning_tokens={"high": 9})
    seen = assert_one_truth(
        config,
        CHAT | {"reasoning_effort": "high", "max_completion_tokens": limit},
        RESPONSES | {"reasoning": {"effort": "high"}, "max_output_tokens": limit},
    )
    assert seen["ending"][0] == "response.incomplete"


def test_a_refusal() -> None:
    seen = assert_one_truth(Config(refusal_probability=1.0), CHAT, RESPONSES)
    assert seen["items"][0]["parts"] == ["refusal"]


def test_a_content_filter() -> None:
    seen = assert_one_truth(Config(content_filter_probability=1.0), CHAT, RESPONSES)
    assert seen["ending"][2] == {"reason": "content_filter"}


@pytest.mark.parametrize("reasoning", ["", "Hm, well."])
def test_a_reply_of_which_a_content_filter_leaves_nothing(reasoning: str) -> None:
    override = {"mockllm": {"text": "", "reasoning": reasoning, "finish_reason": "content_filter"}}
    seen = assert_one_truth(Config(), CHAT | override, RESPONSES | override)
    assert seen["ending"][2] == {"reason": "content_filter"}
    assert (seen["items"][-1]["parts"], seen["items"][-1]["status"]) == (["refusal"], "incomplete")
    server = VirtualServer(Config())
    reply = server.post("/v1/responses", {"model": "m"} | RESPONSES | override)
    server.run()
    assert json.loads(reply.body)["output"][-1]["content"][0]["refusal"] == seen["items"][-1]["texts"][0]


@pytest.mark.parametrize("calls", [1, 3])
def test_calls(calls: int) -> None:
    config = Config(tool_calls=str(calls))
    seen = assert_one_truth(
        config,
        CHAT | {"tools": CHAT_TOOLS, "tool_choice": "required"},
        RESPONSES | {"tools": RESPONSES_TOOLS, "tool_choice": "required"},
    )
    assert [item["type"] for item in seen["items"]] == ["function_call"] * calls
    for item in seen["items"]:
        assert set(json.loads(item["call"][1])) == {"city", "days"}


def test_a_named_call_cut_by_the_limit() -> None:
    named = {"type": "function", "function": {"name": "forecast"}}
    seen = assert_one_truth(
        Config(),
        CHAT | {"tools": CHAT_TOOLS, "tool_choice": named, "max_tokens": 3},
        RESPONSES
        | {"tools": RESPONSES_TOOLS, "tool_choice": {"type": "function", "name": "forecast"}, "max_output_tokens": 3},
    )
    assert seen["ending"][2] == {"reason": "max_output_tokens"}
    assert seen["items"][0]["status"] == "incomplete"


@settings(max_examples=40, deadline=None)
@given(
    text=st.text(min_size=1, max_size=30).filter(lambda text: text.isprintable()),
    limit=st.none() | st.integers(1, 60),
    effort=st.sampled_from([None, "low", "high"]),
    calls=st.booleans(),
    refuse=st.booleans(),
)
def test_any_mixture(text: str, limit: int | None, effort: str | None, calls: bool, refuse: bool) -> None:
    config = Config(output_tokens=20, reasoning_tokens={"low": 2, "high": 9}, refusal_probability=float(refuse))
    chat: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    responses: dict[str, Any] = {"input": text}
    if limit is not None:
        chat["max_completion_tokens"] = responses["max_output_tokens"] = limit
    if effort is not None:
        chat["reasoning_effort"] = effort
        responses["reasoning"] = {"effort": effort}
    if calls:
        chat |= {"tools": CHAT_TOOLS, "tool_choice": "required"}
        responses |= {"tools": RESPONSES_TOOLS, "tool_choice": "required"}
    assert_one_truth(config, chat, responses)


def conversations(name: str = "add", arguments: str = '{"a":1}', refusal: str = "No.") -> dict[str, dict[str, Any]]:
    """One conversation with calls, results and a refusal, as each API has it."""
    call = {"name": name, "arguments": arguments}
    return {
        CHAT_PATH: {
            "messages": [
                {"role": "user", "content": "What is it?"},
                {"role": "assistant", "content": "Wait.", "tool_calls": [{"id": "c1", "function": call}]},
                {"role": "tool", "tool_call_id": "c1", "content": "4"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c2", "function": call}] * 2},
                {"role": "tool", "tool_call_id": "c2", "content": "5"},
                {"role": "assistant", "content": None, "refusal": refusal},
                {"role": "user", "content": "Why?"},
            ]
        },
        RESPONSES_PATH: {
            "input": [
                {"role": "user", "content": "What is it?"},
                {"role": "assistant", "content": "Wait."},
                {"type": "function_call", "call_id": "other", **call},
                {"type": "function_call_output", "call_id": "other", "output": "4"},
                {"type": "function_call", "call_id": "1", **call},
                {"type": "function_call", "call_id": "2", **call},
                {"type": "function_call_output", "call_id": "1", "output": "5"},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": refusal}]},
                {"role": "user", "content": "Why?"},
            ]
        },
    }


def answers(**said: str) -> list[tuple[str, int]]:
    """Text and prompt tokens of the answer to the conversation, in each API."""
    mock, asked = Mock(), conversations(**said)
    chat = mock.whole(CHAT_PATH, **asked[CHAT_PATH])
    native = mock.whole(RESPONSES_PATH, **asked[RESPONSES_PATH])
    return [
        (chat["choices"][0]["message"]["content"], chat["usage"]["prompt_tokens"]),
        (native["output"][0]["content"][0]["text"], native["usage"]["input_tokens"]),
    ]


def test_calls_and_refusals_in_the_prompt_are_counted_and_change_the_answer() -> None:
    usual = answers()
    assert usual[0] == usual[1]
    for said in ({"name": "sub"}, {"arguments": '{"a":2}'}, {"refusal": "Never."}):
        changed = answers(**said)
        assert changed[0] == changed[1]
        assert changed[0][0] != usual[0][0], said
    longer = answers(arguments='{"a":1,"b":2}')
    assert longer[0] == longer[1]
    assert longer[0][1] > usual[0][1]


def test_tokenize_counts_what_usage_does() -> None:
    messages = conversations()[CHAT_PATH]["messages"]
    usage = Mock().whole(CHAT_PATH, messages=messages)["usage"]
    assert Asker().post("/tokenize", messages=messages).json["count"] == usage["prompt_tokens"]


def test_a_call_that_the_server_made_counts_alike_when_it_comes_back_or_is_remembered() -> None:
    mock = Mock()
    asked = {"input": ASK, "tools": RESPONSES_TOOLS, "tool_choice": "required"}
    made = mock.whole(RESPONSES_PATH, **asked)
    (call,) = made["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    given = [{"role": "user", "content": ASK}, call, result]
    remembered = mock.whole(RESPONSES_PATH, input=[result], previous_response_id=made["id"])
    referred = mock.whole(
        RESPONSES_PATH, input=[{"role": "user", "content": ASK}, {"type": "item_reference", "id": call["id"]}, result]
    )
    sent = mock.whole(RESPONSES_PATH, input=given)
    for reply in (remembered, referred):
        assert reply["usage"] == sent["usage"]
        assert reply["output"][0]["content"] == sent["output"][0]["content"]
