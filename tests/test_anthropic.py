"""The Messages API: conversations in, blocks and events out, errors in its own shape."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.dialects.anthropic import Messages
from mockllm.dialects.dialect import Context
from mockllm.errors import RequestError
from mockllm.exchange import Request, Timeline
from mockllm.generation.plan import Choice, Plan, Segment
from tests.asking import Asker
from tests.responses_answers import call, make_plan, read_frame, reasoning, refusal, text

Json = dict[str, Any]

asker = Asker(ttft_ms=50, itl_ms=10)
HI = [{"role": "user", "content": "hi"}]
WEATHER = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def context_of(plan: Plan, **body: Any) -> Context:
    """The answer to a body, with a plan of ours in place of the planner's."""
    given = {"model": "m", "max_tokens": 4096, "messages": HI, **body}
    own, request = Messages().decode(json.dumps(given).encode())
    return Context("msg_1", 1_700_000_000, own, request, plan)


def events_of(timeline: Timeline, *cuts: int) -> list[Json]:
    """All events of a timeline, rendered in stretches that end at `cuts`."""
    frames = list(timeline.preamble)
    first = 0
    for upto in (*cuts, timeline.steps):
        frames += timeline.render(first, upto)
        first = upto
    return [read_frame(frame) for frame in frames]


def assembled(events: list[Json]) -> Json:
    """The message that the events build, put together as the API reference says."""
    start, *rest = [event for event in events if event["type"] != "ping"]
    assert start["type"] == "message_start"
    assert rest.pop()["type"] == "message_stop"
    final = rest.pop()
    message: Json = start["message"]
    assert (message["content"], message["stop_reason"], message["usage"]["output_tokens"]) == ([], None, 0)
    arguments = ""
    for event in rest:
        index = event["index"]
        match event["type"]:
            case "content_block_start":
                assert index == len(message["content"])
                message["content"].append(event["content_block"])
                arguments = ""
            case "content_block_delta":
                block, delta = message["content"][index], event["delta"]
                match delta["type"]:
                    case "text_delta":
                        block["text"] += delta["text"]
                    case "thinking_delta":
                        block["thinking"] += delta["thinking"]
                    case "signature_delta":
                        block["signature"] = delta["signature"]
                    case "input_json_delta":
                        arguments += delta["partial_json"]
            case "content_block_stop":
                assert index == len(message["content"]) - 1
                if arguments:
                    message["content"][index]["input"] = json.loads(arguments)
            case other:
                pytest.fail(other)
    assert final["type"] == "message_delta"
    message |= final["delta"] | {"usage": message["usage"] | final["usage"]}
    return message


