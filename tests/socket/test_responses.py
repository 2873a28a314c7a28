"""The Responses API as the official SDK uses it, against a live server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import openai
import pytest
from pydantic import BaseModel

from mockllm import Config, ServerThread
from tests.invariants import sdk_violations, violations
from tests.responses_answers import read_frame

TOOL: openai.types.responses.FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(Config(port=0, ttft_ms=2, itl_ms=0.1, output_tokens=20)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="none", _strict_response_validation=True) as sdk:
        yield sdk


def frames_of(server: ServerThread, **body: object) -> list[bytes]:
    """The events as they came over the wire."""
    reply = httpx.post(f"{server.base_url}/responses", json={"model": "m", "stream": True, **body})
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    return [frame + b"\n\n" for frame in reply.content.removesuffix(b"\n\n").split(b"\n\n")]


def test_a_whole_reply(client: openai.OpenAI) -> None:
    reply = client.responses.create(model="m", instructions="Be brief.", input="What is new?")
    assert (reply.status, reply.model, reply.instructions) == ("completed", "m", "Be brief.")
    assert reply.output_text
    assert reply.usage is not None
    assert reply.usage.output_tokens == 20


def test_a_stream_ends_in_what_a_whole_reply_holds(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="m", input="What is new?")
    with client.responses.stream(model="m", input="What is new?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == whole.output_text
    assert len(deltas) == 20
    ignored = {"id", "created_at", "completed_at"}
    ours = whole.model_dump(exclude=ignored | {"output"})
    assert final.model_dump(include=set(ours)) == ours


@pytest.mark.parametrize(
    "body",
    [
        {"input": "hi"},
        {"input": "hi", "max_output_tokens": 3},
        {"input": "hi", "tools": [TOOL], "tool_choice": "required"},
        {"input": "hi", "tools": [{"type": "custom", "name": "sh"}], "tool_choice": {"type": "custom", "name": "sh"}},
        {"input": "hi", "reasoning": {"effort": "low", "summary": "auto"}},
        {"input": "hi", "stream_options": {"include_obfuscation": True}},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
    ],
)
def test_the_wire_holds_sound_events(server: ServerThread, body: dict[str, object]) -> None:
    events = [read_frame(frame) for frame in frames_of(server, **body)]
    assert violations(events) == []
    assert sdk_violations(events) == []


def test_a_tool_is_called_and_its_output_answered(client: openai.OpenAI) -> None:
    first = client.responses.create(
        model="m", input="How is the weather?", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"}
    )
    (call,) = first.output
    assert call.type == "function_call"
    assert isinstance(json.loads(call.arguments), dict)
    second = client.responses.create(
        model="m",
        previous_response_id=first.id,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}],
    )
    assert second.previous_response_id == first.id
    assert second.output_text


def test_output_items_can_be_sent_back_as_input(client: openai.OpenAI) -> None:
    first = client.responses.create(model="m", input="hi", store=False)
    again = client.responses.create(
        model="m",
        input=[{"role": "user", "content": "hi"}, *first.output, {"role": "user", "content": "and?"}],  # type: ignore[list-item]  # the SDK's own advice, unknown to its types
    )
    assert again.output_text


def test_background_responses_are_polled(server: ServerThread) -> None:
    async def poll() -> list[str]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
            response = await client.responses.create(model="m", input="hi", background=True)
            seen = [str(response.status)]
            while response.status in ("queued", "in_progress"):
                response = await client.responses.retrieve(response.id)
                seen.append(str(response.status))
            assert response.output_text
            return seen

    seen = asyncio.run(poll())
    assert (seen[0], seen[-1]) == ("queued", "completed")


def test_a_stored_response_is_read_listed_and_deleted(client: openai.OpenAI) -> None:
    created = client.responses.create(model="m", input="hi", background=True)
    with client.responses.retrieve(created.id, stream=True) as stream:
        events = list(stream)
    with client.responses.retrieve(created.id, stream=True, starting_after=3) as stream:
        assert list(stream) == events[4:]
    final = client.responses.retrieve(created.id)
    assert events[-1].type == "response.completed"
    assert events[-1].response == final
    assert [item.type for item in client.responses.input_items.list(created.id)] == ["message"]
    assert client.responses.cancel(created.id) == final
    client.responses.delete(created.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(created.id)


class Person(BaseModel):
    """What a reply is parsed into."""

    name: str
    age: int


def test_a_reply_is_parsed_into_a_model(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(model="m", input="Who is it?", text_format=Person).output_parsed
    assert isinstance(parsed, Person)
    with client.responses.stream(model="m", input="Who is it?", text_format=Person) as stream:
        assert stream.get_final_response().output_parsed == parsed


def test_errors_reach_the_client_as_the_sdk_knows_them(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="m", input="hi", previous_response_id="resp_no")
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
