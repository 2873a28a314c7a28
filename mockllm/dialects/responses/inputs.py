"""Input items, read as the messages that the Chat Completions API would have been sent.

A model sees one conversation, whichever API it came through: a function call is an assistant's
turn, its output a tool's turn, and what stands in several items of one turn is one message. So
the same conversation is counted, keyed and answered alike in both dialects.

Source: https://platform.openai.com/docs/api-reference/responses/create#responses-create-input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mockllm.dialects.decode import invalid
from mockllm.errors import RequestError
from mockllm.generation.plan import Media, Message, call_text

_ROLES = ("user", "assistant", "system", "developer")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_CALL_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class InputPart(Struct):
    """A part of an item's content; of what is no text, where it comes from."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | dict[str, Any] | None = None
    file_id: str | None = None
    file_url: str | None = None
    file_data: str | None = None
    input_audio: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.type in _TEXT_PARTS and self.text is None:
            raise ValueError(f"a part of type `{self.type}` needs `text`")
        if self.type == "refusal" and self.refusal is None:
            raise ValueError("a part of type `refusal` needs `refusal`")
        self.media()

    def media(self) -> Media | None:
        """The image, recording or file that the part is.

        Raises:
            ValueError: It lacks its source.
        """
        known = _MEDIA.get(self.type)
        if known is None:
            return None
        kind, fields = known
        for field in fields:
            source = getattr(self, field)
            if isinstance(source, dict):  # the Chat Completions API's way; and a recording, here as well
                source = source.get("data" if kind == "audio" else "url")
            if isinstance(source, str):
                return Media(kind, blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        raise ValueError(f"a part of type `{self.type}` needs `{'`, `'.join(fields)}`")


_TEXT_PARTS = ("input_text", "output_text", "text")
_MEDIA: dict[str, tuple[Literal["image", "audio", "file"], tuple[str, ...]]] = {
    "input_image": ("image", ("image_url", "file_id")),
    "computer_screenshot": ("image", ("image_url", "file_id")),
    "input_file": ("file", ("file_id", "file_url", "file_data")),
    "input_audio": ("audio", ("input_audio",)),
}
_PARTS = ("refusal", "encrypted_content", *_TEXT_PARTS, *_MEDIA)


class InputItem(Struct):
    """An item of the input, of any type; the easy form of a message has no type."""

    type: str | None = None
    role: str | None = None
    content: str | list[str | InputPart] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    output: Any = None

    @property
    def kind(self) -> str:
        """Its type; without one it is a message, or (with an id alone) a reference."""
        if self.type is not None:
            return self.type
        return "message" if self.role is not None or self.id is None else "item_reference"


class Reading(Struct):
    """What was read out of the input: messages, and what in them is no text."""

    messages: list[Message]
    media: list[Media]


Resolve = Callable[[str], Reading | None]
"""Finds a stored item by its id: what it holds, or None."""


def read_input(given: str | Sequence[InputItem] | None, resolve: Resolve) -> Reading:
    """The messages of an input.

    Args:
        given: A text, which is one user message, or items.
        resolve: Finds the items that are only referred to.

    Raises:
        RequestError: An item lacks what its type needs, or is not there.
    """
    reading = Reading([], [])
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
            raise wrong(f"{place}.role", f"must be one of {', '.join(_ROLES)}, got {item.role!r}")
        if item.content is None:
            raise wrong(f"{place}.content", "this field is required")
        before = len(reading.media)
        text = _text(item.content, f"{place}.content", reading)
        reading.messages.append(Message(item.role, text, media=len(reading.media) - before))
    elif kind in _CALLS:
        given = item.arguments if kind == "function_call" else item.input
        for field, value in (("call_id", item.call_id), ("name", item.name), (_CALLS[kind], given)):
            if not isinstance(value, str):
                raise wrong(f"{place}.{field}", "must be a string" if value is not None else "this field is required")
        add_call(reading.messages, call_text(str(item.name), given))
    elif kind in _CALL_OUTPUTS:
        if item.call_id is None:
            raise wrong(f"{place}.call_id", "this field is required")
        before = len(reading.media)
        text = _output(item.output, f"{place}.output", reading)
        reading.messages.append(Message("tool", text, media=len(reading.media) - before))
    elif kind == "item_reference":
        _refer(item, place, reading, resolve)
    # Reasoning and the items of hosted tools hold nothing that a chat request would: no turn's text.


def add_call(messages: list[Message], *calls: str) -> None:
    """Add a call's text: it belongs to the assistant's turn before it, else it is a turn without text."""
    if not messages or messages[-1].role != "assistant":
        messages.append(Message("assistant", "", calls))
    else:
        turn = messages[-1]
        messages[-1] = replace(turn, calls=turn.calls + calls)


def _refer(item: InputItem, place: str, reading: Reading, resolve: Resolve) -> None:
    if item.id is None:
        raise wrong(f"{place}.id", "this field is required")
    found = resolve(item.id)
    if found is None:
        raise RequestError(
            f"Item with id {item.id[:100]!r} not found. Items are not kept when `store` is false.",
            param="input",
            code=None,
            status=404,
        )
    reading.media += found.media
    for message in found.messages:
        if message.calls and not message.text:
            add_call(reading.messages, *message.calls)
        else:
            reading.messages.append(message)


def _text(content: str | Sequence[str | InputPart], place: str, reading: Reading) -> str:
    """All text of a content, its parts joined with nothing between; what is no text is noted."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for number, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        if part.type not in _PARTS:
            raise wrong(f"{place}[{number}].type", f"must be one of {', '.join(_PARTS)}, got {part.type[:60]!r}")
        media = part.media()
        if media is not None:
            reading.media.append(media)
        else:
            texts.append(part.text or part.refusal or "")
    return "".join(texts)


def _output(output: object, place: str, reading: Reading) -> str:
    """The text of a call's output: a string, or parts."""
    if isinstance(output, str):
        return output
    try:
        content = msgspec.convert(output, list[str | InputPart])
    except msgspec.ValidationError as error:
        raise invalid(_below(str(error), place)) from None
    return _text(content, place, reading)


def _below(message: str, place: str) -> str:
    """A message of msgspec about a value that stands at `place`."""
    if "`$" in message:
        return message.replace("`$", f"`$.{place}")
    return f"{message} - at `$.{place}`"


def wrong(place: str, problem: str) -> RequestError:
    """The error for a field of the wrong shape, e.g. `wrong("input[0].role", "must be …")`."""
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
