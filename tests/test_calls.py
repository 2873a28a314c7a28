"""Tool calls: who is called, how often, with what, and how the reply ends."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.answers import CHAT, TOKENIZER, Json, Mock, assemble

MOCK = Mock()
WEATHER: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "where": {"$ref": "#/$defs/point"},
    },
    "required": ["city", "where"],
    "additionalProperties": False,
    "$defs": {"point": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}},
}


def function(name: str, parameters: Json | None = None, **more: Any) -> Json:
    inside = {"name": name} | ({} if parameters is None else {"parameters": parameters}) | more
    return {"type": "function", "function": inside}


TOOLS = [function("get_weather", WEATHER), function("now"), {"type": "custom", "custom": {"name": "shell"}}]


def choose(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def called(mock: Mock, **body: Any) -> tuple[list[Json], str]:
    """The calls of a reply and its finish reason; its stream has the same."""
    choice = mock.whole(CHAT, **{"tools": TOOLS} | body)["choices"][0]
    streamed = assemble(mock.chunks(CHAT, **{"tools": TOOLS} | body))["choices"][0]
    calls = choice["message"].get("tool_calls", [])
    for ours, theirs in zip(streamed["message"].get("tool_calls", []), calls, strict=True):
        assert ours | {"id": ""} == theirs | {"id": ""}
    assert streamed["finish_reason"] == choice["finish_reason"]
    return calls, choice["finish_reason"]


CALLED = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


class TestChoice:
    def test_required_calls_the_first_tool(self) -> None:
        calls, reason = called(MOCK, tool_choice="required")
        assert [call["function"]["name"] for call in calls] == ["get_weather"]
        assert reason == "tool_calls"

    def test_a_named_function_ends_with_stop(self) -> None:
        calls, reason = called(MOCK, tool_choice=choose("now"))
        assert [call["function"] for call in calls] == [{"name": "now", "arguments": "{}"}]
        assert reason == "stop"

    @pytest.mark.parametrize("choice", ["none", "auto", None])
    def test_by_default_none_is_called(self, choice: str | None) -> None:
        calls, reason = called(MOCK, tool_choice=choice)
        assert (calls, reason) == ([], "stop")

    def test_allowed_tools_narrow_the_choice(self) -> None:
        allowed = {"mode": "required", "tools": [choose("now")]}
        calls, reason = called(MOCK, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
        assert [call["function"]["name"] for call in calls] == ["now"]
        assert reason == "tool_calls"
        allowed["mode"] = "auto"
        assert called(MOCK, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})[0] == []

    def test_auto_calls_as_often_as_it_is_told(self) -> None:
        mock = Mock(tool_call_probability=0.25)
        prompts = [[{"role": "user", "content": f"Question {number}"}] for number in range(400)]
        replies = [mock.message(tools=TOOLS, messages=messages) for messages in prompts]
        assert 60 < sum("tool_calls" in reply for reply in replies) < 140
        assert [mock.message(tools=TOOLS, messages=messages)["content"] for messages in prompts[:20]] == [
            reply["content"] for reply in replies[:20]
        ]

    @pytest.mark.parametrize("role", ["tool", "function"])
    def test_after_a_result_the_model_answers(self, role: str) -> None:
        mock = Mock(tool_call_probability=1)
        messages = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": None, "tool_calls": [CALLED]},
            {"role": role, "tool_call_id": "call_1", "name": "get_weather", "content": "sunny"},
        ]
        assert "tool_calls" in mock.message(tools=TOOLS, messages=messages[:1])
        assert mock.message(tools=TOOLS, messages=messages)["content"]
        assert "tool_calls" in mock.message(tools=TOOLS, messages=messages, tool_choice="required")

    @pytest.mark.parametrize(
        ("choice", "param"),
        [
            (choose("nobody"), "tool_choice"),
            ({"type": "custom", "custom": {"name": "now"}}, "tool_choice"),
            ("sometimes", "tool_choice"),
            ({"type": "function"}, "tool_choice"),
            ({"type": "allowed_tools", "allowed_tools": {"mode": "none"}}, "tool_choice.allowed_tools.mode"),
            ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [5]}}, None),
        ],
    )
    def test_a_choice_that_cannot_be(self, choice: Any, param: str | None) -> None:
        error = MOCK.error(CHAT, tools=TOOLS, tool_choice=choice)
        assert error["param"] == param or param is None

    def test_required_needs_tools(self) -> None:
        assert MOCK.error(CHAT, tool_choice="required")["param"] == "tool_choice"


class TestCount:
    def test_a_number(self) -> None:
        calls, _ = called(Mock(tool_calls="5"), tool_choice="required")
        names = [call[call["type"]]["name"] for call in calls]
        assert names == ["get_weather", "now", "shell", "get_weather", "now"]
        assert len({call["id"] for call in calls}) == 5
        assert calls[0]["function"] != calls[3]["function"]

    def test_a_range(self) -> None:
        mock = Mock(tool_calls="2-4")
        counts = [len(called(mock, tool_choice="required", seed=seed)[0]) for seed in range(30)]
        assert set(counts) == {2, 3, 4}

    @pytest.mark.parametrize("body", [{"parallel_tool_calls": False}, {"tool_choice": choose("now")}])
    def test_one_where_one_is_asked_for(self, body: Json) -> None:
        assert len(called(Mock(tool_calls="3"), **{"tool_choice": "required"} | body)[0]) == 1


class TestArguments:
    def test_they_meet_the_schema(self) -> None:
        for seed in range(50):
            (call,), _ = called(MOCK, tool_choice=choose("get_weather"), seed=seed)
            jsonschema.Draft202012Validator(WEATHER).validate(json.loads(call["function"]["arguments"]))

    def test_they_differ_between_prompts_and_choices(self) -> None:
        reply = MOCK.whole(CHAT, tools=TOOLS, tool_choice="required", n=6)
        assert len({choice["message"]["tool_calls"][0]["function"]["arguments"] for choice in reply["choices"]}) > 1

    def test_they_come_in_tokens_behind_the_name(self) -> None:
        chunks = MOCK.chunks(CHAT, tools=TOOLS, tool_choice="required")
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks[1:-2]]
        first, *rest = [delta["tool_calls"][0] for delta in deltas]
        assert first["function"] == {"name": "get_weather", "arguments": ""}
        assert (first["type"], first["index"]) == ("function", 0)
        assert all(set(delta) == {"index", "function"} and set(delta["function"]) == {"arguments"} for delta in rest)
        pieces = [delta["function"]["arguments"] for delta in rest]
        assert pieces == TOKENIZER.pieces("".join(pieces))
        assert chunks[-1]["usage"]["completion_tokens"] == 1 + len(pieces)

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    def test_the_limit_cuts_them(self, limit: int) -> None:
        (full,), _ = called(MOCK, tool_choice="required")
        (cut,), reason = called(MOCK, tool_choice="required", max_tokens=limit)
        pieces = TOKENIZER.pieces(full["function"]["arguments"])
        assert cut["function"]["arguments"] == "".join(pieces[: limit - 1])
        assert reason == "length"

    @pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
    def test_none_are_two_tokens(self, parameters: Json | None) -> None:
        reply = MOCK.whole(CHAT, tools=[function("now", parameters)], tool_choice="required")
        assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == "{}"
        assert reply["usage"]["completion_tokens"] == 3

    @pytest.mark.parametrize(
        "parameters", [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"type": ["object", "null"]}]
    )
    def test_they_are_an_object_whatever_the_schema_leaves_open(self, parameters: Json) -> None:
        (call,), _ = called(MOCK, tools=[function("f", parameters)], tool_choice="required")
        assert isinstance(json.loads(call["function"]["arguments"]), dict)

    @pytest.mark.parametrize("choice", ["required", "none"])
    @pytest.mark.parametrize(
        "parameters",
        [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3}}, "required": ["a"]},
            {"type": "string"},
            {"type": "object", "properties": {"a": {"type": "text"}}, "required": ["a"]},
            False,
        ],
    )
    def test_a_schema_that_cannot_be_met_is_refused_called_or_not(self, parameters: Any, choice: str) -> None:
        error = MOCK.error(CHAT, tools=[TOOLS[1], function("f", parameters)], tool_choice=choice)
        assert error["param"] == "tools[1].function.parameters"
        assert error["code"] == "invalid_function_parameters"

    def test_the_message_says_where(self) -> None:
        parameters = {"type": "object", "properties": {"a": {"type": "text"}}, "required": ["a"]}
        assert "#/properties/a" in MOCK.error(CHAT, tools=[function("f", parameters)])["message"]


class TestCustom:
    def test_a_custom_tool_gets_text(self) -> None:
        (call,), reason = called(MOCK, tool_choice={"type": "custom", "custom": {"name": "shell"}})
        assert call["type"] == "custom"
        assert call["custom"]["name"] == "shell"
        assert call["custom"]["input"].endswith(".")
        assert reason == "stop"

    def test_its_input_matches_a_regular_expression(self) -> None:
        grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-f]{3}-[0-9]{4}"}}
        tool = {"type": "custom", "custom": {"name": "code", "format": grammar}}
        (call,), _ = called(MOCK, tools=[tool], tool_choice="required")
        letters, digits = call["custom"]["input"].split("-")
        assert set(letters) <= set("abcdef")
        assert digits.isdigit()

    def test_an_expression_that_is_none(self) -> None:
        grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-"}}
        tool = {"type": "custom", "custom": {"name": "code", "format": grammar}}
        assert MOCK.error(CHAT, tools=[tool])["param"] == "tools[0].custom.format.grammar.definition"


class TestFunctions:
    """The deprecated `functions` and `function_call`."""

    FUNCTIONS = (function("get_weather", WEATHER)["function"], {"name": "now"})

    def call(self, mock: Mock, **body: Any) -> tuple[Json | None, str]:
        choice = mock.whole(CHAT, functions=self.FUNCTIONS, **body)["choices"][0]
        assert "tool_calls" not in choice["message"]
        streamed = assemble(mock.chunks(CHAT, functions=self.FUNCTIONS, **body))["choices"][0]
        assert streamed["message"].get("function_call") == choice["message"].get("function_call")
        assert streamed["finish_reason"] == choice["finish_reason"]
        return choice["message"].get("function_call"), choice["finish_reason"]

    def test_named(self) -> None:
        assert self.call(MOCK, function_call={"name": "now"}) == ({"name": "now", "arguments": "{}"}, "stop")

    def test_auto(self) -> None:
        call, reason = self.call(Mock(tool_call_probability=1, tool_calls="3"))
        assert call is not None
        jsonschema.Draft202012Validator(WEATHER).validate(json.loads(call["arguments"]))
        assert reason == "function_call"
        assert self.call(MOCK, function_call="auto") == (None, "stop")

    def test_none(self) -> None:
        assert self.call(Mock(tool_call_probability=1), function_call="none") == (None, "stop")

    def test_a_function_that_is_not_there(self) -> None:
        assert MOCK.error(CHAT, functions=self.FUNCTIONS, function_call={"name": "x"})["param"] == "function_call"
