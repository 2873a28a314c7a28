"""A request that was seen before is answered as if it had not been."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mockllm.app.known import MOST_BODIES, MOST_BODY_BYTES, MOST_ONCE, TURNED_AWAY, Known, Seen
from mockllm.config import Config
from mockllm.dialects.dialect import Context
from mockllm.generation.plan import Choice, GenerationRequest, Plan, Segment
from mockllm.virtual import VirtualReply, VirtualServer

CHAT = "/v1/chat/completions"
MESSAGES: dict[str, Any] = {"messages": [{"role": "user", "content": "Say something."}], "max_tokens": 12}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
UNLIKE = re.compile(rb'"id":"[^"]*"|"created":\d+')  # what differs between equal requests


def text_of(reply: VirtualReply) -> bytes:
    assert reply.status == 200
    assert reply.complete
    return b"".join([data for _, data in reply.chunks])


def ask(server: VirtualServer, path: str, body: object, headers: dict[str, str] | None = None) -> bytes:
    reply = server.post(path, body, headers)
    server.run()
    server.clock.advance(1.5)  # another second, so another `created`
    return text_of(reply)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, MESSAGES),
        (CHAT, MESSAGES | {"stream": True}),
        (CHAT, MESSAGES | {"n": 3, "seed": 5}),
        (CHAT, MESSAGES | {"logprobs": True, "top_logprobs": 2}),
        (CHAT, MESSAGES | {"tools": [TOOL], "tool_choice": "required"}),
        (CHAT, MESSAGES | {"stream": True, "stream_options": {"include_usage": True}}),
        ("/v1/completions", {"prompt": "Once", "max_tokens": 9}),
        ("/v1/completions", {"prompt": ["Once", "Twice"], "max_tokens": 9, "stream": True}),
    ],
)
def test_the_second_answer_is_the_first_with_another_id_and_time(path: str, body: dict[str, Any]) -> None:
    server = VirtualServer(Config())
    first, second, third = [ask(server, path, body) for _ in range(3)]
    assert first != second != third
    assert UNLIKE.sub(b"", first) == UNLIKE.sub(b"", second) == UNLIKE.sub(b"", third)
    assert len({tuple(UNLIKE.findall(each)) for each in (first, second, third)}) == 3
    facts = [
        (record.model, record.prompt_tokens, record.tokens, record.finish_reason, record.limit_tokens, record.stream)
        for record in server.ledger
    ]
    assert len(facts) == 3
    assert len(set(facts)) == 1


def test_drawn_timings_are_drawn_again() -> None:
    server = VirtualServer(Config(ttft_ms_std=50))
    for _ in range(8):
        ask(server, CHAT, MESSAGES | {"stream": True})
    waits = {record.first_token_s - record.arrival_s for record in server.ledger if record.first_token_s is not None}
    assert len(waits) == 8


def test_a_header_changes_the_answer_of_a_known_body_and_of_no_other() -> None:
    server = VirtualServer(Config())
    plain = ask(server, CHAT, MESSAGES)
    other = ask(server, CHAT, MESSAGES, {"x-mockllm-output-tokens": "3"})
    assert b'"completion_tokens":3,' in other
    assert UNLIKE.sub(b"", ask(server, CHAT, MESSAGES)) == UNLIKE.sub(b"", plain) != UNLIKE.sub(b"", other)


def context(text: bytes = b"Hi", tokens: int = 1) -> Context:
    choice = Choice(0, (Segment("text", [text] * tokens),), "stop", tokens, bytes(16))
    plan = Plan((choice,), 1, tokens, 0.0, [0.0] * tokens)
    return Context("chatcmpl-1", 17, None, GenerationRequest("m", ()), plan)


def test_what_is_kept_is_bounded() -> None:
    known = Known()
    for _ in range(2):
        known.keep(b"x" * (MOST_BODY_BYTES + 1), context())
        known.keep(b"long", context(tokens=100_000))
    assert known.find(b"long") is known.find(b"x" * (MOST_BODY_BYTES + 1)) is None
    for number in range(2 * MOST_BODIES):
        for _ in range(2):
            known.keep(b"%d" % number, context())
    assert len(known._bodies) == MOST_BODIES
    for _ in range(TURNED_AWAY + 1):
        known.keep(b"another phase", context())
    assert known.find(b"another phase") is not None, "what is sent now finds a place in the end"


def test_a_body_that_comes_once_is_not_kept() -> None:
    known = Known()
    for number in range(3 * MOST_ONCE):
        known.keep(b"%d" % number, context())
        assert known.find(b"%d" % number) is None
    assert len(known._once) <= MOST_ONCE


def test_a_body_that_has_its_id_twice_or_no_time_is_made_anew() -> None:
    seen = Seen(context())
    seen.rendered(b'{"id":"chatcmpl-1","created":17,"again":"chatcmpl-1"}', seen.context)
    assert seen.whole("chatcmpl-2", 18) is None
    seen.rendered(b'{"id":"chatcmpl-1"}', seen.context)
    assert seen.whole("chatcmpl-2", 18) is None
    seen.rendered(b'{"id":"chatcmpl-1","created":17,"text":"17"}', seen.context)
    assert seen.whole("chatcmpl-2", 18) == b'{"id":"chatcmpl-2","created":18,"text":"17"}'
