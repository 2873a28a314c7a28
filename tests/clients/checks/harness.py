"""What the checks of every client share; the standard library alone, since each client has its own environment.

A script of checks runs against the server that its environment variables name, and prints a JSON
line for each check: the row of the matrix, the feature, and what went wrong.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter
from typing import TypeVar
from urllib.request import Request, urlopen

ROOT = os.environ["MOCK_URL"]
BASE = ROOT + "/v1"
KEY = os.environ["MOCK_KEY"]
MODEL = os.environ["MOCK_MODEL"]
TOKENS = 24
"""Length of a free text, as the server of the suite is set."""

BROKEN = {"x-mockllm-fault": "kind=error,after_tokens=3,message=Out of order."}
"""Headers of a request whose stream ends in an error."""

QUESTION = "How is the weather in Paris?"
WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
PERSON_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}

E = TypeVar("E", bound=Exception)
Check = Callable[[], None]
_checks: list[tuple[str, str, Check]] = []


def check(row: str, feature: str) -> Callable[[Check], Check]:
    """Register a check for one cell of the matrix."""

    def register(function: Check) -> Check:
        _checks.append((row, feature, function))
        return function

    return register


def answer(*messages: tuple[str, str]) -> str:
    """What the server answers to (role, text) messages, asked over plain HTTP: equal in every dialect."""
    body = {"model": MODEL, "messages": [{"role": role, "content": text} for role, text in messages]}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = Request(BASE + "/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=30) as reply:
        text: str = json.load(reply)["choices"][0]["message"]["content"]
    assert text
    return text


def check_weather(arguments: object) -> None:
    """The arguments of a call of `get_weather`, checked by hand: no client's own validation is trusted."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert isinstance(given, dict), given
    assert set(given) == {"city", "unit"}, given
    assert isinstance(given["city"], str), given
    assert given["unit"] in ("celsius", "fahrenheit"), given


def check_person(given: object) -> None:
    """A document of `PERSON_SCHEMA`."""
    assert isinstance(given, dict), given
    assert set(given) == {"name", "age", "tags"}, given
    assert isinstance(given["name"], str), given
    assert type(given["age"]) is int, given
    assert all(isinstance(tag, str) for tag in given["tags"]), given


def raised(kind: type[E], ask: Callable[[], object]) -> E:
    """The error that `ask` raises, which has to be of a kind."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def main(*packages: str) -> None:
    """Run the checks and print what came of them.

    Args:
        packages: Distributions whose versions are told.
    """
    print(json.dumps({"versions": {package: version(package) for package in packages}}), flush=True)
    for row, feature, function in _checks:
        start = perf_counter()
        problem = ""
        try:
            function()
        except Exception:
            problem = traceback.format_exc()
        took = round(perf_counter() - start, 3)
        print(json.dumps({"row": row, "feature": feature, "problem": problem, "seconds": took}), flush=True)
