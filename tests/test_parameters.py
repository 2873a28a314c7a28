"""Each row of the table of parameters is true, and the README shows it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mockllm.dialects.chat_request import ChatRequest
from mockllm.dialects.completions_request import CompletionRequest
from mockllm.dialects.responses.request import ResponsesRequest
from tests.answers import CHAT, COMPLETIONS, INPUT, RESPONSES, Json, Mock
from tests.flag_table import README
from tests.parameter_rows import HONOURED, NAMED, REFUSED, TOOL, USER, VALIDATED, At, Row
from tests.parameter_table import ROWS, with_table

STRICT = Mock()
LENIENT = Mock(lenient=True)
INPUTS = {CHAT: ("model", "messages"), COMPLETIONS: ("model", "prompt"), RESPONSES: ("model", "input")}
CASES = [pytest.param(row, path, id=f"{path.split('/')[2]}-{row.name}") for row in ROWS for path in row.endpoints]
every_row = pytest.mark.parametrize(("row", "path"), CASES)


def send(mock: Mock, path: str, body: Json) -> tuple[int, Any]:
    status, streamed, timeline = mock.send(path, {"model": "m"} | INPUT[path] | body)
    content = b"".join(timeline.render(0, timeline.steps))
    return status, content if streamed else json.loads(content)


def refusal(path: str, body: Json) -> str:
    """The place that the refusal of a body names."""
    status, reply = send(STRICT, path, body)
    assert status == 400, body
    error = reply["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_request")
    assert error["message"]
    return str(error["param"])


def said(reply: Json) -> Any:
    """What a reply says, apart from what is unique in it."""
    if "choices" in reply:
        return reply["choices"], reply["usage"]
    return [item["content"] for item in reply["output"]], reply["usage"]


@every_row
def test_good_values_are_accepted(row: Row, path: str) -> None:
    for value in row.good:
        status, reply = send(STRICT, path, row.beside | {row.name: value})
        assert status == 200, (value, reply)


@every_row
def test_bad_values_are_refused_with_their_place(row: Row, path: str) -> None:
    for bad in row.bad:
        value, place = (bad.value, bad.place) if isinstance(bad, At) else (bad, row.name)
        assert refusal(path, row.beside | {row.name: value}) == place, value


@every_row
def test_lenient_servers_accept_bad_values_too(row: Row, path: str) -> None:
    for bad in row.bad:
        value = bad.value if isinstance(bad, At) else bad
        status, reply = send(LENIENT, path, row.beside | {row.name: value})
        assert status == 200 or row.name in INPUTS[path], (value, reply)


@every_row
def test_what_becomes_of_it(row: Row, path: str) -> None:
    assert (row.proof is not None) == (row.kind == HONOURED)
    if row.proof is not None:
        assert row.proof(STRICT, path)
    elif row.kind == VALIDATED:
        plain = send(STRICT, path, row.beside)[1]
        for value in row.good:
            reply = send(STRICT, path, row.beside | {row.name: value})[1]
            assert said(reply) == said(plain)
    else:
        assert row.kind == REFUSED
        assert row.good == [None]


@pytest.mark.parametrize(
    ("path", "struct"), [(CHAT, ChatRequest), (COMPLETIONS, CompletionRequest), (RESPONSES, ResponsesRequest)]
)
def test_the_table_has_exactly_the_fields_that_are_read(path: str, struct: type[msgspec.Struct]) -> None:
    named = [row.name for row in ROWS if path in row.endpoints]
    assert sorted([*named, "mockllm"]) == sorted(field.encode_name for field in msgspec.structs.fields(struct))


def test_the_readme_shows_the_table() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_table(text) == text, "run `python -m tests.parameter_table`"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
def test_unknown_fields_pass(path: str) -> None:
    plain, odd = send(STRICT, path, {}), send(STRICT, path, {"surprise": [1, {}], "temprature": "hot"})
    assert odd[0] == 200
    assert said(odd[1]) == said(plain[1])


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        (CHAT, {"stream_options": {"include_usage": True}}, "stream_options"),
        (CHAT, {"stream_options": {"include_usage": False}, "stream": False}, "stream_options"),
        (COMPLETIONS, {"stream_options": {"include_usage": True}}, "stream_options"),
        (CHAT, {"top_logprobs": 2}, "top_logprobs"),
        (CHAT, {"top_logprobs": 2, "logprobs": False}, "top_logprobs"),
        (CHAT, {"logprob_token_ids": [1]}, "logprob_token_ids"),
        (CHAT, {"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        (COMPLETIONS, {"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        (CHAT, {"min_tokens": 5, "max_completion_tokens": 4}, "min_tokens"),
        (COMPLETIONS, {"min_tokens": 17}, "min_tokens"),
        (COMPLETIONS, {"n": 3, "best_of": 2}, "best_of"),
        (COMPLETIONS, {"n": 1, "best_of": 2, "stream": True}, "best_of"),
        (CHAT, {"tool_choice": "auto"}, "tool_choice"),
        (CHAT, {"tool_choice": NAMED}, "tool_choice"),
        (CHAT, {"function_call": "auto"}, "function_call"),
        (CHAT, {"tools": [TOOL], "functions": [{"name": "a"}]}, "functions"),
        (CHAT, {"add_generation_prompt": True, "continue_final_message": True}, "continue_final_message"),
        (CHAT, {"prediction": {"content": "a"}, "n": 2}, "prediction"),
        (CHAT, {"prediction": {"content": "a"}, "logprobs": True}, "prediction"),
        (CHAT, {"prediction": {"content": "a"}, "presence_penalty": 0.1}, "prediction"),
        (CHAT, {"prediction": {"content": "a"}, "tools": [TOOL]}, "prediction"),
        (CHAT, {"guided_json": {}, "guided_regex": "a"}, "guided_regex"),
        (CHAT, {"structured_outputs": {"choice": ["a"]}, "tools": [TOOL], "tool_choice": NAMED}, "structured_outputs"),
    ],
)  # fmt: skip
def test_fields_that_contradict_each_other_are_refused(path: str, body: Json, place: str) -> None:
    assert refusal(path, body) == place
    assert send(LENIENT, path, body)[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"tool_choice": "none"}),
        (CHAT, {"parallel_tool_calls": True}),
        (CHAT, {"top_logprobs": 0}),
        (CHAT, {"stream_options": {}}),
        (CHAT, {"stream_options": None, "stream": True}),
        (CHAT, {"max_tokens": 50, "max_completion_tokens": 4}),
        (CHAT, {"n": 2, "temperature": 0}),
        (CHAT, {"prediction": {"content": "a"}, "presence_penalty": -1}),
        (COMPLETIONS, {"n": 2, "best_of": 2, "stream": True}),
        (COMPLETIONS, {"max_tokens": 0, "echo": True, "logprobs": 1}),
        (
            COMPLETIONS,
            {
                "stream": True,
                "stream_options": {"include_usage": True},
                "max_tokens": 1,
                "max_completion_tokens": 1,
                "stop": None,
                "ignore_eos": True,
            },
        ),
    ],
)
def test_what_only_looks_contradictory_is_accepted(path: str, body: Json) -> None:
    assert send(STRICT, path, body)[0] == 200


class TestLenient:
    def test_every_stop_sequence_counts(self) -> None:
        text = STRICT.text()
        stop = ["no such word"] * 5 + [text.split()[3]]
        assert STRICT.error(CHAT, stop=stop)["param"] == "stop"
        assert LENIENT.text(stop=stop) == text[: text.index(stop[-1])]

    def test_a_message_without_what_its_role_needs_is_left_out(self) -> None:
        messages = [USER, {"role": "tool", "content": "4"}, {"role": "user", "content": [{"type": "hologram"}, "a"]}]
        assert LENIENT.text(messages=messages) == STRICT.text(messages=[USER, {"role": "user", "content": ["a"]}])

    @pytest.mark.parametrize("messages", [None, [], 5, [5], [{"role": "tool", "content": "4"}]])
    def test_some_input_is_needed(self, messages: Any) -> None:
        assert send(LENIENT, CHAT, {"messages": messages})[0] == 400

    def test_what_is_fine_is_read_alike(self) -> None:
        body = {"n": 2, "seed": 4, "max_tokens": 5}
        assert send(LENIENT, CHAT, body)[1]["choices"] == send(STRICT, CHAT, body)[1]["choices"]