PLANS = {
    "text": make_plan([text("Hello", ' "', "\n")]),
    "thought": make_plan([reasoning("Let", " me"), text("Yes")], prompt_tokens=9, cached_tokens=4),
    "call": make_plan([text("So:"), call("weather", '{"city"', ':"Paris"}'), call("time", "{", "}")], "tool_calls"),
    "named": make_plan([call("weather", "{}")]),
    "refused": make_plan([refusal("I can't", " do that.")]),
    "filtered": make_plan([text("Well")], "content_filter"),
    "cut": make_plan([reasoning("Let")], "length"),
    "nothing": make_plan([Segment("text", [b"", b""])]),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("opening_events", ["at-head", "with-first-token"])
@given(cuts=st.sets(st.integers(1, 6)))
def test_a_stream_builds_the_whole_message_wherever_it_is_cut(name: str, opening_events: str, cuts: set[int]) -> None:
    context = context_of(PLANS[name])
    dialect = Messages(opening_events)
    timeline = dialect.stream(context)
    events = events_of(timeline, *sorted(cut for cut in cuts if cut < timeline.steps))
    assert assembled(events) == json.loads(dialect.whole(context))
    assert len(timeline.preamble) == (opening_events == "at-head")


@pytest.mark.parametrize(
    ("name", "reason", "blocks"),
    [
        ("text", "end_turn", ["text"]),
        ("thought", "end_turn", ["thinking", "text"]),
        ("call", "tool_use", ["text", "tool_use", "tool_use"]),
        ("named", "tool_use", ["tool_use"]),
        ("refused", "refusal", ["text"]),
        ("filtered", "refusal", ["text"]),
        ("cut", "max_tokens", ["thinking"]),
        ("nothing", "end_turn", []),
    ],
)
def test_why_a_message_ends_and_what_it_holds(name: str, reason: str, blocks: list[str]) -> None:
    message = json.loads(Messages().whole(context_of(PLANS[name])))
    assert (message["stop_reason"], [block["type"] for block in message["content"]]) == (reason, blocks)
    assert ("stop_details" in message) == (reason == "refusal")


def test_a_stop_sequence_is_named() -> None:
    (choice,) = make_plan([text("a")]).choices
    stopped = Choice(0, choice.segments, "stop", 1, choice.key, stop_reason="END")
    message = json.loads(Messages().whole(context_of(Plan((stopped,), 1, 1, 0.0, (0.0,)))))
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")


def test_the_events_come_in_the_order_of_the_reference() -> None:
    events = events_of(Messages().stream(context_of(PLANS["thought"])))
    assert [event["type"] for event in events] == [
        "message_start", "content_block_start", "ping", "content_block_delta", "content_block_delta",
        "content_block_delta", "content_block_stop", "content_block_start", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip


def test_the_tokens_out_of_a_cache_are_none_of_the_input() -> None:
    usage = json.loads(Messages().whole(context_of(PLANS["thought"])))["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (5, 4, 0)
    assert (usage["output_tokens"], usage["output_tokens_details"]) == (3, {"thinking_tokens": 2})


def test_thinking_is_signed_and_can_be_silent() -> None:
    thinking = {"type": "adaptive", "display": "omitted"}
    context = context_of(PLANS["thought"], thinking=thinking)
    block = json.loads(Messages().whole(context))["content"][0]
    assert block["thinking"] == ""
    assert len(b64decode(block["signature"], validate=True)) == 192
    assert assembled(events_of(Messages().stream(context)))["content"][0] == block
    assert json.loads(Messages().whole(context_of(PLANS["thought"])))["content"][0]["thinking"] == "Let me"


def test_a_call_whose_arguments_were_cut_has_none() -> None:
    plan = make_plan([call("weather", '{"ci')], "length")
    message = json.loads(Messages().whole(context_of(plan)))
    assert message["content"] == [{"type": "tool_use", "id": "toolu_weather", "name": "weather", "input": {}}]


# ---- what is asked -----------------------------------------------------------------------------

CONVERSATIONS = [
    ({"messages": HI}, HI),
    (
        {"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
        [{"role": "system", "content": "Be brief."}, *HI],
    ),
    (
        {
            "system": [
                {"type": "text", "text": "Be", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": " brief."},
            ],
            "messages": [
                *HI,
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "sunny"}]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "cold", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "toolu_3"},
                    {"type": "text", "text": "and?"},
                ]},
            ],
        },
        [
            {"role": "system", "content": "Be brief."},
            *HI,
            {"role": "assistant", "content": "Let me see.", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "sunny"},
            {"role": "tool", "tool_call_id": "2", "content": "cold"},
            {"role": "tool", "tool_call_id": "3", "content": ""},
            {"role": "user", "content": "and?"},
        ],
    ),
    (
        {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "one "}},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "two "}]}},
            {"type": "search_result", "source": "x", "title": "t", "content": [{"type": "text", "text": "three"}]},
        ]}]},
        [{"role": "user", "content": "one two three"}],
    ),
    (
        {"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "http://x/y"}},
            {"type": "text", "text": "what?"},
        ]}]},
        [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "http://x/y"}},
            {"type": "text", "text": "what?"},
        ]}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "chat"), CONVERSATIONS)
def test_the_answer_is_that_of_chat(ours: Json, chat: list[Json]) -> None:
    message = asker.post("/v1/messages", max_tokens=64, **ours).json
    completion = asker.post("/v1/chat/completions", max_tokens=64, messages=chat).json
    assert message["content"] == [{"type": "text", "text": completion["choices"][0]["message"]["content"]}]
    assert message["usage"]["input_tokens"] == completion["usage"]["prompt_tokens"]
    assert message["usage"]["output_tokens"] == completion["usage"]["completion_tokens"] == 12
    counted = asker.post("/v1/messages/count_tokens", **ours).json
    assert counted == {"input_tokens": message["usage"]["input_tokens"]}


