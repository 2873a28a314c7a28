"""Pydantic AI: its Agent over chat, over Responses and over Anthropic's API.

What it needed that the API reference does not say:

- It leaves `tool_choice` at auto where text may be the answer, so that a mock has to call a tool of
  its own accord (`--tool-call-probability`), and must answer once the last message is a tool's result.
- Structured output is by default a tool named `final_result`, which `tool_choice` then demands.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Literal

from anthropic import AsyncAnthropic
from harness import BASE, KEY, MODEL, QUESTION, ROOT, TOKENS, answer, check, check_person, check_weather, main, raised
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def over_chat(key: str, name: str) -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=_openai(key)))


def over_responses(key: str, name: str) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=_openai(key)))


def over_anthropic(key: str, name: str) -> AnthropicModel:
    client = AsyncAnthropic(base_url=ROOT, api_key=key, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _openai(key: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=BASE, api_key=key, max_retries=0)


def checks(row: str, make, native: bool) -> None:
    def agent(key: str = KEY, name: str = MODEL, **more) -> Agent:
        return Agent(make(key, name), **more)

    @check(row, "plain")
    def plain() -> None:
        result = agent().run_sync(QUESTION)
        assert result.output == answer(("user", QUESTION))
        usage = result.usage() if callable(result.usage) else result.usage
        assert usage.output_tokens == TOKENS

    @check(row, "stream")
    def stream() -> None:
        async def run() -> str:
            async with agent().run_stream(QUESTION) as result:
                return "".join([delta async for delta in result.stream_text(delta=True, debounce_by=None)])

        assert asyncio.run(run()) == answer(("user", QUESTION))

    @check(row, "tools")
    def tools() -> None:
        calls = []

        def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
            """The weather of a city."""
            calls.append({"city": city, "unit": unit})
            return "sunny"

        result = agent(tools=[get_weather]).run_sync(QUESTION)
        (call,) = calls
        check_weather(call)
        assert result.output

    @check(row, "structured")
    def structured() -> None:
        check_person(agent(output_type=Person).run_sync(QUESTION).output.model_dump())
        if native:
            check_person(agent(output_type=NativeOutput(Person)).run_sync(QUESTION).output.model_dump())

    @check(row, "errors")
    def errors() -> None:
        for status, whose in ((401, agent(key="wrong")), (404, agent(name="no-such-model"))):
            assert raised(ModelHTTPError, partial(whose.run_sync, QUESTION)).status_code == status


checks("pydantic-ai: chat", over_chat, native=True)
checks("pydantic-ai: Responses", over_responses, native=True)
checks("pydantic-ai: anthropic", over_anthropic, native=False)
main("pydantic-ai-slim", "openai", "anthropic")
