"""The overrides, one row for each key: what the README says of it, what it does, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mockllm.generation.tokens import BuiltinTokenizer
from tests.said import CHAT, COMPLETIONS, MESSAGES, PATHS, RESPONSES, Said

_count = BuiltinTokenizer().count

USUAL_TOKENS, USUAL_TTFT_S, USUAL_ITL_S = 12, 0.1, 0.01
"""Of the server that the rows are tried on."""


class Row(Struct, frozen=True):
    """One key.

    Attributes:
        type: What its value is, for the README.
        value: An example.
        holds: Whether a reply to the example is as it should be; gets the path and whether it was streamed.
        wrong: Values that are refused.
        paths: Where it may be used.
        header_value: The example as the header has it; None for a key without one, or whose example is no scalar.
        wrong_headers: Header values that are refused.
    """

    key: str
    type: str
    value: Any
    holds: Callable[[Said, str, bool], bool]
    wrong: tuple[Any, ...]
    paths: tuple[str, ...] = PATHS
    header_value: str | None = None
    wrong_headers: tuple[str, ...] = ()


def _ttft(reply: Said, path: str, stream: bool) -> bool:
    last_s = 0.05 + (USUAL_TOKENS - 1) * USUAL_ITL_S
    return (reply.first_s, reply.last_s) == ((0.05 if stream else last_s), last_s)


def _itl(reply: Said, path: str, stream: bool) -> bool:
    last_s = USUAL_TTFT_S + (USUAL_TOKENS - 1) * 0.0025
    return (reply.first_s, reply.last_s) == ((USUAL_TTFT_S if stream else last_s), round(last_s, 9))


def _stalls(reply: Said, path: str, stream: bool) -> bool:
    gaps_ms = [400, 100, 0] * 4
    return reply.last_s == round(USUAL_TTFT_S + sum(gaps_ms[: USUAL_TOKENS - 1]) / 1e3, 9)


def _calls(reply: Said, path: str, stream: bool) -> bool:
    texts = ['{"city":"Nîmes","days":[1,2]}', "{}"]
    given = texts if path != MESSAGES else [{"city": "Nîmes", "days": [1, 2]}, {}]
    finish = {CHAT: "tool_calls", RESPONSES: "completed", MESSAGES: "tool_use"}[path]
    return (
        reply.calls == list(zip(("weather", "now"), given, strict=True))
        and reply.finish == finish
        and reply.tokens == 2 + sum(map(_count, texts))
    )


def _refused(reply: Said, path: str, stream: bool) -> bool:
    text = "I would rather not."
    where = (reply.text, reply.refusal)
    return where == ((text, "") if path in (COMPLETIONS, MESSAGES) else ("", text)) and reply.tokens == _count(text)


_FILTERED = {CHAT: "content_filter", COMPLETIONS: "content_filter", RESPONSES: "content_filter", MESSAGES: "refusal"}
_TEXT = 'Hé "you"\\: <b>🙂</b> \n\tdone'

ROWS = (
    Row(
        "ttft_ms",
        "number ≥ 0, or distribution",
        50,
        _ttft,
        (-1, "50", True, [50], {"type": "normal"}, 2e9),
        header_value="50",
        wrong_headers=("-1", "", "fast", "nan", "inf", "1e400"),
    ),
    Row(
        "itl_ms",
        "number ≥ 0, list of numbers, or distribution",
        2.5,
        _itl,
        (-0.1, "2.5", [], [1, -1], {"type": "uniform", "low": 2, "high": 1}, {"type": "gauss"}),
        header_value="2.5",
        wrong_headers=("-1", "2,5", "[1]"),
    ),
    Row("itl_ms", "number ≥ 0, list of numbers, or distribution", [400, 100, 0], _stalls, ()),
    Row(
        "output_tokens",
        "whole number ≥ 1",
        5,
        lambda reply, path, stream: reply.tokens == 5 == _count(reply.text),
        (0, -1, 2.5, "5", 10**7),
        header_value="5",
        wrong_headers=("0", "2.5", "many"),
    ),
    Row(
        "text",
        "text",
        _TEXT,
        lambda reply, path, stream: reply.text == _TEXT and reply.tokens == _count(_TEXT),
        (5, ["a"], {}),
    ),
    Row(
        "text",
        "text",
        "",
        lambda reply, path, stream: reply.text == "" and reply.tokens == 0,
        (),
        header_value="",
    ),
    Row(
        "reasoning",
        "text",
        "Let me think: 2 + 2.",
        lambda reply, path, stream: (
            reply.reasoning == "Let me think: 2 + 2."
            and reply.text != ""
            and reply.tokens == USUAL_TOKENS + _count(reply.reasoning)
        ),
        (5, []),
        (CHAT, RESPONSES, MESSAGES),
        header_value="Let me think: 2 + 2.",
    ),
    Row(
        "refusal",
        "text, not empty",
        "I would rather not.",
        _refused,
        ("", 5, False),
        header_value="I would rather not.",
        wrong_headers=("",),
    ),
    Row(
        "tool_calls",
        "list of `{name, arguments}`",
        [{"name": "weather", "arguments": {"city": "Nîmes", "days": [1, 2]}}, {"name": "now"}],
        _calls,
        ({}, [{}], [{"name": ""}], [{"name": "f", "arguments": 5}], [{"name": "f", "args": {}}], "f"),
        (CHAT, RESPONSES, MESSAGES),
    ),
    Row(
        "finish_reason",
        "`stop`, `length`, `tool_calls`, `content_filter` or `function_call`",
        "content_filter",
        lambda reply, path, stream: reply.finish == _FILTERED[path] and reply.tokens == USUAL_TOKENS,
        ("", "end_turn", 5),
        header_value="content_filter",
        wrong_headers=("", "end_turn"),
    ),
    Row(
        "seed",
        "whole number",
        7,
        lambda reply, path, stream: reply.text == SEEDED[path],
        (2.5, "7", 2**63),
        header_value="7",
        wrong_headers=("2.5", "x", str(2**63)),
    ),
    Row(
        "fault",
        "a fault, a list of them, or their text",
        {"kind": "status", "status": 429},
        lambda reply, path, stream: False,  # no reply of the usual kind: it has a test of its own
        ({"kind": "sttaus"}, "kind=nothing", {"kind": "status", "stattus": 429}),
    ),
)

SEEDED: dict[str, str] = {}
"""By path: what a request whose own `seed` is 7 gets; filled by the test."""
