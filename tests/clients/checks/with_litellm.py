"""LiteLLM, through its OpenAI and its Anthropic provider.

What it needed that the API reference does not say:

- It fetches its table of prices at import unless LITELLM_LOCAL_MODEL_COST_MAP is True.
- The provider `openai/` wants the base with `/v1`, `anthropic/` the one without.
- `anthropic/` makes structured output for a model that it does not know by a forced tool, and asks
  for 128000 `max_tokens`: prompt and limit together have to fit the context (`--max-model-len`).
- Its streams carry usage only where `stream_options` asks for it, through `anthropic/` too.
"""

from __future__ import annotations

import json
from functools import partial

import litellm
from harness import (
    BASE,
    KEY,
    MODEL,
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

litellm.suppress_debug_info = True
litellm.telemetry = False
USER = [{"role": "user", "content": QUESTION}]
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def checks(row: str, provider: str, base: str) -> None:
    def ask(**more):
        given = {"model": f"{provider}/{MODEL}", "api_base": base, "api_key": KEY, "messages": USER, "max_retries": 0}
        return litellm.completion(**(given | more))

    @check(row, "plain")
    def plain() -> None:
        reply = ask()
        assert reply.choices[0].message.content == answer(("user", QUESTION))
        assert reply.usage.completion_tokens == TOKENS

    @check(row, "stream")
    def stream() -> None:
        chunks = list(ask(stream=True, stream_options={"include_usage": True}))
        built = litellm.stream_chunk_builder(chunks)
        assert built.choices[0].message.content == answer(("user", QUESTION))
        assert built.usage.completion_tokens == TOKENS

    @check(row, "tools")
    def tools() -> None:
        message = ask(tools=[TOOL], tool_choice="required").choices[0].message
        (call,) = message.tool_calls
        check_weather(call.function.arguments)
        built = litellm.stream_chunk_builder(list(ask(tools=[TOOL], stream=True)))
        assert json.loads(built.choices[0].message.tool_calls[0].function.arguments) == json.loads(
            call.function.arguments
        )
        turns = [*USER, message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        final = ask(messages=turns, tools=[TOOL]).choices[0]
        assert (final.finish_reason, bool(final.message.content)) == ("stop", True)

    @check(row, "structured")
    def structured() -> None:
        check_person(json.loads(ask(response_format=Person).choices[0].message.content))

    @check(row, "errors")
    def errors() -> None:
        for error, more in (
            (litellm.AuthenticationError, {"api_key": "wrong"}),
            (litellm.NotFoundError, {"model": f"{provider}/no-such-model"}),
            (litellm.BadRequestError, {"max_tokens": -1}),
        ):
            raised(error, partial(ask, **more))


checks("litellm: openai", "openai", BASE)
checks("litellm: anthropic", "anthropic", ROOT)


@check("litellm: openai", "embeddings")
def embeddings() -> None:
    reply = litellm.embedding(model=f"openai/{MODEL}", input=["a", "b"], api_base=BASE, api_key=KEY)
    assert [len(row["embedding"]) for row in reply.data] == [1536, 1536]


main("litellm", "openai")
