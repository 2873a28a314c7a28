"""Overrides and scripts through the official SDK, as a test suite and an agent's author use them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from mockllm import Config, Server, ServerThread
from tests.socket.test_command import mockllm, port_of

FAST: dict[str, Any] = {"port": 0, "ttft_ms": 0, "itl_ms": 0, "log_level": "error"}
HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(Config(**FAST)) as it:
        yield it


@pytest.fixture
def client(server: ServerThread) -> Iterator[openai.OpenAI]:
    server.clear_script()
    with openai.OpenAI(
        base_url=server.base_url, api_key="secret", max_retries=0, _strict_response_validation=True
    ) as it:
        yield it


class TestOverrides:
    OVERRIDE = {"mockllm": {"text": "Exactly this.", "reasoning": "Hm."}}

    def test_extra_body(self, client: openai.OpenAI) -> None:
        chat = client.chat.completions.create(model="m", messages=HELLO, extra_body=self.OVERRIDE)
        assert chat.choices[0].message.content == "Exactly this."
        responses = client.responses.create(model="m", input="Hello", extra_body=self.OVERRIDE)
        assert responses.output_text == "Exactly this."
        text = {"mockllm": {"text": "Exactly this."}}
        completion = client.completions.create(model="m", prompt="Hello", extra_body=text)
        assert completion.choices[0].text == "Exactly this."

    def test_extra_body_of_a_stream(self, client: openai.OpenAI) -> None:
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True, extra_body=self.OVERRIDE)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Exactly this."

    def test_extra_headers(self, client: openai.OpenAI) -> None:
        headers = {"X-Mockllm-Text": "From a header.", "X-Mockllm-Finish-Reason": "content_filter"}
        reply = client.chat.completions.create(model="m", messages=HELLO, extra_headers=headers)
        assert reply.choices[0].message.content == "From a header."
        assert reply.choices[0].finish_reason == "content_filter"

    def test_what_is_wrong_is_a_bad_request(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match="did you mean 'text'") as caught:
            client.chat.completions.create(model="m", messages=HELLO, extra_body={"mockllm": {"txt": "a"}})
        assert caught.value.param == "mockllm.txt"


def run_agent(client: openai.OpenAI, question: str) -> str:
    """An agent as frameworks write them: it calls tools until the model answers."""
    messages: Any = [{"role": "user", "content": question}]
    for _ in range(10):
        message = client.chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            assert call.type == "function"
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{city}: 7 degrees"})
    raise AssertionError("the agent goes round in circles")


class TestScript:
    def test_an_agents_turns(self, server: ServerThread, client: openai.OpenAI) -> None:
        server.script(
            [
                {"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
                {
                    "tool_calls": [
                        {"name": "weather", "arguments": {"city": "Rome"}},
                        {"name": "weather", "arguments": {"city": "Bern"}},
                    ],
                    "match": {"message": "Oslo: 7 degrees"},
                },
                {"text": "Cold everywhere.", "match": {"message": "Bern: 7 degrees"}},
            ],
            strict=True,
        )
        assert run_agent(client, "Where is it warm?") == "Cold everywhere."
        state = server.script_state()
        assert (state.left, state.used, state.missed) == ((), 3, 0)
        first, _, last = server.requests[-3:]
        assert first.json()["tools"] == TOOLS
        assert first.headers["authorization"] == "***"
        roles = [message["role"] for message in last.json()["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool"]

    def test_one_turn_too_many_is_an_error_that_is_not_retried(
        self, server: ServerThread, client: openai.OpenAI
    ) -> None:
        server.script([{"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}], strict=True)
        before = len(server.ledger)
        with pytest.raises(openai.NotFoundError) as caught:
            run_agent(client.with_options(max_retries=2), "Where is it warm?")
        assert caught.value.code == "no_scripted_reply"
        assert len(server.ledger) - before == 2
        assert server.script_state().misses[0].message == "Oslo: 7 degrees"

    def test_over_http(self, server: ServerThread, client: openai.OpenAI) -> None:
        url = server.url + "/mockllm/script"
        httpx.post(url, json=[{"text": "one"}, {"text": "two"}]).raise_for_status()
        assert client.responses.create(model="m", input="Hello").output_text == "one"
        assert httpx.get(url).json()["left"] == [{"text": "two"}]
        assert httpx.delete(url).json()["used"] == 1
        assert httpx.get(url).json()["left"] == []

    def test_the_single_record_has_the_request(self, server: ServerThread, client: openai.OpenAI) -> None:
        client.chat.completions.create(model="m", messages=HELLO, extra_headers={"X-Request-Id": "mine"})
        record = httpx.get(server.url + "/mockllm/requests/mine").json()
        assert record["request"]["body"] == {"messages": HELLO, "model": "m"}

    def test_in_the_loop_of_the_server(self) -> None:
        async def ask() -> str | None:
            async with Server(Config(**FAST)) as server:
                server.script([{"text": "one"}])
                async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any") as client:
                    reply = await client.chat.completions.create(model="m", messages=HELLO)
                assert [request.path for request in server.requests] == ["/v1/chat/completions"]
                return reply.choices[0].message.content

        assert asyncio.run(ask()) == "one"

    def test_before_and_after_the_servers_life(self) -> None:
        server = ServerThread(Config(**FAST))
        server.script([{"text": "one"}])
        with server, openai.OpenAI(base_url=server.base_url, api_key="any") as client:
            assert client.chat.completions.create(model="m", messages=HELLO).choices[0].message.content == "one"
        assert (server.script_state().used, len(server.requests)) == (1, 1)


@pytest.mark.parametrize(("flags", "kept"), [((), False), (("--keep-bodies", "5"), True)])
def test_the_command_keeps_no_bodies_unless_asked(flags: tuple[str, ...], kept: bool) -> None:
    with mockllm("--port", "0", "--ttft-ms", "0", "--itl-ms", "0", *flags) as process:
        url = f"http://127.0.0.1:{port_of(process)}"
        httpx.post(url + "/mockllm/script", json=[{"text": "one"}]).raise_for_status()
        reply = httpx.post(url + "/v1/chat/completions", json={"model": "m", "messages": HELLO})
        assert reply.json()["choices"][0]["message"]["content"] == "one"
        record = httpx.get(url + "/mockllm/requests/1").json()
        assert ("request" in record) == kept
        assert httpx.get(url + "/mockllm/script").json()["used"] == 1
