"""Whatever a request asks for: its stream amounts to its whole reply, and usage counts what was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.dialects.chat_request import ChatRequest
from mockllm.dialects.chat_stream import ChatWriter
from mockllm.dialects.dialect import Context, StepStream
from mockllm.generation.plan import Choice, GenerationRequest, Plan, Prompt, Segment
from tests.answers import CHAT, COMPLETIONS, Json, Mock, assemble, generated

MOCKS = [
    Mock(),
    Mock(output_tokens=30, output_tokens_std=20, reasoning_tokens={"default": 7}, seed=5),
    Mock(tool_call_probability=0.5, tool_calls="1-3", refusal_probability=0.3, content_filter_probability=0.2),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["°C", "°F"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    },
    "required": ["city", "unit"],
}
FUNCTION = {"name": "get_weather", "parameters": SCHEMA}
TOOLS = [
    {"type": "function", "function": FUNCTION},
    {"type": "function", "function": {"name": "now"}},
    {"type": "custom", "custom": {"name": "shell"}},
]
TOOL_CHOICES: list[Any] = [
    "none",
    "auto",
    "required",
    {"type": "function", "function": {"name": "now"}},
    {"type": "custom", "custom": {"name": "shell"}},
    {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "custom", "custom": {"name": "shell"}}]},
    },
]
FORMATS: list[Any] = [
    {"type": "text"},
    {"type": "json_object"},
    {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}},
]


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Bodies with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


COMMON: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(1, 3),
    "max_tokens": st.integers(1, 40),
    "min_tokens": st.integers(0, 20),
    "ignore_eos": st.booleans(),
    "seed": st.integers(0, 3),
    "stop": st.sampled_from(["a", "e", ".", "the", " o", [" a", "s,"]]),
    "include_stop_str_in_output": st.booleans(),
    "stream_interval": st.integers(1, 7),
    "return_token_ids": st.booleans(),
    "response_format": st.sampled_from(FORMATS),
}
CHAT_BODIES = some(
    **COMMON,
    tools=st.just(TOOLS),
    parallel_tool_calls=st.booleans(),
    reasoning_effort=st.sampled_from(["none", "minimal", "low"]),
)
COMPLETION_BODIES = some(
    **COMMON,
    prompt=st.sampled_from(["Hi", ["One", "Two"], [1, 2, 3], [[72, 105], "Text"], "Zoë said: 水"]),
    echo=st.booleans(),
    logprobs=st.integers(0, 5),
    guided_choice=st.just(["yes", "no", "perhaps, “maybe”"]),
)
CUTS = st.lists(st.integers(1, 60), max_size=4)


def check(mock: Mock, path: str, body: Json, cuts: list[int]) -> Json:
    if "min_tokens" in body:  # more than the limit would be refused
        limit = body.get("max_tokens", 16 if path == COMPLETIONS else 20)
        body = body | {"min_tokens": min(body["min_tokens"], limit)}
    whole = mock.whole(path, **body)
    streamed = assemble(mock.chunks(path, *cuts, **body))
    assert streamed["usage"] == whole["usage"]
    assert len(streamed["choices"]) == len(whole["choices"])
    for ours, theirs in zip(streamed["choices"], whole["choices"], strict=True):
        for choice in (ours, theirs):
            message = choice.get("message", {})
            if not any((choice["logprobs"] or {}).values()):
                choice["logprobs"] = None  # of no tokens
            for call in message.get("tool_calls", ()):
                assert call.pop("id").startswith("call_")  # unique, and so no part of the answer
            message["content"] = message.get("content") or None
            choice["token_ids"] = choice.get("token_ids") or []
            choice.pop("prompt_token_ids", None)  # of a whole chat reply, they stand beside the choices
        assert ours == theirs
    return whole


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(MOCKS), CHAT_BODIES, st.sampled_from(TOOL_CHOICES), st.integers(-1, 4), CUTS)
def test_a_chat_stream_amounts_to_the_whole_reply(
    mock: Mock, body: Json, tool_choice: Any, top_logprobs: int, cuts: list[int]
) -> None:
    if "tools" in body:
        body = body | {"tool_choice": tool_choice}
    if top_logprobs >= 0:
        body = body | {"logprobs": True, "top_logprobs": top_logprobs}
    whole = check(mock, CHAT, body, cuts)
    for choice in whole["choices"]:
        if body.get("logprobs") and choice["message"]["content"]:
            tokens = [entry["token"] for entry in choice["logprobs"]["content"]]
            assert "".join(tokens) == choice["message"]["content"]
    if "stop" not in body:
        assert sum(map(generated, whole["choices"])) == whole["usage"]["completion_tokens"]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(MOCKS), COMPLETION_BODIES, CUTS)
def test_a_completions_stream_amounts_to_the_whole_reply(mock: Mock, body: Json, cuts: list[int]) -> None:
    if "guided_choice" in body:
        body = {key: value for key, value in body.items() if key != "response_format"}
    whole = check(mock, COMPLETIONS, body, cuts)
    for choice in whole["choices"]:
        logprobs = choice["logprobs"]
        if logprobs is not None:
            assert "".join(logprobs["tokens"]) == choice["text"]
            for offset, token in zip(logprobs["text_offset"], logprobs["tokens"], strict=True):
                assert choice["text"][offset : offset + len(token)] == token
    if "stop" not in body and not body.get("echo"):
        assert sum(map(generated, whole["choices"])) == whole["usage"]["completion_tokens"]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(MOCKS), CHAT_BODIES, st.integers(1, 30))
def test_the_limit_only_cuts(mock: Mock, body: Json, limit: int) -> None:
    """The first tokens are the same at any limit."""
    body = body | {"n": 1, "ignore_eos": False, "min_tokens": 0}
    long, short = (mock.message(**body | {"max_tokens": tokens}) for tokens in (limit + 20, limit))
    for key in ("content", "refusal", "reasoning_content"):
        assert (long.get(key) or "").startswith(short.get(key) or "")
    for theirs, ours in zip(long.get("tool_calls", ()), short.get("tool_calls", ()), strict=False):
        kind = ours["type"]
        assert json.dumps(theirs[kind])[:-2].startswith(json.dumps(ours[kind])[:-2])


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 5, 6)])
def test_a_stream_interval_is_the_tokens_of_a_chunk(path: str, cuts: tuple[int, ...]) -> None:
    """The first token goes alone, and what is left at the end waits no longer."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = Mock(output_tokens=12).chunks(path, *cuts, stream_interval=4, stream_options=options)
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks if chunk["choices"]]
    assert counts == [0] * (path == CHAT) + [1, 5, 9, 12, 12]