def test_a_stream_keeps_the_plans_times() -> None:
    answer = asker.post("/messages", max_tokens=64, messages=HI, stream=True)
    assert answer.timeline.offset_s == pytest.approx(0.05)
    assert answer.timeline.steps == 12
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    frames = [frame + b"\n\n" for frame in answer.body.removesuffix(b"\n\n").split(b"\n\n")]
    whole = asker.post("/v1/messages", max_tokens=64, messages=HI).json
    built = assembled([read_frame(frame) for frame in frames])
    assert built | {"id": ""} == whole | {"id": ""}


def test_a_limit_cuts_and_says_so() -> None:
    message = asker.post("/v1/messages", max_tokens=3, messages=HI).json
    assert (message["stop_reason"], message["usage"]["output_tokens"]) == ("max_tokens", 3)


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_tool_is_called_where_it_has_to_be(choice: Json) -> None:
    message = asker.post("/v1/messages", max_tokens=64, messages=HI, tools=[WEATHER], tool_choice=choice).json
    assert message["stop_reason"] == "tool_use"
    (block,) = message["content"]
    assert (block["type"], block["name"], type(block["input"])) == ("tool_use", "weather", dict)
    assert block["id"].startswith("toolu_")


@pytest.mark.parametrize("choice", [{"type": "none"}, None])
def test_no_tool_is_called_where_none_has_to_be(choice: Json | None) -> None:
    message = asker.post("/v1/messages", max_tokens=64, messages=HI, tools=[WEATHER], tool_choice=choice).json
    assert message["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    ("thinking", "config", "effort"),
    [
        (None, None, None),
        ({"type": "disabled"}, {"effort": "high"}, "none"),
        ({"type": "enabled", "budget_tokens": 1024}, None, "low"),
        ({"type": "enabled", "budget_tokens": 4000}, None, "medium"),
        ({"type": "enabled", "budget_tokens": 9000}, None, "high"),
        ({"type": "adaptive"}, None, "high"),
        ({"type": "adaptive"}, {"effort": "max"}, "max"),
    ],
)
def test_how_much_is_thought(thinking: Json | None, config: Json | None, effort: str | None) -> None:
    body = {"max_tokens": 10_000, "messages": HI, "thinking": thinking, "output_config": config}
    _, request = Messages().decode(json.dumps(body).encode())
    assert request.reasoning_effort == effort


def test_what_else_is_read() -> None:
    schema = {"type": "object"}
    body = {
        "max_tokens": 9, "messages": HI, "stop_sequences": ["a", "b"], "seed": 5, "min_tokens": 2, "ignore_eos": True,
        "tools": [WEATHER | {"strict": True}, {"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "output_config": {"format": {"type": "json_schema", "schema": schema}}, "metadata": {"user_id": "u"},
    }  # fmt: skip
    _, request = Messages().decode(json.dumps(body).encode())
    assert (request.limit_tokens, request.stop, request.seed, request.min_tokens) == (9, ("a", "b"), 5, 2)
    assert (request.exact, request.parallel_tool_calls) == (True, False)
    assert [(tool.name, tool.strict) for tool in request.tools] == [("weather", True)]
    assert (request.format.kind, request.format.schema) == ("json_schema", schema)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "song"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": 5}]}]},
            "messages[0].content[0].content",
        ),
        ({"tools": [{"name": "x"}]}, "tools[0].input_schema"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}, "tools": [WEATHER]}, "tool_choice.name"),
        ({"tool_choice": {"type": "tool", "name": "x"}, "tools": [WEATHER]}, "tool_choice.name"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "max_tokens"),
    ],
)
def test_what_the_api_refuses_is_refused_by_name(body: Json, param: str) -> None:
    answer = asker.post("/v1/messages", **({"max_tokens": 64, "messages": HI} | body))
    assert answer.status == 400
    message = answer.json["error"]["message"]
    assert param.replace("[0]", "") in message.replace("[0]", "")


# ---- overrides and faults ----------------------------------------------------------------------


