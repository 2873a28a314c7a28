"""LangChain's ChatOpenAI, over chat and over Responses, and OpenAIEmbeddings.

What it needed that the API reference does not say:

- `OpenAIEmbeddings` cuts texts into tokens with tiktoken, which downloads its vocabulary, and sends
  token ids; `check_embedding_ctx_length=False` sends texts.
- An error in the middle of a Responses stream becomes a plain `ValueError`.
- A stream's usage is asked for only with `stream_usage=True` where the base URL is not OpenAI's.
"""

from __future__ import annotations

from functools import partial

import openai
from harness import (
    BASE,
    BROKEN,
    KEY,
    MODEL,
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
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "", "parameters": WEATHER_SCHEMA}}


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def checks(row: str, over_responses: bool) -> None:
    def model(**more) -> ChatOpenAI:
        given = {"model": MODEL, "base_url": BASE, "api_key": KEY, "max_retries": 0, "stream_usage": True}
        return ChatOpenAI(use_responses_api=over_responses, **(given | more))

    @check(row, "plain")
    def plain() -> None:
        message = model().invoke(QUESTION)
        assert message.text == answer(("user", QUESTION))
        assert message.usage_metadata["output_tokens"] == TOKENS

    @check(row, "stream")
    def stream() -> None:
        chunks = list(model().stream(QUESTION))
        total = chunks[0]
        for chunk in chunks[1:]:
            total += chunk
        assert total.text == answer(("user", QUESTION))
        assert total.usage_metadata["output_tokens"] == TOKENS

    @check(row, "tools")
    def tools() -> None:
        first = model().bind_tools([TOOL], tool_choice="any").invoke(QUESTION)
        (call,) = first.tool_calls
        check_weather(call["args"])
        turns = [HumanMessage(QUESTION), first, ToolMessage("sunny", tool_call_id=call["id"])]
        final = model().bind_tools([TOOL]).invoke(turns)
        assert (final.tool_calls, bool(final.text)) == ([], True)

    @check(row, "structured")
    def structured() -> None:
        for method in ("json_schema", "function_calling"):
            check_person(model().with_structured_output(Person, method=method).invoke(QUESTION).model_dump())

    @check(row, "errors")
    def errors() -> None:
        for error, more in (
            (openai.AuthenticationError, {"api_key": "wrong"}),
            (openai.NotFoundError, {"model": "no-such-model"}),
            (openai.BadRequestError, {"max_tokens": -1}),
        ):
            raised(error, partial(model(**more).invoke, QUESTION))
        broken = ValueError if over_responses else openai.APIError
        assert "Out of order." in str(raised(broken, lambda: list(model(default_headers=BROKEN).stream(QUESTION))))


checks("langchain-openai: chat", False)
checks("langchain-openai: Responses", True)


@check("langchain-openai: chat", "embeddings")
def embeddings() -> None:
    embedder = OpenAIEmbeddings(model=MODEL, base_url=BASE, api_key=KEY, check_embedding_ctx_length=False)
    assert [len(vector) for vector in embedder.embed_documents(["a", "b"])] == [1536, 1536]


main("langchain-openai", "langchain-core", "openai")
