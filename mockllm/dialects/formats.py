"""What the text of a reply has to be, in the ways that chat and completions say it.

Source: https://platform.openai.com/docs/api-reference/chat/create (`response_format`); vLLM's
`structured_outputs` and its older `guided_json`, `guided_choice`, `guided_regex`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mockllm.errors import RequestError
from mockllm.generation.plan import OutputFormat

_TEXT = OutputFormat()


class Formatted(Struct):
    """The fields of a request that say what the text has to be."""

    response_format: dict[str, Any] | None = None
    guided_json: dict[str, Any] | str | bool | None = None
    guided_choice: list[str] | None = None
    guided_regex: str | None = None
    guided_grammar: str | None = None
    structured_outputs: dict[str, Any] | None = None


def read_format(asked: Formatted) -> OutputFormat:
    """What the text has to be.

    Raises:
        RequestError: An unknown format, one without what it needs, or several that contradict.
    """
    # The usual request says nothing about it.
    if (
        asked.response_format is None
        and asked.structured_outputs is None
        and asked.guided_json is None
        and asked.guided_choice is None
        and asked.guided_regex is None
        and asked.guided_grammar is None
    ):
        return _TEXT
    ways: list[tuple[str, str, Any]] = [
        ("json", "guided_json", asked.guided_json),
        ("choice", "guided_choice", asked.guided_choice),
        ("regex", "guided_regex", asked.guided_regex),
        ("grammar", "guided_grammar", asked.guided_grammar),
    ]
    if asked.structured_outputs is not None:
        keys = ("json", "choice", "regex", "grammar", "json_object")
        ways += [(key, f"structured_outputs.{key}", asked.structured_outputs.get(key)) for key in keys]
    # vLLM's clients send false for a way that is not meant.
    given = [way for way in ways if way[2] is not None and way[2] is not False]
    if len(given) > 1:
        names = " and ".join([param for _, param, _ in given])
        raise RequestError(f"Only one of {names} can be used.", param=given[1][1])
    if given:
        return _guided(*given[0])
    return _response_format(asked.response_format)


def _guided(kind: str, param: str, value: Any) -> OutputFormat:
    if kind == "json":
        return OutputFormat("json_schema", schema=_schema(value, param), param=param)
    if kind == "json_object":
        return OutputFormat("json_object", param=param)
    if kind == "choice":
        if not isinstance(value, list) or not value or not all(isinstance(choice, str) for choice in value):
            raise _wrong(param, "must be an array of strings that is not empty")
        return OutputFormat("choice", choices=tuple(value), param=param)
    if kind == "regex":
        if not isinstance(value, str):
            raise _wrong(param, "must be a string")
        return OutputFormat("regex", pattern=value, param=param)
    raise _wrong(param, "no text can be made for a grammar here; use json, choice or regex")


def _schema(value: Any, param: str) -> dict[str, Any] | bool:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            raise _wrong(param, "must be a JSON schema, or one as a string") from None
    if not isinstance(value, dict | bool):
        raise _wrong(param, "must be a JSON schema")
    return value


def _response_format(given: Mapping[str, Any] | None) -> OutputFormat:
    if given is None:
        return _TEXT
    kind = given.get("type")
    # A structural tag (vLLM) constrains only what stands between its tags; a text has none of them.
    if kind in ("text", "structural_tag"):
        return OutputFormat()
    if kind == "json_object":
        return OutputFormat("json_object")
    if kind != "json_schema":
        raise _wrong("response_format.type", f"must be text, json_object or json_schema, got {str(kind)[:60]!r}")
    place = "response_format.json_schema"
    inside = given.get("json_schema")
    if not isinstance(inside, dict):
        raise _wrong(place, "must be an object with a name and a schema")
    if not isinstance(inside.get("name"), str) or not inside["name"]:
        raise _wrong(f"{place}.name", "must be a string that is not empty")
    schema, strict = inside.get("schema"), inside.get("strict")
    if schema is not None and not isinstance(schema, dict):
        raise _wrong(f"{place}.schema", "must be an object: a JSON schema")
    if strict is not None and not isinstance(strict, bool):
        raise _wrong(f"{place}.strict", "must be true or false")
    return OutputFormat("json_schema", schema=schema, strict=bool(strict), param=f"{place}.schema")


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
