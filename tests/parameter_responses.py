"""The parameters of `POST /v1/responses`."""

from __future__ import annotations

from typing import Any

from tests.answers import RESPONSES, Json, Mock
from tests.parameter_rows import HONOURED, NO_COUNT, NO_FLAG, NO_NUMBER, NO_TEXT, REFUSED, VALIDATED, At, Proof, Row

ONLY = (RESPONSES,)

USER = {"role": "user", "content": "Hello"}
FUNCTION = {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}}
SHELL = {"type": "custom", "name": "shell"}
NAMED = {"type": "function", "name": "now"}
CALLED = {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "4"}
SCHEMA = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}


def _echoed(name: str, value: Any) -> Proof:
    return lambda mock, path: mock.whole(path, **{name: value})[name] == value


def _text(mock: Mock, **body: Any) -> str:
    return str(mock.whole(RESPONSES, **body)["output"][-1]["content"][0]["text"])


def _tokens(mock: Mock, **body: Any) -> int:
    return int(mock.whole(RESPONSES, **body)["usage"]["output_tokens"])


def _prompt_tokens(mock: Mock, **body: Any) -> int:
    return int(mock.whole(RESPONSES, **body)["usage"]["input_tokens"])


def _calls(mock: Mock, **body: Any) -> list[str]:
    output = mock.whole(RESPONSES, **body)["output"]
    return [item["name"] for item in output if item["type"] in ("function_call", "custom_tool_call")]


def _continues(mock: Mock, path: str) -> bool:
    first = mock.whole(path)
    return _prompt_tokens(mock, previous_response_id=first["id"]) > _prompt_tokens(mock)


def _stops(mock: Mock, path: str) -> bool:
    text = _text(mock)
    word = text.split()[3]
    cut = text[: text.index(word)]
    return _text(mock, stop=word) == cut and _text(mock, stop=[word], include_stop_str_in_output=True) == cut + word


def _kept(mock: Mock, path: str) -> bool:
    kept, not_kept = (mock.whole(path, store=store)["id"] for store in (True, False))
    return (
        mock.send(path, {"input": "Go on", "previous_response_id": kept})[0] == 200
        and mock.send(path, {"input": "Go on", "previous_response_id": not_kept})[0] != 200
    )


def _streams(mock: Mock, path: str, **more: Any) -> str:
    status, streamed, timeline = mock.send(path, {"model": "m", "input": "Hello", "stream": True} | more)
    assert (status, streamed) == (200, True)
    return b"".join([*timeline.preamble, *timeline.render(0, timeline.steps)]).decode()


def _drops_turns(mock: Mock, path: str) -> bool:
    short = Mock(max_model_len=20, output_tokens=4)
    body: Json = {"model": "m", "input": [{"role": "user", "content": "word " * 20}, USER]}
    return short.send(path, body)[0] == 400 and short.send(path, body | {"truncation": "auto"})[0] == 200


def _reasons(mock: Mock, path: str) -> bool:
    thinks = Mock(reasoning_tokens={"high": 5})
    item = thinks.whole(path, reasoning={"effort": "high", "summary": "auto"})["output"][0]
    return bool(item["type"] == "reasoning" and item["summary"])


def _sealed(mock: Mock, path: str) -> bool:
    thinks = Mock(reasoning_tokens={"high": 5})
    asked: Json = {"reasoning": {"effort": "high"}}
    return "encrypted_content" in str(thinks.whole(path, include=["reasoning.encrypted_content"], **asked)["output"])


def _scores(mock: Mock, path: str) -> bool:
    asked: Json = {"include": ["message.output_text.logprobs"]}
    scores = mock.whole(path, top_logprobs=2, **asked)["output"][0]["content"][0]["logprobs"]
    return {len(score["top_logprobs"]) for score in scores} == {2}


