"""Chat Completions streams for tests: by hand, recorded, and drawn by Hypothesis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Chunk = dict[str, Any]

GOLDEN = Path(__file__).parent / "data" / "chat_to_responses.jsonl"


def golden_pairs() -> list[dict[str, Any]]:
    """Streams and what the handler of openai-agents-python 0.16.0 made of them.

    `{name, model, chunks, events}`; the first event's response is the base it was given.
    """
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> Chunk:
    """A chunk with one choice; `logprobs` goes into the choice, what else is given into the chunk."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    if "logprobs" in more:
        choice["logprobs"] = more.pop("logprobs")
    return {**_HEAD, "choices": [choice], **more}


def usage_chunk(prompt: int = 7, completion: int = 3, **details: Any) -> Chunk:
    """The chunk that ends a stream with `include_usage`."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**_HEAD, "choices": [], "usage": {**counts, **details}}


def call(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: str | None = None) -> Chunk:
    """A delta with one piece of a tool call."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece: dict[str, Any] = {} if index is None else {"index": index}
    if id is not None:
        piece |= {"id": id, "type": "function"}
    return {"tool_calls": [{**piece, "function": function}]}


_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m-1"}

texts = st.text(st.sampled_from('ab{}":1é日😀\n\\'), max_size=4)
_logprobs = st.fixed_dictionaries(
    {"token": st.sampled_from("abc"), "logprob": st.floats(-9, 0), "bytes": st.none() | st.just([97])},
    optional={
        "top_logprobs": st.lists(
            st.fixed_dictionaries({"token": st.sampled_from("abc"), "logprob": st.floats(-9, 0), "bytes": st.none()}),
            max_size=2,
        )
    },
).map(lambda token: {"top_logprobs": [], **token})
_pieces = st.fixed_dictionaries(
    {"index": st.integers(0, 2)},
    optional={
        "id": st.sampled_from(["", "call_a", "call_b", "call_c__thought__x"]),
        "type": st.just("function"),
        "function": st.none()
        | st.fixed_dictionaries({}, optional={"name": st.sampled_from(["", "f", "g"]), "arguments": st.none() | texts}),
        "provider_specific_fields": st.none() | st.just({"thought_signature": "sig"}),
        "extra_content": st.none() | st.just({"google": {"thought_signature": "sig2"}}),
    },
)
_blocks = st.fixed_dictionaries(
    {"type": st.just("thinking")}, optional={"thinking": texts, "signature": st.none() | st.just("SIG")}
)
# What the agents handler understands, as far as its own types let it pass.
handler_deltas = st.one_of(
    st.fixed_dictionaries({"content": texts}),
    _pieces.map(lambda piece: {"tool_calls": [piece]}),
    st.fixed_dictionaries({"reasoning_content": texts}),
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.just("assistant"),
            "content": st.none() | texts,
            "refusal": st.none() | texts,
            "reasoning_content": st.none() | texts,
            "reasoning": st.none() | texts,
            "thinking_blocks": st.lists(_blocks, max_size=2),
            "tool_calls": st.lists(_pieces, max_size=3),
        },
    ),
)
_custom = st.fixed_dictionaries(
    {"index": st.integers(0, 2), "type": st.just("custom")},
    optional={
        "id": st.sampled_from(["call_a", "call_d"]),
        "custom": st.fixed_dictionaries({}, optional={"name": st.just("run"), "input": texts}),
    },
)
deltas = st.one_of(
    handler_deltas,
    _custom.map(lambda piece: {"tool_calls": [piece]}),
    st.fixed_dictionaries(
        {"function_call": st.fixed_dictionaries({}, optional={"name": st.just("old"), "arguments": texts})}
    ),
    texts.map(lambda text: {"reasoning_content": text, "thinking_blocks": [{"type": "thinking", "thinking": text}]}),
)
_finishes = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "function_call", "abort", ""])
_usages = st.builds(
    lambda prompt, completion, details: usage_chunk(prompt, completion, **details)["usage"],
    st.integers(0, 9),
    st.integers(0, 9),
    st.fixed_dictionaries(
        {},
        optional={
            "prompt_tokens_details": st.none() | st.just({"cached_tokens": 3}),
            "completion_tokens_details": st.none() | st.just({"reasoning_tokens": 2}),
        },
    ),
)


@st.composite
def streams(draw: st.DrawFn, deltas: st.SearchStrategy[dict[str, Any]] = deltas) -> list[Chunk]:
    """Chunks in any order that a provider might send, most of them ending as they should."""
    chunks = []
    for delta in draw(st.lists(deltas, max_size=12)):
        made = chunk(delta)
        if "content" in delta and draw(st.integers(0, 3)) == 0:
            made["choices"][0]["logprobs"] = {"content": draw(st.lists(_logprobs, max_size=2))}
        if draw(st.integers(0, 9)) == 0:
            made["usage"] = draw(_usages)
        if draw(st.integers(0, 19)) == 0:
            made |= {"id": "chatcmpl-2", "model": "m-2"}
        if draw(st.integers(0, 19)) == 0:
            made["choices"][0]["finish_reason"] = draw(_finishes)
        chunks.append(made)
    if draw(st.integers(0, 3)):
        chunks.append(chunk(finish=draw(_finishes)))
    if draw(st.booleans()):
        chunks.append({**_HEAD, "choices": [], "usage": draw(_usages)})
    return chunks
