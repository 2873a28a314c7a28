"""`--lenient`: what the API would refuse is left out, so that the rest is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.dialects.lenient import without_field
from tests.test_responses_routes import Client


@pytest.mark.parametrize(
    ("body", "param", "expected"),
    [
        ({"model": "m", "temperature": 9}, "temperature", {"model": "m"}),
        ({"model": "m", "text": {"format": {"type": "x"}}}, "text.format.type", {"model": "m"}),
        ({"model": "m", "tools": [{}], "n": 1}, "tools[0].name", {"model": "m", "n": 1}),
        ({"model": "m"}, "temperature", None),
        ({"model": "m"}, None, None),
        ({"model": 7}, "model", None),
        ({"input": 7}, "input", None),
        ({"messages": {}}, "messages[0]", None),
        ({"messages": [7, "a"]}, "messages[0]", {"messages": ["a"]}),
        ({"messages": [{"role": "tool"}]}, "messages[0].tool_call_id", {"messages": []}),
        ({"input": [{"a": [1, 2]}]}, "input[0].a[1]", {"input": [{"a": [1]}]}),
        ([7], "temperature", None),
    ],
)
def test_the_field_at_fault_is_left_out(body: Any, param: str | None, expected: Any) -> None:
    shorter = without_field(json.dumps(body).encode(), param)
    assert (None if shorter is None else json.loads(shorter)) == expected


def test_what_is_no_json_is_left_alone() -> None:
    assert without_field(b"{", "temperature") is None


EVERYTHING_AT_ONCE: dict[str, Any] = {
    "input": "string",
    "instructions": "instructions",
    "background": True,
    "store": False,
    "conversation": "string",
    "previous_response_id": "previous_response_id",
    "include": ["file_search_call.results", "everything"],
    "max_output_tokens": 0,
    "max_tool_calls": 0,
    "metadata": {"a": 1},
    "prompt_cache_retention": "for ever",
    "reasoning": {"effort": "immense"},
    "service_tier": "gold",
    "stream": False,
    "stream_options": {"include_obfuscation": True},
    "temperature": -1,
    "top_logprobs": 99,
    "top_p": 7,
    "text": {"format": {"type": "xml"}},
    "tool_choice": {"type": "function", "name": "missing"},
    "tools": [{"type": "hammer"}],
    "truncation": "middle",
}


def test_a_request_full_of_contradictions_is_answered() -> None:
    assert Client().ask("POST", "/v1/responses", EVERYTHING_AT_ONCE).status == 400
    asked = Client(lenient=True).ask("POST", "/v1/responses", EVERYTHING_AT_ONCE)
    assert asked.status == 200
    assert asked.json["instructions"] == "instructions"


@pytest.mark.parametrize("body", [{"input": 7}, {"input": None}, {"input": "hi", "model": 7}])
def test_some_input_and_a_model_are_still_needed(body: dict[str, Any]) -> None:
    assert Client(lenient=True).ask("POST", "/v1/responses", body).status == 400


def test_an_unknown_model_is_still_refused_where_that_was_asked_for() -> None:
    client = Client(lenient=True, strict_model=True)
    assert client.ask("POST", "/v1/responses", {"input": "hi"}).status == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "stream_options": {"include_usage": True},
                "temperature": 9,
                "n": 0,
                "max_tokens": 0,
                "logprobs": 7,
                "response_format": {"type": "xml"},
                "tool_choice": {"type": "function", "function": {"name": "missing"}},
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "hammer"}}}],
            },
        ),
        ("/v1/completions", {"prompt": "hi", "logprobs": 99, "best_of": -1, "n": 3, "max_tokens": -1, "echo": 7}),
    ],
)
def test_every_dialect_is_lenient(path: str, body: dict[str, Any]) -> None:
    assert Client().ask("POST", path, body).status == 400
    assert Client(lenient=True).ask("POST", path, body).status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/responses", {"input": "hi"}),
    ],
)
def test_more_stop_sequences_than_the_api_takes_are_all_looked_for(path: str, body: dict[str, Any]) -> None:
    def text(stop: list[str]) -> str:
        reply = Client(lenient=True).ask("POST", path, body | {"stop": stop}).json
        part = reply["output"][0]["content"][0] if "output" in reply else reply["choices"][0]
        found = part["text"] if "text" in part else part["message"]["content"]
        assert isinstance(found, str)
        return found

    stops = ["☃", "☂", "☀", "☁", text([]).split()[3]]
    assert Client().ask("POST", path, body | {"stop": stops}).status == 400
    assert text(stops) == text(stops[4:]) != text([])