ROWS = [
    Row(
        "model",
        HONOURED,
        "text; the reply's model, by default the first served",
        ["m", "org/m", ""],
        [7, ["m"], {}],
        lambda mock, path: mock.whole(path, model="org/m")["model"] == "org/m",
        ONLY,
    ),
    Row(
        "input",
        HONOURED,
        "text, or items",
        [
            "Hello",
            [USER],
            [USER, CALLED, RESULT],
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}],
        ],
        [
            7,
            {},
            "",
            [],
            At([7], "input[0]"),
            At([{"role": "robot", "content": "a"}], "input[0].role"),
            At([{"role": "user"}], "input[0].content"),
            At([{**CALLED, "call_id": None}], "input[0].call_id"),
            At([{**RESULT, "output": 4}], "input[0].output"),
        ],
        lambda mock, path: _prompt_tokens(mock, input=[USER, USER]) == 2 * _prompt_tokens(mock, input=[USER]),
        ONLY,
    ),
    Row(
        "instructions",
        HONOURED,
        "text",
        ["a", None],
        NO_TEXT,
        lambda mock, path: _prompt_tokens(mock, instructions="Be kind.") > _prompt_tokens(mock),
        ONLY,
    ),
    Row("previous_response_id", HONOURED, "a response that is kept", [None], NO_TEXT, _continues, ONLY),
    Row("conversation", REFUSED, "nothing: no conversations are kept (404)", [None], [7], endpoints=ONLY),
    Row(
        "prompt",
        VALIDATED,
        "`id`, `version`, `variables`; it adds no text",
        [{"id": "p"}, None],
        ["a", At({}, "prompt.id")],
        endpoints=ONLY,
    ),
    Row(
        "stream",
        HONOURED,
        "true or false",
        [True, False, None],
        NO_FLAG,
        lambda mock, path: "response.completed" in _streams(mock, path),
        ONLY,
    ),
    Row(
        "stream_options",
        HONOURED,
        "`include_obfuscation`; only with `stream`",
        [{"include_obfuscation": True}, None],
        [5, At({"include_obfuscation": 1}, "stream_options.include_obfuscation")],
        lambda mock, path: "obfuscation" in _streams(mock, path, stream_options={"include_obfuscation": True}),
        ONLY,
        {"stream": True},
    ),
    Row(
        "background",
        HONOURED,
        "true or false; not with `store: false`",
        [True, False, None],
        NO_FLAG,
        lambda mock, path: mock.whole(path, background=True)["status"] == "queued",
        ONLY,
    ),
    Row("store", HONOURED, "true or false", [True, False, None], NO_FLAG, _kept, ONLY),
    Row(
        "max_output_tokens",
        HONOURED,
        "1 or more",
        [1, 5, None],
        [0, *NO_COUNT],
        lambda mock, path: _tokens(mock, max_output_tokens=3) == 3,
        ONLY,
    ),
    Row("max_tool_calls", HONOURED, "1 or more; echoed", [1, None], [0, *NO_COUNT], _echoed("max_tool_calls", 3), ONLY),
    Row(
        "min_tokens",
        HONOURED,
        "0 or more (vLLM)",
        [0, 5, None],
        NO_COUNT,
        lambda mock, path: _tokens(mock, min_tokens=15) == 15,
        ONLY,
    ),
    Row(
        "ignore_eos",
        HONOURED,
        "true or false: exactly the limit (vLLM)",
        [True, None],
        NO_FLAG,
        lambda mock, path: _tokens(mock, ignore_eos=True, max_output_tokens=40) == 40,
        ONLY,
    ),
    Row(
        "seed",
        HONOURED,
        "64-bit whole number (vLLM)",
        [0, 2**63 - 1, None],
        [2**63, 1.5, "1"],
        lambda mock, path: _text(mock, seed=1) != _text(mock, seed=2),
        ONLY,
    ),
    Row(
        "stop",
        HONOURED,
        "text, or up to 4 (vLLM)",
        ["a", ["a", "b", "c", "d"], "", None],
        [5, {}, ["a"] * 5, At(["a", ""], "stop[1]")],
        _stops,
        ONLY,
    ),
    Row("include_stop_str_in_output", HONOURED, "true or false (vLLM)", [True, None], NO_FLAG, _stops, ONLY),
    Row(
        "tools",
        HONOURED,
        "functions, custom tools; those that the API runs itself are only echoed",
        [[FUNCTION], [FUNCTION, SHELL, {"type": "web_search"}], [], None],
        [
            5,
            {},
            At([5], "tools[0]"),
            At([{"type": "hammer"}], "tools[0].type"),
            At([{"type": "function"}], "tools[0].name"),
            At([{**FUNCTION, "strict": 1}], "tools[0].strict"),
        ],
        lambda mock, path: _calls(mock, tools=[FUNCTION], tool_choice="required") == ["now"],
        ONLY,
    ),
    Row(
        "tool_choice",
        HONOURED,
        "none, auto, required, a tool, `allowed_tools`",
        ["none", "auto", "required", NAMED, {"type": "allowed_tools", "mode": "auto", "tools": [NAMED]}, None],
        [
            "any",
            5,
            At({"type": "hammer"}, "tool_choice.type"),
            At({"type": "function"}, "tool_choice.name"),
            {"type": "function", "name": "unknown"},
        ],
        lambda mock, path: _calls(mock, tools=[SHELL, FUNCTION], tool_choice=NAMED) == ["now"],
        ONLY,
        {"tools": [FUNCTION]},
    ),
    Row(
        "parallel_tool_calls",
        HONOURED,
        "true or false",
        [True, False, None],
        NO_FLAG,
        lambda mock, path: (
            len(_calls(Mock(tool_calls="3"), tools=[FUNCTION], tool_choice="required", parallel_tool_calls=False)) == 1
        ),
        ONLY,
    ),
    Row(
        "text",
        HONOURED,
        "`format` (text, json_object, json_schema), `verbosity`",
        [{}, {"format": {"type": "text"}, "verbosity": "low"}, {"format": SCHEMA}, None],
        [
            "a",
            At({"verbosity": "a"}, "text.verbosity"),
            At({"format": {"type": "xml"}}, "text.format.type"),
            At({"format": {"type": "json_schema", "schema": {}}}, "text.format.name"),
            At({"format": {"type": "json_schema", "name": "a"}}, "text.format.schema"),
        ],
        lambda mock, path: _text(mock, text={"format": SCHEMA})[0] == "{",
        ONLY,
    ),
    Row(
        "reasoning",
        HONOURED,
        "`effort`, `summary`; see `--reasoning-tokens`",
        [{}, {"effort": "high", "summary": "auto"}, None],
        ["a", At({"effort": "a"}, "reasoning.effort"), At({"summary": "a"}, "reasoning.summary")],
        _reasons,
        ONLY,
    ),
    Row(
        "include",
        HONOURED,
        "encrypted reasoning, logprobs; what only hosted tools have changes nothing",
        [[], ["web_search_call.results"], None],
        ["a", At(["all"], "include[0]")],
        _sealed,
        ONLY,
    ),
    Row("top_logprobs", HONOURED, "0 to 20; with `include`", [0, 20, None], [21, *NO_COUNT], _scores, ONLY),
    Row(
        "truncation",
        HONOURED,
        "auto drops the oldest turns; disabled",
        ["auto", "disabled", None],
        ["middle", 5],
        _drops_turns,
        ONLY,
    ),
    Row(
        "service_tier",
        HONOURED,
        "auto, default, flex, scale, priority, fast, ultrafast",
        ["auto", "flex", None],
        ["gold", 5],
        lambda mock, path: mock.whole(path, service_tier="flex")["service_tier"] == "flex",
        ONLY,
    ),
    Row(
        "temperature",
        HONOURED,
        "0 to 2; echoed",
        [0, 2, None],
        [-0.1, 2.1, *NO_NUMBER],
        _echoed("temperature", 0.5),
        ONLY,
    ),
    Row("top_p", HONOURED, "0 to 1; echoed", [0, 1, None], [-0.1, 1.1, *NO_NUMBER], _echoed("top_p", 0.5), ONLY),
    Row(
        "metadata",
        HONOURED,
        "as in chat; echoed",
        [{}, {"k" * 64: "v" * 512}, None],
        ["a", {"a": 1}, {"k" * 65: "v"}, {str(k): "v" for k in range(17)}],
        _echoed("metadata", {"a": "b"}),
        ONLY,
    ),
    Row("user", HONOURED, "text; echoed", ["a", None], NO_TEXT, _echoed("user", "me"), ONLY),
    Row(
        "safety_identifier",
        HONOURED,
        "up to 128 characters; echoed",
        ["a" * 128, None],
        ["a" * 129, *NO_TEXT],
        _echoed("safety_identifier", "me"),
        ONLY,
    ),
    Row(
        "prompt_cache_key",
        HONOURED,
        "up to 64 characters; echoed",
        ["a" * 64, None],
        ["a" * 65, *NO_TEXT],
        _echoed("prompt_cache_key", "me"),
        ONLY,
    ),
    Row(
        "prompt_cache_retention",
        HONOURED,
        "in_memory, 24h; echoed",
        ["24h", None],
        ["1h", 5],
        _echoed("prompt_cache_retention", "24h"),
        ONLY,
    ),
]
