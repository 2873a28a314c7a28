"""What a row of the table of parameters is, values that stand in many, and proofs that a parameter shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.answers import CHAT, COMPLETIONS, Json, Mock

HONOURED, VALIDATED, REFUSED, UNKNOWN = "honoured", "validated", "refused", "–"
BOTH, CHAT_ONLY, COMPLETIONS_ONLY = (CHAT, COMPLETIONS), (CHAT,), (COMPLETIONS,)

Ask = Callable[..., Json]
Proof = Callable[[Mock, str], bool]
"""Whether the parameter shows in the replies of an endpoint."""


@dataclass(frozen=True)
class Row:
    """One parameter.

    Attributes:
        kind: What becomes of it.
        takes: What it may be, in the README's words.
        good: Values that are accepted.
        bad: Values that are refused; a pair (value, place) where the refusal names another place than the field.
        beside: Fields that it needs beside it.
        proof: For what is honoured.
        endpoints: Those that have it.
    """

    name: str
    kind: str
    takes: str
    good: Sequence[Any]
    bad: Sequence[Any]
    proof: Proof | None = None
    endpoints: Sequence[str] = BOTH
    beside: Json = field(default_factory=dict)


@dataclass(frozen=True)
class At:
    """A bad value, and the place that the refusal names."""

    value: Any
    place: str


NO_FLAG = ["true", 1, {}]
NO_TEXT = [1, True, ["a"], {}]
NO_COUNT = [-1, 1.5, "1", True, []]
NO_NUMBER = ["1", True, []]
NO_OBJECT = ["a", 1, ["a"]]

USER = {"role": "user", "content": "Hello"}
POEM = {"role": "assistant", "content": "Roses are"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
SHELL = {"type": "custom", "custom": {"name": "shell"}}
NAMED = {"type": "function", "function": {"name": "now"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
PNG = "data:image/png;base64,AAAA"
REASONING: Json = {"reasoning_tokens": {"high": 5, "low": 1}}


def user(*parts: Any) -> list[Json]:
    return [{"role": "user", "content": list(parts)}]


def text_of(mock: Mock, path: str, **body: Any) -> str:
    choice = mock.whole(path, **body)["choices"][0]
    text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
    assert isinstance(text, str)
    return text


def tokens_of(mock: Mock, path: str, **body: Any) -> int:
    return int(mock.whole(path, **body)["usage"]["completion_tokens"])


def stops(mock: Mock, path: str) -> bool:
    text = text_of(mock, path)
    word = text.split()[3]
    whole = mock.whole(path, stop=["no such word", word])["choices"][0]
    return text_of(mock, path, stop=word) == text[: text.index(word)] and whole["finish_reason"] == "stop"


def includes_stop(mock: Mock, path: str) -> bool:
    text = text_of(mock, path)
    word = text.split()[3]
    return text_of(mock, path, stop=word, include_stop_str_in_output=True) == text[: text.index(word)] + word


def stops_at_token(mock: Mock, path: str) -> bool:
    tokens = mock.app.tokenizer.encode(text_of(mock, path))
    return tokens_of(mock, path, stop_token_ids=[tokens[3]]) < len(tokens)


def is_json(field: str, value: Any) -> Proof:
    return lambda mock, path: text_of(mock, path, **{field: value})[0] in '{["0123456789tfn-'


def limited(name: str) -> Proof:
    def proof(mock: Mock, path: str) -> bool:
        reply = mock.whole(path, **{name: 3})
        return bool(reply["usage"]["completion_tokens"] == 3 and reply["choices"][0]["finish_reason"] == "length")

    return proof


def called(**body: Any) -> Proof:
    def proof(mock: Mock, path: str) -> bool:
        message = mock.message(**body)
        call = message["function_call"] if "function_call" in message else message["tool_calls"][0]["function"]
        return bool(call["name"] == "now")

    return proof


def one_call(mock: Mock, path: str) -> bool:
    asked: Json = {"tools": [TOOL, SHELL], "tool_choice": "required"}
    several = Mock(tool_calls="3")
    return (
        len(several.message(**asked)["tool_calls"]) == 3
        and len(several.message(**asked, parallel_tool_calls=False)["tool_calls"]) == 1
    )


def reasons(mock: Mock, path: str) -> bool:
    thinks = Mock(**REASONING)
    details = thinks.whole(CHAT, reasoning_effort="high")["usage"]["completion_tokens_details"]
    return details["reasoning_tokens"] == 5 and "reasoning_content" not in thinks.message(reasoning_effort="none")


def hides_reasoning(mock: Mock, path: str) -> bool:
    thinks = Mock(**REASONING)
    return "reasoning_content" in thinks.message(reasoning_effort="high") and "reasoning_content" not in thinks.message(
        reasoning_effort="high", include_reasoning=False
    )


def budgets_reasoning(mock: Mock, path: str) -> bool:
    usage = Mock(**REASONING).whole(path, reasoning_effort="high", thinking_token_budget=2)["usage"]
    return bool(usage["completion_tokens_details"]["reasoning_tokens"] == 2)


def gathers(mock: Mock, path: str) -> bool:
    return len(mock.chunks(path, stream_interval=4)) < len(mock.chunks(path)) - 4


def names_reply(mock: Mock, path: str) -> bool:
    given = 'a "b" 100% \n\u00e9'
    prefix = "cmpl-" if path == COMPLETIONS else "chatcmpl-"
    ids = {mock.whole(path, request_id=given)["id"], *[chunk["id"] for chunk in mock.chunks(path, request_id=given)]}
    return ids == {prefix + given}


def truncates(mock: Mock, path: str) -> bool:
    text = "One two three four"
    prompt: Json = {"prompt": text} if path == COMPLETIONS else {"messages": [{"role": "user", "content": text}]}
    return bool(mock.whole(path, truncate_prompt_tokens=2, **prompt)["usage"]["prompt_tokens"] == 2)


def shows_ids(mock: Mock, path: str) -> bool:
    choice = mock.whole(path, return_token_ids=True)["choices"][0]
    return bool(mock.app.tokenizer.decode(choice["token_ids"]) == text_of(mock, path))


def names_by_id(mock: Mock, path: str) -> bool:
    wanted: Json = {"logprobs": 1} if path == COMPLETIONS else {"logprobs": True}
    logprobs = mock.whole(path, return_tokens_as_token_ids=True, **wanted)["choices"][0]["logprobs"]
    first = logprobs["tokens"][0] if path == COMPLETIONS else logprobs["content"][0]["token"]
    return bool(first == f"token_id:{mock.app.tokenizer.encode(text_of(mock, path))[0]}")


def predicts(mock: Mock, path: str) -> bool:
    usage = mock.whole(CHAT, prediction={"type": "content", "content": mock.text()})["usage"]
    return bool(usage["completion_tokens_details"]["accepted_prediction_tokens"])


def streams(mock: Mock, path: str) -> bool:
    return len(mock.chunks(path)) > 2


def counts_in_stream(mock: Mock, path: str) -> bool:
    with_usage = mock.chunks(path)
    without = mock.chunks(path, stream_options={})
    return bool(with_usage[-1]["usage"]) and not any(chunk.get("usage") for chunk in without)


def scores(mock: Mock, path: str) -> bool:
    logprobs = mock.whole(path, logprobs=2 if path == COMPLETIONS else True)["choices"][0]["logprobs"]
    return bool(logprobs["token_logprobs"] if path == COMPLETIONS else logprobs["content"])


def scores_two(mock: Mock, path: str) -> bool:
    logprobs = mock.whole(path, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]
    return {len(token["top_logprobs"]) for token in logprobs["content"]} == {2}


def scores_prompt(mock: Mock, path: str) -> bool:
    reply = mock.whole(path, prompt_logprobs=1)
    return bool(reply.get("prompt_logprobs") or reply["choices"][0].get("prompt_logprobs"))


def differs(name: str, first: Any, second: Any) -> Proof:
    return lambda mock, path: text_of(mock, path, **{name: first}) != text_of(mock, path, **{name: second})
