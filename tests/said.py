"""What a reply said, read in any dialect from its wire, whole or streamed, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mockllm.virtual import VirtualReply, VirtualServer
from tests.answers import assemble

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
PATHS = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)

Json = dict[str, Any]


class Said(Struct):
    """One reply, in no dialect but for its `finish`.

    Attributes:
        first_s: When its first bytes with content came, after the request was sent.
        last_s: When its last ones did.
        calls: Name and arguments of each; an object where the dialect has objects.
    """

    text: str
    reasoning: str
    refusal: str
    calls: list[tuple[str, Any]]
    finish: str
    tokens: int
    first_s: float = 0.0
    last_s: float = 0.0


def body_of(path: str, text: str = "Hello", **more: Any) -> Json:
    """A body for a path; a stream's usage is asked for, and completions have a limit other than the API's 16 tokens."""
    if more.get("stream") and path in (CHAT, COMPLETIONS):
        more["stream_options"] = {"include_usage": True}
    if path == COMPLETIONS:
        return {"model": "m", "prompt": text, "max_tokens": 1000} | more
    if path == RESPONSES:
        return {"model": "m", "input": text} | more
    return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 1000} | more


def send(server: VirtualServer, path: str, body: object, headers: dict[str, str] | None = None) -> VirtualReply:
    client = server.connect()
    reply = client.request("POST", path, body, headers)
    server.run()
    assert reply.complete
    client.hang_up()
    return reply


def said(server: VirtualServer, path: str, body: Json, headers: dict[str, str] | None = None) -> Said:
    """What a server says to a body; it has to be accepted."""
    reply = send(server, path, body, headers)
    assert reply.status == 200, reply.body
    if not body.get("stream"):
        result = _READERS[path](reply.json())
        result.first_s = result.last_s = reply.chunks[-1][0]
        return result
    events = [(at_s, json.loads(data)) for at_s, data in reply.events if data != "[DONE]"]
    result = _STREAMS[path]([event for _, event in events])
    content = [at_s for at_s, event in events if _has_content(event)]
    result.first_s, result.last_s = (content[0], content[-1]) if content else (0.0, 0.0)
    return result


def _has_content(event: Json) -> bool:
    if "choices" in event:
        for choice in event["choices"]:
            delta = choice.get("delta", {"content": choice.get("text")})
            return any(value for key, value in delta.items() if key != "role")
        return False
    return "delta" in event["type"] and event["type"] != "message_delta"


# ---- whole replies ------------------------------------------------------------------------------


def _chat(reply: Json) -> Said:
    choice, message = reply["choices"][0], reply["choices"][0]["message"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    return Said(
        message["content"] or "",
        message.get("reasoning_content", ""),
        message["refusal"] or "",
        calls,
        choice["finish_reason"],
        reply["usage"]["completion_tokens"],
    )


def _completion(reply: Json) -> Said:
    choice = reply["choices"][0]
    return Said(choice["text"], "", "", [], choice["finish_reason"], reply["usage"]["completion_tokens"])


def _response(reply: Json) -> Said:
    items = reply["output"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    return Said(
        "".join(part["text"] for part in parts if part["type"] == "output_text"),
        "".join(part["text"] for item in items if item["type"] == "reasoning" for part in item["content"]),
        "".join(part["refusal"] for part in parts if part["type"] == "refusal"),
        [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"],
        reply["incomplete_details"]["reason"] if reply["incomplete_details"] else reply["status"],
        reply["usage"]["output_tokens"],
    )


def _message(reply: Json) -> Said:
    blocks = reply["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return Said(
        text,
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        "",  # the API has no place of its own for a refusal's text
        [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        reply["stop_reason"],
        reply["usage"]["output_tokens"],
    )


# ---- streams ------------------------------------------------------------------------------------


def _chat_stream(events: Sequence[Json]) -> Said:
    return _chat(assemble(events))


def _completion_stream(events: Sequence[Json]) -> Said:
    return _completion(assemble(events))


def _response_stream(events: Sequence[Json]) -> Said:
    result = _response(events[-1]["response"])
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == result.text
    return result


def _message_stream(events: Sequence[Json]) -> Said:
    message: Json = {}
    arguments: list[str] = []
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
                arguments.append("")
            case "content_block_delta":
                delta, block = event["delta"], message["content"][-1]
                key = {"text_delta": "text", "thinking_delta": "thinking"}.get(delta["type"])
                if key is not None:
                    block[key] += delta[key]
                elif delta["type"] == "input_json_delta":
                    arguments[-1] += delta["partial_json"]
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    for block, text in zip(message["content"], arguments, strict=True):
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
    return _message(message)


_READERS = {CHAT: _chat, COMPLETIONS: _completion, RESPONSES: _response, MESSAGES: _message}
_STREAMS = {
    CHAT: _chat_stream,
    COMPLETIONS: _completion_stream,
    RESPONSES: _response_stream,
    MESSAGES: _message_stream,
}
