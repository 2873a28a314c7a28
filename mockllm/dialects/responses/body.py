"""A decoded request, as the rest of the dialect uses it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from mockllm.dialects.decode import too_deep
from mockllm.dialects.responses.inputs import Reading, read_input
from mockllm.dialects.responses.request import ResponsesRequest
from mockllm.dialects.responses.tools import echoed_format, echoed_tools
from mockllm.generation.plan import Media, Message


class ResponsesBody(Struct, gc=False):
    """A decoded request.

    Attributes:
        asked: Its fields.
        raw: The body as it came, for what is read back of it; empty where nothing will be.
        messages: The conversation that is answered, without the instructions.
        media: What in it is no text.
        echo: Fields of the response object that repeat the request's, as `echo_of` makes them.
    """

    asked: ResponsesRequest
    raw: bytes
    messages: list[Message]
    media: list[Media]
    echo: dict[str, Any]

    def input_item(self, number: int) -> Reading | None:
        """What one item of its own input holds."""
        given = self.asked.input
        if isinstance(given, str):
            return read_input(given, _nothing) if number == 0 else None
        if given is None or number >= len(given):
            return None
        return read_input(given[number : number + 1], _nothing)


def _nothing(_identity: str) -> None:
    return None


_encode = msgspec.json.Encoder().encode
_PLAIN_TEXT = Raw(_encode({"format": {"type": "text"}, "verbosity": "medium"}))


def echo_of(asked: ResponsesRequest) -> dict[str, Any]:
    """The nested fields that the response object repeats, encoded once for all its events.

    Raises:
        RequestError: A field is nested more deeply than it could be sent back.
    """
    echo: dict[str, Any] = {"text": _PLAIN_TEXT}
    text = asked.text
    try:
        if text is not None:
            echo["text"] = _raw({"format": echoed_format(text.format), "verbosity": text.verbosity or "medium"})
        if asked.tools:
            echo["tools"] = _raw(echoed_tools(asked.tools))
        if asked.tool_choice is not None:
            echo["tool_choice"] = _raw(asked.tool_choice)
        if asked.prompt is not None:
            echo["prompt"] = _raw(asdict(asked.prompt))
    except RecursionError:
        raise too_deep() from None
    return echo


def _raw(value: object) -> Raw:
    return Raw(_encode(value))