def test_a_stream_interval_holds_for_reasoning_under_two_names() -> None:
    mock = Mock(output_tokens=3, reasoning_tokens={"default": 6}, reasoning_field="both")
    deltas = [chunk["choices"][0]["delta"] for chunk in mock.chunks(CHAT, 2, 4, stream_interval=3)[1:-2]]
    reasoning = [delta["reasoning"] for delta in deltas if "reasoning" in delta]
    assert [delta["reasoning_content"] for delta in deltas if "reasoning" in delta] == reasoning
    assert [len(text.split()) for text in reasoning] == [1, 3, 2]
    assert len(deltas) == len(reasoning) + 2


def test_other_settings_of_one_seed_give_the_same_text() -> None:
    plain = Mock().text(max_tokens=6)
    assert Mock().text(max_tokens=6, logprobs=True) == plain
    assert Mock().text(max_tokens=6, stop="☃") == plain
    assert Mock().text(max_tokens=6, temperature=0.3, user="somebody") == plain
    assert Mock().text(max_tokens=6, seed=1) != plain
    assert Mock(seed=1).text(max_tokens=6) == Mock().text(max_tokens=6, seed=1)


ODD = 'a%b %d\n\t"é水🌟\u2028\\'
ODD_SCHEMA = {"type": "object", "properties": {"n": {"const": 10**25}, "s": {"const": ODD}}, "required": ["n", "s"]}
ODD_TOOL = {"type": "function", "function": {"name": "f", "parameters": ODD_SCHEMA}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"guided_choice": [""]}),
        (CHAT, {"guided_choice": [ODD], "logprobs": True, "top_logprobs": 3}),
        (CHAT, {"tools": [ODD_TOOL], "tool_choice": "required", "return_token_ids": True}),
        (CHAT, {"messages": [{"role": "user", "content": ODD}], "prompt_logprobs": 20}),
        (COMPLETIONS, {"prompt": ODD, "echo": True, "logprobs": 5, "max_tokens": 0}),
        (COMPLETIONS, {"prompt": "", "echo": True, "logprobs": 1, "max_tokens": 0}),
        (COMPLETIONS, {"prompt": "", "prompt_logprobs": 1}),
        (COMPLETIONS, {"prompt": [55357, 56832], "echo": True, "logprobs": 2, "return_token_ids": True}),
    ],
)
def test_odd_texts(path: str, body: Json) -> None:
    """Escapes, formats, halves of surrogate pairs, and nothing at all."""
    for mock in MOCKS:
        whole = mock.whole(path, **body)
        if "prompt_logprobs" not in body:
            assert assemble(mock.chunks(path, 1, **body))["usage"] == whole["usage"]


def test_steps_between_constants_are_what_the_writer_would_write() -> None:
    request = GenerationRequest("m", (Prompt(),), stream=True)
    context = Context("chatcmpl-1", 17, ChatRequest(messages=[]), request, _plan(40))
    plain = StepStream(context.plan, ChatWriter(context, True, ("reasoning_content",)))
    writer = ChatWriter(context, True, ("reasoning_content",))
    quick = StepStream(context.plan, writer, writer.around)
    for first, upto in [(0, 1), (1, 2), (2, 3), (3, 17), (17, 39), (39, 40)]:
        assert quick.render(first, upto) == plain.render(first, upto)


def _plan(tokens: int) -> Plan:
    pieces = [b"" if number == 9 else b" %d" % number for number in range(tokens)]
    choice = Choice(0, (Segment("text", pieces),), "stop", tokens, bytes(16))
    return Plan((choice,), 1, tokens, 0.0, [0.0] * tokens)
