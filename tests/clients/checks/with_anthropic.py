"""Anthropic's SDK, with strict validation of every reply.

What it needed that the API reference does not say:

- The request id in its exceptions and streams is the header `request-id`, not the body's.
- The exception is chosen by the status alone; the message is the whole body.
- A streamed tool call's `input` is parsed again at every `input_json_delta`, from what is there so far.
"""

from __future__ import annotations

import anthropic
from harness import (
    BROKEN,
    KEY,
    MODEL,
    PERSON_SCHEMA,
    QUESTION,
    ROOT,
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

ROW = "anthropic"
USER = [{"role": "user", "content": QUESTION}]
TOOL = {"name": "get_weather", "input_schema": WEATHER_SCHEMA}
client = anthropic.Anthropic(base_url=ROOT, api_key=KEY, max_retries=0, _strict_response_validation=True)


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def ask(**more):
    return client.messages.create(**({"model": MODEL, "max_tokens": 2000, "messages": USER} | more))


def streamed(**more) -> anthropic.types.Message:
    with client.messages.stream(**({"model": MODEL, "max_tokens": 2000, "messages": USER} | more)) as stream:
        return stream.get_final_message()


@check(ROW, "plain")
def plain() -> None:
    reply = ask()
    assert reply.content[0].text == answer(("user", QUESTION))
    assert (reply.stop_reason, reply.usage.output_tokens) == ("end_turn", TOKENS)
    assert client.messages.count_tokens(model=MODEL, messages=USER).input_tokens == reply.usage.input_tokens
    assert ask(max_tokens=3).stop_reason == "max_tokens"
    assert [model.id for model in client.models.list()] == [client.models.retrieve(MODEL).id] == [MODEL]
    stop = reply.content[0].text.split()[3]
    stopped = ask(stop_sequences=[stop])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", stop)
    assert stop not in stopped.content[0].text


@check(ROW, "stream")
def stream() -> None:
    with client.messages.stream(model=MODEL, max_tokens=2000, messages=USER) as stream:
        assert "".join(stream.text_stream) == answer(("user", QUESTION))
        assert stream.get_final_message().usage.output_tokens == TOKENS
    thinking = {"type": "enabled", "budget_tokens": 1024}
    thought, text = streamed(thinking=thinking).content
    assert thought.thinking
    assert thought.signature
    whole = ask(thinking=thinking).content
    assert (thought.to_dict(), text.text) == (whole[0].to_dict(), whole[1].text)


@check(ROW, "tools")
def tools() -> None:
    reply = ask(tools=[TOOL], tool_choice={"type": "any"})
    assert reply.stop_reason == "tool_use"
    (call,) = reply.content
    check_weather(call.input)
    again = streamed(tools=[TOOL])
    assert again.content[0].input == call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    turns = [*USER, {"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
    final = ask(messages=turns, tools=[TOOL])
    assert (final.stop_reason, final.content[0].type) == ("end_turn", "text")


@check(ROW, "structured")
def structured() -> None:
    parsed = client.messages.parse(model=MODEL, max_tokens=2000, messages=USER, output_format=Person)
    check_person(parsed.parsed_output.model_dump())
    plain = ask(output_config={"format": {"type": "json_schema", "schema": PERSON_SCHEMA}})
    check_person(Person.model_validate_json(plain.content[0].text).model_dump())


@check(ROW, "errors")
def errors() -> None:
    wrong = client.with_options(api_key="wrong")
    for kind, asking in (
        (anthropic.AuthenticationError, lambda: wrong.messages.create(model=MODEL, max_tokens=5, messages=USER)),
        (anthropic.NotFoundError, lambda: ask(model="no-such-model")),
        (anthropic.BadRequestError, lambda: ask(max_tokens=-1)),
        (anthropic.NotFoundError, lambda: client.post("/v1/messages/nothing", cast_to=object)),
    ):
        error = raised(kind, asking)
        assert error.body["type"] == "error"
        assert error.request_id == error.body["request_id"]
    broken = raised(anthropic.APIStatusError, lambda: streamed(extra_headers=BROKEN))
    assert broken.body["error"]["message"] == "Out of order."


main("anthropic")