def test_a_request_may_say_what_it_is_answered() -> None:
    calls = [{"name": "weather", "arguments": {"city": "Paris"}}, {"name": "broken", "arguments": "{"}]
    own = {"reasoning": "Hm.", "text": "Let me see.", "tool_calls": calls}
    body = {"max_tokens": 64, "messages": HI, "mockllm": own}
    message = asker.post("/v1/messages", **body).json
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    thought, text, weather, broken = message["content"]
    assert (thought["thinking"], text["text"], message["stop_reason"]) == ("Hm.", "Let me see.", "tool_use")
    assert (weather["input"], broken["input"]) == ({"city": "Paris"}, {})
    refused = asker.post("/v1/messages", max_tokens=64, messages=HI, mockllm={"refusal": "No."}).json
    assert (refused["stop_reason"], refused["content"]) == ("refusal", [{"type": "text", "text": "No."}])
    wrong = asker.post("/v1/messages", max_tokens=64, messages=HI, mockllm={"tekst": "x"})
    assert (wrong.status, wrong.json["error"]["type"]) == (400, "invalid_request_error")


def test_a_reply_that_does_not_come_to_its_end_says_so_in_an_event() -> None:
    own = {"fault": {"kind": "error", "after_tokens": 3}}
    answer = asker.post("/v1/messages", max_tokens=64, messages=HI, stream=True, mockllm=own)
    frames = [frame + b"\n\n" for frame in answer.body.removesuffix(b"\n\n").split(b"\n\n")]
    events = [read_frame(frame) for frame in frames]
    assert [event["type"] for event in events[-2:]] == ["content_block_delta", "error"]
    assert set(events[-1]["error"]) == {"type", "message"}


# ---- models ------------------------------------------------------------------------------------


def test_models_are_listed_as_the_client_knows_them() -> None:
    server = Asker(served_model_name=("a", "b"))
    ours = server.ask("/v1/models", headers={b"anthropic-version": b"2023-06-01"}).json
    assert (ours["first_id"], ours["last_id"], ours["has_more"]) == ("a", "b", False)
    assert [(model["type"], model["id"]) for model in ours["data"]] == [("model", "a"), ("model", "b")]
    assert server.ask("/v1/models/b", headers={b"anthropic-version": b"2023-06-01"}).json == ours["data"][1]
    assert [model["id"] for model in server.ask("/v1/models").json["data"]] == ["a", "b"]
    assert server.ask("/v1/models/c", headers={b"anthropic-version": b"2023-06-01"}).status == 404


# ---- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "path", "body", "status", "kind"),
    [
        ({}, "/v1/messages", b"{", 400, "invalid_request_error"),
        ({"api_key": ("k",)}, "/v1/messages", b"{", 401, "authentication_error"),
        ({"api_key": ("k",)}, "/messages/count_tokens", b"{", 401, "authentication_error"),
        ({}, "/v1/messages/nothing", b"{}", 404, "not_found_error"),
        ({}, "/v1/messages", None, 405, "invalid_request_error"),
        (
            {"strict_model": True},
            "/v1/messages",
            {"model": "x", "max_tokens": 5, "messages": HI},
            404,
            "not_found_error",
        ),
    ],
)
def test_errors_are_anthropics_wherever_they_arise(
    settings: Json, path: str, body: Any, status: int, kind: str
) -> None:
    answer = Asker(**settings).ask(path, body, {b"x-request-id": b"abc"})
    assert answer.status == status
    assert set(answer.json) == {"type", "error", "request_id"}
    assert (answer.json["type"], answer.json["error"]["type"], answer.json["request_id"]) == ("error", kind, "abc")
    assert answer.headers["request-id"] == "abc"


def test_what_is_no_request_is_refused_in_the_same_shape() -> None:
    request = Request("POST", "/v1/messages", "", {}, b"", 1000.0, 1000.0)
    reply = asker.app.refusal(RequestError("too large", status=413), asker.app.exchange(request))
    error = json.loads(reply.timeline.render(0, 1)[0])["error"]
    assert error == {"type": "request_too_large", "message": "too large"}


def test_the_key_may_come_as_anthropics_clients_send_it() -> None:
    answer = Asker(api_key=("k",)).ask("/v1/messages", {"max_tokens": 5, "messages": HI}, {b"x-api-key": b"k"})
    assert answer.status == 200
    assert "request-id" not in Asker().ask("/v1/models").headers
