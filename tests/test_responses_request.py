"""What the Responses dialect reads out of a body."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.dialects.chat import Chat
from mockllm.errors import RequestError
from mockllm.generation.plan import GenerationRequest, Message, OutputFormat, Tool, ToolChoice
from tests.responses_answers import make_dialect


def decode(**body: Any) -> GenerationRequest:
    return make_dialect().decode(json.dumps({"model": "m", "input": "hi", **body}).encode())[1]


def messages(given: object, **body: Any) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in decode(input=given, **body).prompts[0].messages]


def refusal(**body: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decode(**body)
    return caught.value


# ---- input --------------------------------------------------------------------------------------

CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "4"}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("hi", [("user", "hi")]),
        ([{"role": "user", "content": "hi"}], [("user", "hi")]),
        ([{"type": "message", "role": "developer", "content": "hi"}], [("developer", "hi")]),
        (
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "a"},
                        {"type": "input_image", "image_url": "data:,", "detail": "auto"},
                        {"type": "input_file", "file_id": "f"},
                        {"type": "input_text", "text": "b"},
                    ],
                }
            ],
            [("user", "ab")],
        ),
        (
            [
                {
                    "role": "assistant",
                    "id": "msg_1",
                    "content": [{"type": "output_text", "text": "a", "annotations": []}],
                }
            ],
            [("assistant", "a")],
        ),
        ([{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}], [("assistant", "no")]),
        ([CALL, OUTPUT], [("assistant", ""), ("tool", "4")]),
        ([CALL, {**CALL, "call_id": "d"}, OUTPUT], [("assistant", ""), ("tool", "4")]),
        ([{"role": "assistant", "content": "a"}, CALL, OUTPUT], [("assistant", "a"), ("tool", "4")]),
        ([{**OUTPUT, "output": [{"type": "input_text", "text": "4"}]}], [("tool", "4")]),
        (
            [
                {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "ls"},
                {"type": "custom_tool_call_output", "call_id": "c", "output": "x"},
            ],
            [("assistant", ""), ("tool", "x")],
        ),
        ([{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]}], []),
        (
            [{"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "s"}]}],
            [],
        ),
        ([{"type": "tool_search_call", "arguments": {"a": 1}}], []),
    ],
)
def test_items_become_messages(items: object, expected: list[tuple[str, str]]) -> None:
    assert messages(items) == expected


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}, "image"),
        ({"type": "input_image", "file_id": "file_1"}, "image"),
        ({"type": "input_file", "file_id": "file_1"}, "file"),
        ({"type": "input_file", "file_url": "http://x/a.pdf"}, "file"),
        ({"type": "input_file", "file_data": "data:,", "filename": "a.txt"}, "file"),
        ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}, "audio"),
    ],
)
def test_media_is_noted_and_told_apart(part: dict[str, Any], kind: str) -> None:
    asked = [decode(input=[{"role": "user", "content": parts}]).prompts[0] for parts in ([part], [part, part])]
    (media,) = asked[0].media
    assert (media.kind, asked[1].media) == (kind, (media, media))
    other = {"type": "input_image", "image_url": "data:image/png;base64,BB=="}
    assert decode(input=[{"role": "user", "content": [other]}]).prompts[0].media != (media,)
    assert decode(input=[{**OUTPUT, "output": [part]}]).prompts[0].media == (media,)


def test_the_same_image_is_the_same_as_in_chat() -> None:
    url = "data:image/png;base64,AA=="
    chat_parts = [{"type": "image_url", "image_url": {"url": url}}]
    _, chat = Chat().decode(json.dumps({"model": "m", "messages": [{"role": "user", "content": chat_parts}]}).encode())
    parts = [{"type": "input_image", "image_url": url, "detail": "auto"}]
    assert decode(input=[{"role": "user", "content": parts}]).prompts == chat.prompts


def test_instructions_come_first() -> None:
    assert messages("hi", instructions="Be brief.") == [("system", "Be brief."), ("user", "hi")]


def chat_form(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text}


@given(
    st.lists(st.builds(Message, st.sampled_from(["user", "assistant", "system", "developer"]), st.text()), min_size=1),
    st.none() | st.text(),
)
def test_the_same_conversation_is_the_same_prompt_as_in_chat(turns: list[Message], instructions: str | None) -> None:
    items = [chat_form(turn) for turn in turns]
    system = [] if instructions is None else [{"role": "system", "content": instructions}]
    _, chat = Chat().decode(json.dumps({"model": "m", "messages": [*system, *items]}).encode())
    assert decode(input=items, instructions=instructions).prompts == chat.prompts


TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_parts_and_calls_are_the_same_prompt_as_in_chat() -> None:
    chat_messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "4"},
    ]
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    _, chat = Chat().decode(json.dumps({"model": "m", "messages": chat_messages}).encode())
    assert decode(input=[{"role": "user", "content": parts}, CALL, OUTPUT]).prompts == chat.prompts


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{"role": "robot", "content": "a"}], "input[0].role"),
        ([{"role": "user", "content": "a"}, {"role": "user"}], "input[1].content"),
        ([{"role": "user", "content": [{"type": "text"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "hologram", "text": "a"}]}], "input[0].content[0].type"),
        ([{"role": "user", "content": 7}], "input[0].content"),
        ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"text": "a"}]}], "input[0].content[0].type"),
        ([{**CALL, "call_id": None}], "input[0].call_id"),
        ([{**CALL, "name": 3}], "input[0].name"),
        ([{**CALL, "arguments": {}}], "input[0].arguments"),
        ([{**OUTPUT, "call_id": None}], "input[0].call_id"),
        ([{**OUTPUT, "output": 4}], "input[0].output"),
        ([{**OUTPUT, "output": [{"type": "input_text"}]}], "input[0].output[0]"),
        ([{**OUTPUT, "output": [{"type": "hologram"}]}], "input[0].output[0].type"),
        ([{"type": "item_reference"}], "input[0].id"),
        ([7], "input[0]"),
        (7, "input"),
    ],
)
def test_a_wrong_item_is_refused_with_its_path(items: object, param: str) -> None:
    error = refusal(input=items)
    assert (error.status, error.type, error.code, error.param) == (
        400,
        "invalid_request_error",
        "invalid_request",
        param,
    )
    assert f"$.{param}" in error.message


@pytest.mark.parametrize("body", [{"input": None}, {"input": []}, {"input": ""}])
def test_some_input_is_needed(body: dict[str, Any]) -> None:
    assert refusal(**body).param == "input"


def test_a_stored_prompt_stands_for_input() -> None:
    assert decode(input=None, prompt={"id": "pmpt_1"}).prompts[0].messages == ()


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (
            {"previous_response_id": "resp_no"},
            400,
            "previous_response_not_found",
            "previous_response_id",
        ),
        ({"input": [{"type": "item_reference", "id": "msg_no"}]}, 404, None, "input"),
        ({"input": [{"id": "rs_0000000000000000000000"}]}, 404, None, "input"),
        ({"conversation": "conv_1"}, 404, None, "conversation"),
        ({"conversation": {"id": "conv_1"}}, 404, None, "conversation"),
        (
            {"conversation": "conv_1", "previous_response_id": "resp_no"},
            400,
            "mutually_exclusive_parameters",
            "previous_response_id",
        ),
    ],
)
def test_what_is_not_there_is_refused(body: dict[str, Any], status: int, code: str | None, param: str) -> None:
    error = refusal(**body)
    assert (error.status, error.code, error.param) == (status, code, param)


# ---- parameters ---------------------------------------------------------------------------------


def test_the_parameters_that_shape_the_answer() -> None:
    request = decode(
        stream=True,
        max_output_tokens=9,
        min_tokens=2,
        ignore_eos=True,
        seed=5,
        stop=["a", "b"],
        include_stop_str_in_output=True,
        parallel_tool_calls=False,
        reasoning={"effort": "high"},
        top_logprobs=3,
        include=["message.output_text.logprobs"],
        mockllm={"x": 1},
    )
    assert (request.limit_tokens, request.limit_param, request.prompt_param) == (9, "max_output_tokens", "input")
    assert (request.stream, request.exact, request.min_tokens, request.seed) == (True, True, 2, 5)
    assert (request.stop, request.include_stop) == (("a", "b"), True)
    assert (request.parallel_tool_calls, request.reasoning_effort, request.logprobs) == (False, "high", 3)
    assert request.overrides is not None
    assert json.loads(bytes(request.overrides)) == {"x": 1}


def test_logprobs_are_only_for_those_who_include_them() -> None:
    assert decode(top_logprobs=3).logprobs is None
    assert decode(include=["message.output_text.logprobs"]).logprobs == 0


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"truncation": "middle"}, "truncation"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"include": ["everything"]}, "include[0]"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"reasoning": {"effort": "immense"}}, "reasoning.effort"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
        ({"text": {"verbosity": "chatty"}}, "text.verbosity"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"tools": [{"type": "hammer"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": 3}]}, "tools[0].parameters"),
        ({"tools": [{"type": "function", "name": "f", "strict": 1}]}, "tools[0].strict"),
        ({"tools": [{"type": "custom", "name": "c", "format": "regex"}]}, "tools[0].format"),
        ({"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar"}}]}, "tools[0].format.syntax"),
        (
            {"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark"}}]},
            "tools[0].format.definition",
        ),
        ({"tool_choice": "always"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "hammer"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "none", "tools": []}}, "tool_choice.mode"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options"),
        ({"background": True, "store": False}, "store"),
        ({"prompt": {}}, "prompt.id"),
        ({"max_output_tokens": "many"}, "max_output_tokens"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(body: dict[str, Any], param: str) -> None:
    error = refusal(**body)
    assert (error.status, error.param) == (400, param)


def test_unknown_fields_pass() -> None:
    assert decode(frobnicate={"a": [1]}) == decode()


FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
CUSTOM = {"type": "custom", "name": "c"}


def test_tools_in_the_flat_shape() -> None:
    assert decode(tools=[FUNCTION, CUSTOM, {"type": "web_search"}, {"type": "mcp", "server_label": "x"}]).tools == (
        Tool("f", {"type": "object"}, "function", True, param="tools[0].parameters"),
        Tool("c", None, "custom", param="tools[1].format.definition"),
    )


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ({"type": "text"}, ""),
        ({"type": "grammar", "syntax": "regex", "definition": "[ab]+"}, "[ab]+"),
        ({"type": "grammar", "syntax": "lark", "definition": "start: /a/"}, ""),
    ],
)
def test_the_input_of_a_custom_tool_may_have_a_pattern(given: object, pattern: str) -> None:
    (tool,) = decode(tools=[{**CUSTOM, "format": given}]).tools
    assert tool.pattern == pattern


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "f"}, ToolChoice("required", ("f",), named=True)),
        ({"type": "custom", "name": "c"}, ToolChoice("required", ("c",), named=True)),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
            ToolChoice("required", ("f",)),
        ),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "c"}, {"type": "mcp"}]},
            ToolChoice("auto", ("c",)),
        ),
        ({"type": "web_search"}, ToolChoice()),
    ],
)
def test_tool_choices(given: object, expected: ToolChoice) -> None:
    assert decode(tools=[FUNCTION, CUSTOM], tool_choice=given).tool_choice == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "text"}, OutputFormat()),
        ({"type": "json_object"}, OutputFormat("json_object")),
        (
            {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
            OutputFormat("json_schema", {"type": "object"}, strict=True, param="text.format.schema"),
        ),
    ],
)
def test_formats(given: object, expected: OutputFormat) -> None:
    assert decode(text={"format": given}).format == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "role", "content", "text", "id", "output", "call_id", "name", "arguments"]),
                inner,
            )
        ),
    )
)
def test_no_input_fails_in_another_way_than_a_refusal(given: Any) -> None:
    for body in (
        {"input": given},
        {"tools": given},
        {"tool_choice": given},
        {"text": given},
        {"text": {"format": given}},
    ):
        with suppress(RequestError):
            decode(**body)
