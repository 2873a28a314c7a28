"""Every object against a JSON schema made of the official SDK's own types.

The schemas know what an SDK in another language, generated from the same description, would refuse. Where the API
itself sends what its description has no room for, `KNOWN` says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from jsonschema import Draft202012Validator
from openai.types import Completion, CreateEmbeddingResponse, Model, ModerationCreateResponse
from openai.types.audio import Transcription, TranscriptionVerbose, Translation
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent
from openai.types.shared import ErrorObject

from tests.answers import CHAT, COMPLETIONS, RESPONSES, Json, Mock
from tests.asking import Answer, Asker
from tests.parameter_rows import NAMED, SHELL, TOOL
from tests.responses_answers import read_frame

KNOWN: dict[str, str] = {
    "Completion: choices.#.finish_reason: None": "a chunk before a choice's last one, as OpenAI and vLLM send it",
    "Completion: choices.#.logprobs.token_logprobs.#: None": "the first token of an echoed prompt, as OpenAI sends it",
    "ChatCompletionChunk: choices.#.delta.tool_calls.#.type: 'custom'": "a custom tool's call; whole replies know it",
}
"""What the types have no room for; with strict validation on, the SDK raises there."""


@functools.cache
def validator(kind: Any) -> Draft202012Validator:
    return Draft202012Validator(pydantic.TypeAdapter(kind).json_schema())


def faults(kind: Any, value: Any) -> list[str]:
    """What the schema refuses, without what is known."""
    return [fault for fault in all_faults(kind, value) if fault not in KNOWN]


def all_faults(kind: Any, value: Any) -> list[str]:
    """What the schema refuses, e.g. `Completion: choices.#.text: 5`."""
    found = []
    for error in leaves(validator(kind).iter_errors(value)):
        place = ".".join("#" if isinstance(step, int) else step for step in error.absolute_path)
        found.append(f"{getattr(kind, '__name__', 'event')}: {place}: {error.instance!r:.80}")
    return found


def leaves(errors: Iterator[Any]) -> Iterator[Any]:
    """Errors with the places that are wrong inside unions, not just the unions."""
    for error in errors:
        deepest = max(error.context or (), key=lambda inner: len(inner.absolute_path), default=None)
        if deepest is None or len(deepest.absolute_path) <= len(error.absolute_path):
            yield error
        else:
            yield from leaves(iter([deepest]))


FUNCTION: Json = {"name": "now", "parameters": {"type": "object", "properties": {}}}
FLAT: Json = {"type": "function", **FUNCTION, "strict": False}

CHATS: list[tuple[Json, Json]] = [
    ({}, {}),
    ({}, {"n": 2, "max_tokens": 3, "service_tier": "flex", "seed": 4}),
    ({}, {"logprobs": True, "top_logprobs": 2, "stop": "the"}),
    ({}, {"logprobs": True}),
    ({"tool_calls": "2"}, {"tools": [TOOL, SHELL], "tool_choice": "required"}),
    ({}, {"tools": [TOOL], "tool_choice": NAMED, "max_completion_tokens": 2}),
    ({}, {"functions": [FUNCTION], "function_call": {"name": "now"}}),
    ({"refusal_probability": 1.0}, {"logprobs": True, "top_logprobs": 1}),
    ({"content_filter_probability": 1.0}, {}),
    ({}, {"reasoning_effort": "low", "return_token_ids": True}),
    ({}, {"response_format": {"type": "json_object"}, "prediction": None}),
    ({}, {"prediction": {"type": "content", "content": "A"}}),
]
TEXTS: list[tuple[Json, Json]] = [
    ({}, {}),
    ({}, {"prompt": ["a", "b"], "n": 2, "best_of": 2, "max_tokens": 3}),
    ({}, {"logprobs": 2, "echo": True}),
    ({}, {"logprobs": 0, "return_token_ids": True, "stop_token_ids": [5]}),
]
NATIVE: list[tuple[Json, Json]] = [
    ({}, {"instructions": "Be brief.", "metadata": {"a": "b"}, "user": "u"}),
    ({}, {"max_output_tokens": 3}),
    ({"content_filter_probability": 1.0}, {}),
    ({"tool_calls": "2"}, {"tools": [FLAT, {"type": "custom", "name": "sh"}], "tool_choice": "required"}),
    ({}, {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}),
    ({}, {"reasoning": {"effort": "low"}}),
    ({}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
    ({"refusal_probability": 1.0}, {}),
    ({}, {"text": {"format": {"type": "json_object"}, "verbosity": "low"}, "truncation": "auto"}),
]


@pytest.mark.parametrize(("config", "body"), CHATS)
def test_chat(config: Json, body: Json) -> None:
    mock = Mock(**config)
    assert faults(ChatCompletion, mock.whole(CHAT, **body)) == []
    asked = body | {"stream_options": {"include_usage": True, "include_obfuscation": True}}
    for chunks in (mock.chunks(CHAT, **body), mock.chunks(CHAT, **asked)):
        assert [fault for chunk in chunks for fault in faults(ChatCompletionChunk, chunk)] == []


@pytest.mark.parametrize(("config", "body"), TEXTS)
def test_completions(config: Json, body: Json) -> None:
    mock = Mock(**config)
    assert faults(Completion, mock.whole(COMPLETIONS, **body)) == []
    chunks = mock.chunks(COMPLETIONS, **{key: value for key, value in body.items() if key != "best_of"})
    assert [fault for chunk in chunks for fault in faults(Completion, chunk)] == []


@pytest.mark.parametrize(("config", "body"), NATIVE)
def test_responses(config: Json, body: Json) -> None:
    mock = Mock(**config)
    assert faults(Response, mock.whole(RESPONSES, **body)) == []
    asked = {"model": "m", "input": "Hello", "stream": True, "stream_options": {"include_obfuscation": True}}
    _, _, timeline = mock.send(RESPONSES, asked | body)
    events = [read_frame(frame) for frame in [*timeline.preamble, *timeline.render(0, timeline.steps)]]
    assert [fault for event in events for fault in faults(ResponseStreamEvent, event)] == []


def test_what_is_stored() -> None:
    asker = Asker()
    made = asker.post("/v1/responses", input="Hello", background=True).json
    assert made["status"] == "queued"
    assert faults(Response, made) == []
    assert faults(Response, asker.ask(f"/v1/responses/{made['id']}").json) == []
    assert faults(ResponseItemList, asker.ask(f"/v1/responses/{made['id']}/input_items").json) == []


def test_models() -> None:
    asker = Asker(served_model_name=("one", "two"))
    listed = asker.ask("/v1/models").json
    assert [fault for card in listed["data"] for fault in faults(Model, card)] == []
    assert faults(Model, asker.ask("/v1/models/two").json) == []


@pytest.mark.parametrize("body", [{"input": "a"}, {"input": [[1, 2], [3]], "dimensions": 4}])
def test_embeddings(body: Json) -> None:
    assert faults(CreateEmbeddingResponse, Asker().post("/v1/embeddings", **body).json) == []


def test_moderations() -> None:
    assert faults(ModerationCreateResponse, Asker().post("/v1/moderations", input=["a", "b"]).json) == []


@pytest.mark.parametrize(
    ("path", "format", "kind"),
    [
        ("transcriptions", "json", Transcription),
        ("transcriptions", "verbose_json", TranscriptionVerbose),
        ("translations", "json", Translation),
    ],
)
def test_audio(path: str, format: str, kind: Any) -> None:
    fields = {"model": "m", "response_format": format}
    parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
    parts.append('--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b--\r\n')
    headers = {b"content-type": b"multipart/form-data; boundary=b"}
    answer = Asker().ask(f"/v1/audio/{path}", "".join(parts).encode(), headers)
    assert answer.status == 200
    assert faults(kind, answer.json) == []


def refused() -> list[Answer]:
    strict = Asker(strict_model=True, api_key=("k",))
    return [
        Asker().ask("/v1/chat/completions", b"{"),
        Asker().post("/v1/chat/completions", messages=[{"role": "user"}]),
        Asker().post("/v1/responses", input="Hello", previous_response_id="resp_no"),
        Asker().ask("/v1/models/nobody"),
        Asker().ask("/v1/no-such-path"),
        Asker().ask("/v1/chat/completions"),
        strict.ask("/v1/models"),
        strict.ask("/v1/models", headers={b"authorization": b"Bearer x"}),
    ]


def test_errors() -> None:
    answers = refused()
    assert [answer.status for answer in answers] == [400, 400, 400, 404, 404, 405, 401, 401]
    assert [fault for answer in answers for fault in faults(ErrorObject, answer.json["error"])] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("choices", 0, "finish_reason"), "done"),
        (("choices", 0, "message", "role"), "user"),
        (("usage", "prompt_tokens"), "5"),
        (("id",), None),
    ],
)
def test_a_wrong_object_is_seen(path: tuple[str | int, ...], value: object) -> None:
    reply = Mock().whole(CHAT)
    inside: Any = reply
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    place = ".".join("#" if isinstance(step, int) else step for step in path)
    assert faults(ChatCompletion, reply) == [f"ChatCompletion: {place}: {value!r}"]


def test_what_is_known_is_still_sent() -> None:
    """An entry that nothing needs any more has to go."""
    mock = Mock()
    texts = [mock.whole(COMPLETIONS, logprobs=1, echo=True), *mock.chunks(COMPLETIONS)]
    found = {fault for reply in texts for fault in all_faults(Completion, reply)}
    chunks = mock.chunks(CHAT, tools=[SHELL], tool_choice="required")
    found |= {fault for chunk in chunks for fault in all_faults(ChatCompletionChunk, chunk)}
    assert found == set(KNOWN)
