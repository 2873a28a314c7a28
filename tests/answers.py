"""Asks an application without a socket, and reads its chat and completions replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Request, Timeline
from mockllm.generation.tokens import BuiltinTokenizer

Json = dict[str, Any]

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
TOKENIZER = BuiltinTokenizer()

INPUT: dict[str, Json] = {
    CHAT: {"messages": [{"role": "user", "content": "Hello"}]},
    COMPLETIONS: {"prompt": "Hello"},
    RESPONSES: {"input": "Hello"},
}
"""What a body says where it does not matter."""


class Mock:
    """An application with settings of its own; `hub_cache` is no setting, but where its tokenizers are."""

    def __init__(self, *, hub_cache: Path | None = None, **settings: Any) -> None:
        config = Config(ttft_ms=100, itl_ms=10, **({"output_tokens": 12} | settings))
        self.app = App(config, FakeClock(), hub_cache=hub_cache)

    def send(self, path: str, body: Json) -> tuple[int, bool, Timeline]:
        """Status, whether the reply is a stream, and its timeline."""
        content = json.dumps(body).encode()
        request = Request("POST", path, "", {}, content, 1000.0, 1000.0)
        reply = self.app.handle(request, self.app.exchange(request))
        return reply.status, b"text/event-stream" in reply.headers, reply.timeline

    def whole(self, path: str, **body: Any) -> Json:
        """The reply to a body that asks for no stream; the model and the prompt have defaults."""
        status, streamed, timeline = self.send(path, _filled(path, body))
        (content,) = timeline.render(0, timeline.steps)
        assert status == 200, content
        assert not streamed
        reply = json.loads(content)
        assert isinstance(reply, dict)
        return reply

    def chunks(self, path: str, *cuts: int, **body: Any) -> list[Json]:
        """The chunks of a stream, rendered in stretches that end at `cuts`; its usage is asked for."""
        given = {"stream": True, "stream_options": {"include_usage": True}} | body
        status, streamed, timeline = self.send(path, _filled(path, given))
        assert status == 200, timeline.render(0, timeline.steps)
        assert streamed
        frames = list(timeline.preamble)
        first = 0
        for cut in [*sorted({cut for cut in cuts if 0 < cut < timeline.steps}), timeline.steps]:
            frames += timeline.render(first, cut)
            first = cut
        assert frames.pop() == b"data: [DONE]\n\n"
        return [_decoded(frame) for frame in frames]

    def error(self, path: str, **body: Any) -> Json:
        """The error of a body that is refused."""
        status, _, timeline = self.send(path, _filled(path, body))
        (content,) = timeline.render(0, timeline.steps)
        assert status == 400, content
        error = json.loads(content)["error"]
        assert isinstance(error, dict)
        return error

    def message(self, **body: Any) -> Json:
        """The message of the only choice of a chat reply."""
        message = self.whole(CHAT, **body)["choices"][0]["message"]
        assert isinstance(message, dict)
        return message

    def text(self, **body: Any) -> str:
        """The text of a chat reply."""
        content = self.message(**body)["content"]
        assert isinstance(content, str)
        return content


def _filled(path: str, body: Json) -> Json:
    return {"model": "m"} | INPUT[path] | body


def _decoded(frame: bytes) -> Json:
    assert frame.startswith(b"data: {")
    assert frame.endswith(b"}\n\n")
    chunk = json.loads(frame[6:])
    assert isinstance(chunk, dict)
    return chunk


def assemble(chunks: Sequence[Json]) -> Json:
    """The whole reply that a stream amounts to, put together as the API's reference says."""
    choices: dict[int, Json] = {}
    for chunk in chunks:
        for part in chunk["choices"]:
            choice = choices.setdefault(part["index"], {"index": part["index"], "logprobs": None})
            assert choice.get("finish_reason") is None, "a chunk after the finish reason"
            if "delta" in part:
                empty = {"role": None, "content": None, "refusal": None}
                _add_delta(choice.setdefault("message", empty), part["delta"])
            else:
                choice["text"] = choice.get("text", "") + part["text"]
            if part["logprobs"] is not None:
                _extend(choice, part["logprobs"])
            for key in ("token_ids", "prompt_token_ids"):
                if part.get(key) is not None:
                    choice[key] = choice.get(key, []) + part[key]
            choice["finish_reason"] = part["finish_reason"]
            choice["stop_reason"] = part.get("stop_reason")
    return {"choices": [choices[index] for index in sorted(choices)], "usage": chunks[-1]["usage"]}


def _add_delta(message: Json, delta: Json) -> None:
    for key, value in delta.items():
        if key == "role":
            assert message["role"] is None, "the role twice"
            message["role"] = value
        elif key == "tool_calls":
            for call in value:
                _add_call(message.setdefault("tool_calls", []), call)
        elif key == "function_call":
            called = message.setdefault("function_call", {"name": "", "arguments": ""})
            for name, piece in value.items():
                called[name] += piece
        elif value is not None:
            message[key] = (message.get(key) or "") + value


def _add_call(calls: list[Json], delta: Json) -> None:
    if delta["index"] == len(calls):
        calls.append({key: value for key, value in delta.items() if key != "index"})
        return
    assert delta["index"] == len(calls) - 1
    assert "id" not in delta
    assert "type" not in delta
    inside = calls[-1][calls[-1]["type"]]
    for name, piece in delta[calls[-1]["type"]].items():
        inside[name] += piece


def _extend(choice: Json, logprobs: Json) -> None:
    kept = choice["logprobs"] = choice["logprobs"] or dict.fromkeys(logprobs)
    for key, values in logprobs.items():
        if values is not None:
            kept[key] = (kept[key] or []) + values


def generated(choice: Json) -> int:
    """How many tokens a choice's visible parts have; a call's id and name are one."""
    message = choice.get("message")
    if message is None:
        return TOKENIZER.count(choice["text"])
    texts = [message["content"], message["refusal"], message.get("reasoning_content")]
    count = sum(TOKENIZER.count(text) for text in texts if text)
    calls = list(message.get("tool_calls", ()))
    if "function_call" in message:
        calls.append({"type": "function", "function": message["function_call"]})
    for call in calls:
        text = call["function"]["arguments"] if call["type"] == "function" else call["custom"]["input"]
        count += 1 + (2 if text == "{}" else TOKENIZER.count(text))
    return count
