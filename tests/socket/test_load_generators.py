"""What load generators send, byte for byte as it was seen on the wire, and what they read in the answer.

guidellm 0.8.1 was run against the server (`guidellm run --backend kind=openai_http,…`, three request
formats, 50 requests each, no error); these are its requests.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import h11
import pytest

from mockllm import Config, ServerThread

HTTPX_HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
    "Connection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\nContent-Length: {length}\r\n"
    "Content-Type: application/json\r\n\r\n"
)
GUIDELLM = {
    "/v1/chat/completions": (
        '{"model":"llama-3.1-8b-instruct","stream":true,"stream_options":{"include_usage":true,'
        '"continuous_usage_stats":true},"max_completion_tokens":20,"ignore_eos":true,"messages":[{"role":"user",'
        '"content":[{"type":"text","text":"Tell me about topic number 0."}]}]}'
    ),
    "/v1/completions": (
        '{"model":"llama-3.1-8b-instruct","stream":true,"stream_options":{"include_usage":true,'
        '"continuous_usage_stats":true},"max_tokens":20,"ignore_eos":true,"prompt":"Tell me about topic number 0."}'
    ),
    "/v1/responses": (
        '{"model":"llama-3.1-8b-instruct","stream":true,"max_output_tokens":20,"ignore_eos":true,"input":[{"role":'
        '"user","content":[{"type":"input_text","text":"Tell me about topic number 0."}]}]}'
    ),
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ServerThread(Config(port=0, ttft_ms=0.0, itl_ms=0.0)) as server:
        yield server.port


def exchange(port: int, path: str, body: str) -> list[dict[str, Any]]:
    """Send a request as it is and read the reply with h11; its events."""
    client = h11.Connection(h11.CLIENT)
    # h11 must know the request to read its reply; the bytes that are sent are the recorded ones.
    client.send(h11.Request(method="POST", target=path, headers=[("Host", "x"), ("Content-Length", str(len(body)))]))
    client.send(h11.Data(data=body.encode()))
    client.send(h11.EndOfMessage())
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall((HTTPX_HEAD.format(path=path, length=len(body)) + body).encode())
        while True:
            event = client.next_event()
            if event is h11.NEED_DATA:
                client.receive_data(sock.recv(65536))
            elif isinstance(event, h11.Response):
                assert event.status_code == 200
            elif isinstance(event, h11.Data):
                received += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
    lines = [line.removeprefix("data: ") for line in received.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_guidellm_chat(port: int) -> None:
    events = exchange(port, "/v1/chat/completions", GUIDELLM["/v1/chat/completions"])
    texts = [event["choices"][0]["delta"].get("content") for event in events if event["choices"]]
    assert sum(bool(text) for text in texts) == 20
    # It takes the last usage that it saw; with continuous usage every chunk has the running one.
    assert [event["usage"]["completion_tokens"] for event in events[1:21]] == list(range(1, 21))
    assert events[-1]["usage"]["completion_tokens"] == 20
    assert events[-1]["usage"]["prompt_tokens"] > 0


def test_guidellm_completions(port: int) -> None:
    events = exchange(port, "/v1/completions", GUIDELLM["/v1/completions"])
    assert sum(bool(event["choices"][0]["text"]) for event in events if event["choices"]) == 20
    assert {event["choices"][0]["index"] for event in events if event["choices"]} == {0}
    assert events[-1]["usage"]["completion_tokens"] == 20


def test_guidellm_responses(port: int) -> None:
    events = exchange(port, "/v1/responses", GUIDELLM["/v1/responses"])
    assert sum(event["type"] == "response.output_text.delta" for event in events) == 20
    assert events[-1]["type"] == "response.incomplete"  # one of the three endings that it knows
    assert events[-1]["response"]["usage"]["output_tokens"] == 20


def test_guidellms_probe_with_both_limits_and_a_null_stop(port: int) -> None:
    body = (
        '{"prompt":"Test connection","model":"m","stream":true,"stream_options":{"include_usage":true},'
        '"max_tokens":1,"max_completion_tokens":1,"stop":null,"ignore_eos":true}'
    )
    assert exchange(port, "/v1/completions", body)[-1]["usage"]["completion_tokens"] == 1


def test_vllm_bench_serve(port: int) -> None:
    """In the shape of `vllm bench serve --backend openai` and `openai-chat`."""
    body = (
        '{"model":"m","prompt":"Hello","repetition_penalty":1.0,"max_tokens":7,"logprobs":null,"stream":true,'
        '"temperature":0.0,"stream_options":{"include_usage":true},"ignore_eos":true}'
    )
    assert exchange(port, "/v1/completions", body)[-1]["usage"]["completion_tokens"] == 7
    body = (
        '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"max_completion_tokens":'
        '7,"stream":true,"temperature":0.0,"stream_options":{"include_usage":true},"ignore_eos":true}'
    )
    assert exchange(port, "/v1/chat/completions", body)[-1]["usage"]["completion_tokens"] == 7
