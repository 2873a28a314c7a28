"""The Agents SDK: its Runner over chat and over Responses.

What it needed that the API reference does not say:

- It sends traces to api.openai.com unless tracing is turned off.
- After a turn that called tools it resets `tool_choice` to auto, so that a model that always calls
  tools would never end; a mock must answer once the last message is a tool's result.
- Over Responses it reads `usage.input_tokens_details` and `output_tokens_details` of every reply.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from harness import BASE, BROKEN, KEY, MODEL, QUESTION, TOKENS, answer, check, check_person, check_weather, main, raised
from openai import AsyncOpenAI, AuthenticationError, BadRequestError
from pydantic import BaseModel

set_tracing_disabled(True)
INSTRUCTIONS = "Be brief."
calls: list[dict[str, str]] = []


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


@function_tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """The weather of a city."""
    calls.append({"city": city, "unit": unit})
    return "sunny"


def checks(row: str, kind: type) -> None:
    def model(key: str = KEY, **more):
        return kind(MODEL, AsyncOpenAI(base_url=BASE, api_key=key, max_retries=0, **more))

    def agent(**more) -> Agent:
        return Agent("mock", instructions=INSTRUCTIONS, **({"model": model()} | more))

    expected = (("system", INSTRUCTIONS), ("user", QUESTION))

    @check(row, "plain")
    def plain() -> None:
        result = asyncio.run(Runner.run(agent(), QUESTION))
        assert result.final_output == answer(*expected)
        assert result.context_wrapper.usage.output_tokens == TOKENS

    @check(row, "stream")
    def stream() -> None:
        async def run() -> tuple[str, str]:
            result = Runner.run_streamed(agent(), QUESTION)
            deltas = [
                event.data.delta
                async for event in result.stream_events()
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            ]
            return "".join(deltas), result.final_output

        deltas, final = asyncio.run(run())
        assert deltas == final == answer(*expected)

    @check(row, "tools")
    def tools() -> None:
        for streamed in (False, True):
            calls.clear()
            whose = agent(tools=[get_weather], model_settings=ModelSettings(tool_choice="required"))
            final = asyncio.run(_run(whose, streamed))
            (call,) = calls
            check_weather(call)
            assert final

    @check(row, "structured")
    def structured() -> None:
        result = asyncio.run(Runner.run(agent(output_type=Person), QUESTION))
        check_person(result.final_output.model_dump())

    @check(row, "errors")
    def errors() -> None:
        for error, whose in (
            (AuthenticationError, agent(model=model("wrong"))),
            (BadRequestError, agent(model_settings=ModelSettings(max_tokens=-1))),
        ):
            raised(error, lambda whose=whose: asyncio.run(Runner.run(whose, QUESTION)))
        broken = agent(model=model(default_headers=BROKEN))
        assert "Out of order." in str(raised(Exception, lambda: asyncio.run(_run(broken, True))))


async def _run(whose: Agent, streamed: bool) -> str:
    if not streamed:
        return (await Runner.run(whose, QUESTION)).final_output
    result = Runner.run_streamed(whose, QUESTION)
    async for _ in result.stream_events():
        pass
    return result.final_output


checks("openai-agents: chat", OpenAIChatCompletionsModel)
checks("openai-agents: Responses", OpenAIResponsesModel)
main("openai-agents", "openai")
