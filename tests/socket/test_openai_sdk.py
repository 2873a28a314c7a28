"""The official SDK's own helpers against a live server, its validation of every object switched on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import openai
import pydantic
import pytest

from mockllm import Config, ServerThread

MESSAGES: Any = [{"role": "user", "content": "What will the weather be in Paris?"}]


class Unit(StrEnum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Forecast(pydantic.BaseModel):
    city: str
    days: int = pydantic.Field(ge=1, le=14)
    unit: Unit
    hours: list[float]
    after: Forecast | None = None


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(Config(port=0, ttft_ms=0, itl_ms=0, output_tokens=12, tool_calls="2", log_level="error")) as it:
        yield it


@pytest.fixture(params=[False, True], ids=["lenient", "strict"])
def client(server: ServerThread, request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=server.base_url, api_key="any", max_retries=0, _strict_response_validation=request.param
    ) as it:
        yield it


class TestParse:
    def test_a_pydantic_model(self, client: openai.OpenAI) -> None:
        for seed in range(10):
            reply = client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Forecast, seed=seed)
            forecast = reply.choices[0].message.parsed
            assert isinstance(forecast, Forecast)
            assert 1 <= forecast.days <= 14

    def test_tools(self, client: openai.OpenAI) -> None:
        reply = client.chat.completions.parse(
            model="m", messages=MESSAGES, tools=[openai.pydantic_function_tool(Forecast)], tool_choice="required"
        )
        calls = reply.choices[0].message.tool_calls
        assert calls is not None
        assert [type(call.function.parsed_arguments) for call in calls] == [Forecast, Forecast]
        assert reply.choices[0].finish_reason == "tool_calls"

    def test_a_cut_document_raises(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.LengthFinishReasonError) as caught:
            client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Forecast, max_tokens=3)
        assert caught.value.completion.usage is not None
        assert caught.value.completion.usage.completion_tokens == 3


class TestStream:
    def test_content(self, client: openai.OpenAI) -> None:
        whole = client.chat.completions.create(model="m", messages=MESSAGES)
        with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        deltas = [event.delta for event in events if event.type == "content.delta"]
        assert [delta for delta in deltas if delta] == deltas[1:]  # the role's chunk has an empty one
        assert len(deltas) == 13
        assert "".join(deltas) == final.choices[0].message.content == whole.choices[0].message.content
        assert [event.type for event in events if event.type.endswith(".done")] == ["content.done"]

    def test_several_choices_with_logprobs(self, client: openai.OpenAI) -> None:
        with client.chat.completions.stream(
            model="m", messages=MESSAGES, n=2, logprobs=True, top_logprobs=3, stream_options={"include_usage": True}
        ) as stream:
            final = stream.get_final_completion()
        assert final.usage is not None
        assert final.usage.completion_tokens == 24
        for choice in final.choices:
            assert choice.logprobs is not None
            assert choice.logprobs.content is not None
            assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
            assert all(len(entry.top_logprobs) == 3 for entry in choice.logprobs.content)

    def test_a_document(self, client: openai.OpenAI) -> None:
        with client.chat.completions.stream(model="m", messages=MESSAGES, response_format=Forecast) as stream:
            parsed = stream.get_final_completion().choices[0].message.parsed
        assert isinstance(parsed, Forecast)

    def test_tools(self, client: openai.OpenAI) -> None:
        with client.chat.completions.stream(
            model="m", messages=MESSAGES, tools=[openai.pydantic_function_tool(Forecast)], tool_choice="required"
        ) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        assert [event.index for event in done] == [0, 1]
        assert all(isinstance(event.parsed_arguments, Forecast) for event in done)
        assert final.choices[0].message.content is None

    def test_a_refusal(self) -> None:
        config = Config(port=0, ttft_ms=0, itl_ms=0, refusal_probability=1, log_level="error")
        with ServerThread(config) as refusing, openai.OpenAI(base_url=refusing.base_url, api_key="any") as client:
            reply = client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Forecast)
            with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
                events = list(stream)
        assert reply.choices[0].message.parsed is None
        done = [event.refusal for event in events if event.type == "refusal.done"]
        assert done == [reply.choices[0].message.refusal]


class TestWholeReplies:
    def test_legacy_functions(self, client: openai.OpenAI) -> None:
        functions: Any = [{"name": "weather", "parameters": Forecast.model_json_schema()}]
        reply = client.chat.completions.create(
            model="m", messages=MESSAGES, functions=functions, function_call={"name": "weather"}
        )
        call = reply.choices[0].message.function_call
        assert call is not None
        Forecast.model_validate_json(call.arguments)

    def test_custom_tools(self, client: openai.OpenAI) -> None:
        tools: Any = [{"type": "custom", "custom": {"name": "shell"}}]
        reply = client.chat.completions.create(model="m", messages=MESSAGES, tools=tools, tool_choice="required")
        calls = reply.choices[0].message.tool_calls
        assert calls is not None
        for call in calls:
            assert call.type == "custom"
            assert call.custom.name == "shell"

    def test_completions_with_logprobs(self, client: openai.OpenAI) -> None:
        reply = client.completions.create(model="m", prompt=["One", "Two"], n=2, logprobs=2, max_tokens=5)
        assert [choice.index for choice in reply.choices] == [0, 1, 2, 3]
        for choice in reply.choices:
            assert choice.logprobs is not None
            assert "".join(choice.logprobs.tokens or ()) == choice.text

    def test_what_the_sdks_types_have_no_room_for(self, client: openai.OpenAI) -> None:
        """With strict validation the SDK raises at what the API sends nevertheless; without, it is taken as it is.

        The null finish reason of a completions chunk, a custom tool's call in a stream, and vectors in base64, which
        the SDK itself asks for. Beside them there is the null logprob of an echoed prompt's first token.
        """
        custom: Any = [{"type": "custom", "custom": {"name": "shell"}}]
        asked: list[Callable[[], Any]] = [
            lambda: list(client.completions.create(model="m", prompt="One", stream=True)),
            lambda: list(
                client.chat.completions.create(
                    model="m", messages=MESSAGES, tools=custom, tool_choice="required", stream=True
                )
            ),
            lambda: client.embeddings.create(model="m", input="One"),
            lambda: client.completions.create(model="m", prompt="Tell me", logprobs=1, max_tokens=1, echo=True),
        ]
        for ask in asked:
            if client._strict_response_validation:
                with pytest.raises(openai.APIResponseValidationError):
                    ask()
            else:
                assert ask()
        assert client.embeddings.create(model="m", input="One", encoding_format="float").data[0].embedding

    def test_where_the_api_says_null_though_the_sdks_type_has_no_room_for_it(self, server: ServerThread) -> None:
        """A completions chunk's finish reason, and the logprob of a prompt's first token."""
        with openai.OpenAI(base_url=server.base_url, api_key="any") as client:
            chunks = list(client.completions.create(model="m", prompt="One", logprobs=2, max_tokens=5, stream=True))
            whole = client.completions.create(model="m", prompt="One", logprobs=2, max_tokens=5)
            assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
            reply = client.completions.create(model="m", prompt="Tell me", logprobs=1, max_tokens=0, echo=True)
        logprobs = reply.choices[0].logprobs
        assert logprobs is not None
        assert logprobs.tokens == ["Tell", " me"]
        assert logprobs.token_logprobs is not None
        assert logprobs.token_logprobs[0] is None
