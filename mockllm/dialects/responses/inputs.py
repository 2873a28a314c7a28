"""Input items, read as the messages that the Chat Completions API would have been sent.

A model sees one conversation, whichever API it came through: a function call is an assistant's
turn, its output a tool's turn, and what stands in several items of one turn is one message. So
the same conversation is counted, keyed and answered alike in both dialects.

Source: https://platform.openai.com/docs/api-reference/responses/create#responses-create-input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from mockllm.errors import RequestError
from mockllm.generation.plan import Message

_ROLES = ("user", "assistant", "system", "developer")
_TEXT_PARTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_OTHER_PARTS = ("refusal", "input_image", "input_file", "input_audio", "computer_screenshot", "encrypted_content")
_CALLS = ("function_call", "custom_tool_call")
_CALL_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class InputPart(Struct, gc=False):
    """A part of an item's content."""

    type: str
    text: str | None = None
    refusal: str | None = None


class InputItem(Struct):
    """An item of the input, of any type; the easy form of a message has no type."""

    type: str | None = None
    role: str | None = None
    content: str | list[InputPart] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    output: Any = None

    @property
    def kind(self) -> str:
        """Its type; without one it is a message, or (with an id alone) a reference."""
        if self.type is not None:
            return self.type
        return "message" if self.role is not None or self.id is None else "item_reference"


class Reading(Struct):
    """What was read out of the input: messages, and how many parts are no text."""

    messages: list[Message]
    images: int = 0
    files: int = 0
    audios: int = 0


Resolve = Callable[[str], Iterable[Message] | None]
"""Finds a stored item by its id: the messages that it stands for, or None."""


def read_input(given: str | Sequence[InputItem] | None, resolve: Resolve) -> Reading:
    """The messages of an input.

    Args:
        given: A text, which is one user message, or items.
        resolve: Finds the items that are only referred to.

    Raises:
        RequestError: An item lacks what its type needs, or is not there.
    """
    reading = Reading([])
    if given is None:
        return reading
    if isinstance(given, str):
        reading.messages.append(Message("user", given))
        return reading
    for number, item in enumerate(given):
        _read_item(item, number, reading, resolve)
    return reading


def _read_item(item: InputItem, number: int, reading: Reading, resolve: Resolve) -> None:
    kind = item.kind
    place = f"input[{number}]"
    if kind == "message":
        if item.role not in _ROLES:
            raise _wrong(f"{place}.role", f"must be one of {', '.join(_ROLES)}, got {item.role!r}.")
        if item.content is None:
            raise _wrong(f"{place}.content", "is missing.")
        text = _text(item.content, f"{place}.content", reading)
        if item.role == "assistant":
            add_assistant(reading.messages, text)
        else:
            reading.messages.append(Message(item.role, text))
    elif kind in _CALLS:
        given = item.arguments if kind == "function_call" else item.input
        for field, value in (("call_id", item.call_id), ("name", item.name), (_ARGUMENT[kind], given)):
            if value is None:
                raise _wrong(f"{place}.{field}", "is missing.")
        add_assistant(reading.messages, "")
    elif kind in _CALL_OUTPUTS:
        if item.call_id is None:
            raise _wrong(f"{place}.call_id", "is missing.")
        reading.messages.append(Message("tool", _output(item.output, f"{place}.output", reading)))
    elif kind == "item_reference":
        _refer(item, place, reading, resolve)
    # Reasoning and the items of hosted tools hold nothing that a chat request would: no text of a turn.


_ARGUMENT = {"function_call": "arguments", "custom_tool_call": "input"}


def add_assistant(messages: list[Message], text: str) -> None:
    """Add an assistant's item: text and the calls after it are one turn."""
    if messages and messages[-1].role == "assistant" and not text:
        return
    messages.append(Message("assistant", text))


def _refer(item: InputItem, place: str, reading: Reading, resolve: Resolve) -> None:
    if item.id is None:
        raise _wrong(f"{place}.id", "is missing.")
    found = resolve(item.id)
    if found is None:
        raise RequestError(
            f"Item with id {item.id[:100]!r} not found. Items are not kept when `store` is false.",
            param="input",
            code=None,
            status=404,
        )
    for message in found:
        if message.role == "assistant":
            add_assistant(reading.messages, message.text)
        else:
            reading.messages.append(message)


def _text(content: str | Sequence[InputPart], place: str, reading: Reading) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for number, part in enumerate(content):
        if part.type in _TEXT_PARTS:
            if part.text is None:
                raise _wrong(f"{place}[{number}].text", "is missing.")
            texts.append(part.text)
        elif part.type == "refusal":
            texts.append(part.refusal or "")
        elif part.type in _OTHER_PARTS:
            _count(part.type, reading)
        else:
            allowed = ", ".join((*_TEXT_PARTS[:2], *_OTHER_PARTS[:4]))
            raise _wrong(f"{place}[{number}].type", f"must be one of {allowed}, got {part.type[:60]!r}.")
    return "".join(texts)


def _output(output: object, place: str, reading: Reading) -> str:
    """The text of a call's output: a string, or parts."""
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        raise _wrong(place, "must be a string or an array of parts.")
    texts: list[str] = []
    for number, part in enumerate(output):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in (*_TEXT_PARTS, *_OTHER_PARTS):
            raise _wrong(f"{place}[{number}].type", "must be one of input_text, input_image, input_file.")
        if kind in _TEXT_PARTS:
            text = part.get("text")
            if not isinstance(text, str):
                raise _wrong(f"{place}[{number}].text", "must be a string.")
            texts.append(text)
        else:
            _count(kind, reading)
    return "".join(texts)


def _count(kind: str, reading: Reading) -> None:
    if kind in ("input_image", "computer_screenshot"):
        reading.images += 1
    elif kind == "input_file":
        reading.files += 1
    elif kind == "input_audio":
        reading.audios += 1


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"$.{place} {problem}", param=place)
