"""The official SDK: chat and Responses, as it comes and with strict validation of every reply.

What it needed that the API reference does not say:

- Embeddings are asked for as base64 unless `encoding_format` is given, and decoded by the SDK. With
  strict validation it refuses its own base64, since its type says numbers: ask for floats there.
- `chat.completions.stream` builds its final completion out of the deltas, and refuses a choice
  whose `finish_reason` is `length` where it was asked to parse.
- An error in the middle of a chat stream is raised, but in a Responses stream it is an event like
  the others: there the caller has to look for it.
- With strict validation, enumerations are closed: an unknown `service_tier`, say, would be an error.
"""

from __future__ import annotations

import json

import openai
from harness import (
    BASE,
    BROKEN,
    KEY,
    MODEL,
    PERSON_SCHEMA,
    QUESTION,
    TOKENS,
    WEATHER_SCHEMA,
    answer,
    check,
    check_person,
    check_weather,
    main,
    raised,
)
from pydantic import BaseModel

USER = [{"role": "user", "content": QUESTION}]
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA, "strict": True}}
TOOL = {"type": "function", "name": "get_weather", "parameters": WEATHER_SCHEMA, "strict": True}


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def chat_checks(row: str, client: openai.OpenAI) -> None:
    create = client.chat.completions.create

    @check(row, "plain")
    def plain() -> None:
        reply = create(model=MODEL, messages=USER)
        assert reply.choices[0].message.content == answer(("user", QUESTION))
        assert reply.choices[0].finish_reason == "stop"
        assert reply.usage.completion_tokens == TOKENS

    @check(row, "stream")
    def stream() -> None:
        chunks = list(create(model=MODEL, messages=USER, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == answer(("user", QUESTION))
        assert chunks[-1].usage.completion_tokens == TOKENS
        with client.chat.completions.stream(model=MODEL, messages=USER) as helper:
            helper.until_done()
            assert helper.get_final_completion().choices[0].message.content == text

    @check(row, "tools")
    def tools() -> None:
        message = create(model=MODEL, messages=USER, tools=[CHAT_TOOL], tool_choice="required").choices[0].message
        (call,) = message.tool_calls
        assert call.function.name == "get_weather"
        check_weather(call.function.arguments)
        with client.chat.completions.stream(model=MODEL, messages=USER, tools=[CHAT_TOOL]) as helper:
            (streamed,) = helper.get_final_completion().choices[0].message.tool_calls
        assert streamed.function.arguments == call.function.arguments
        turns = [*USER, message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        final = create(model=MODEL, messages=turns, tools=[CHAT_TOOL]).choices[0]
        assert (final.finish_reason, bool(final.message.content)) == ("stop", True)

    @check(row, "structured")
    def structured() -> None:
        parsed = client.chat.completions.parse(model=MODEL, messages=USER, response_format=Person)
        check_person(parsed.choices[0].message.parsed.model_dump())
        with client.chat.completions.stream(model=MODEL, messages=USER, response_format=Person) as helper:
            assert helper.get_final_completion().choices[0].message.parsed == parsed.choices[0].message.parsed

    @check(row, "embeddings")
    def embeddings() -> None:
        floats = client.embeddings.create(model=MODEL, input=["a", "b"], encoding_format="float")
        assert [len(one.embedding) for one in floats.data] == [1536, 1536]
        if not client._strict_response_validation:
            packed = client.embeddings.create(model=MODEL, input=["a", "b"])
            assert [one.embedding for one in packed.data] == [one.embedding for one in floats.data]
        small = client.embeddings.create(model=MODEL, input="a", dimensions=3, encoding_format="float")
        assert len(small.data[0].embedding) == 3

    @check(row, "errors")
    def errors() -> None:
        check_errors(client, lambda sdk, **more: sdk.chat.completions.create(messages=USER, **more), "max_tokens")
        broken = raised(
            openai.APIError, lambda: list(create(model=MODEL, messages=USER, stream=True, extra_headers=BROKEN))
        )
        assert broken.message == "Out of order."


def responses_checks(row: str, client: openai.OpenAI) -> None:
    create = client.responses.create

    @check(row, "plain")
    def plain() -> None:
        reply = create(model=MODEL, input=QUESTION)
        assert reply.output_text == answer(("user", QUESTION))
        assert (reply.status, reply.usage.output_tokens) == ("completed", TOKENS)

    @check(row, "stream")
    def stream() -> None:
        with client.responses.stream(model=MODEL, input=QUESTION) as helper:
            deltas = [event.delta for event in helper if event.type == "response.output_text.delta"]
            assert helper.get_final_response().output_text == "".join(deltas) == answer(("user", QUESTION))

    @check(row, "tools")
    def tools() -> None:
        first = create(model=MODEL, input=QUESTION, tools=[TOOL], tool_choice="required")
        (call,) = first.output
        check_weather(call.arguments)
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        by_id = create(model=MODEL, previous_response_id=first.id, input=[result], tools=[TOOL])
        by_items = create(model=MODEL, input=[*USER, *first.output, result], tools=[TOOL])
        assert by_id.output_text == by_items.output_text != ""

    @check(row, "structured")
    def structured() -> None:
        check_person(client.responses.parse(model=MODEL, input=QUESTION, text_format=Person).output_parsed.model_dump())
        text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON_SCHEMA, "strict": True}}
        check_person(json.loads(create(model=MODEL, input=QUESTION, text=text).output_text))

    @check(row, "errors")
    def errors() -> None:
        check_errors(client, lambda sdk, **more: sdk.responses.create(input=QUESTION, **more), "max_output_tokens")
        last = list(create(model=MODEL, input=QUESTION, stream=True, extra_headers=BROKEN))[-1]
        assert (last.type, last.message) == ("error", "Out of order.")


def check_errors(client: openai.OpenAI, ask, limit: str) -> None:
    wrong = client.with_options(api_key="wrong")
    for kind, code, param, asking in (
        (openai.AuthenticationError, "invalid_api_key", None, lambda: ask(wrong, model=MODEL)),
        (openai.NotFoundError, "model_not_found", "model", lambda: ask(client, model="no-such-model")),
        (openai.BadRequestError, "invalid_request", limit, lambda: ask(client, model=MODEL, **{limit: -1})),
    ):
        error = raised(kind, asking)
        assert (error.code, error.param) == (code, param)
        assert error.request_id


for suffix, strict in (("", False), (", strict", True)):
    sdk = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0, _strict_response_validation=strict)
    chat_checks(f"openai: chat{suffix}", sdk)
    responses_checks(f"openai: Responses{suffix}", sdk)
main("openai")
