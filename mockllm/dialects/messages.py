"""Messages as the chat and tokenizer endpoints take them: their text and calls, and what in them is no text.

Images, recordings and files are checked for their shape and counted; nothing is ever fetched or
decoded.

Source: https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages; plain
strings among the parts, `image_url` as a string, `audio_url` and `video_url` are vLLM's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct

from mockllm.generation.plan import Media, Message, Prompt, call_text

MediaKind = Literal["image", "audio", "file"]

_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})

# By the type of a part: what it is, the field with its source, and the keys one of which has to be there.
_MEDIA: dict[str, tuple[MediaKind, str, tuple[str, ...]]] = {
    "image_url": ("image", "image_url", ("url",)),
    "video_url": ("image", "video_url", ("url",)),
    "audio_url": ("audio", "audio_url", ("url",)),
    "input_audio": ("audio", "input_audio", ("data",)),
    "file": ("file", "file", ("file_id", "file_data")),
    "input_image": ("image", "image_url", ("url",)),
}


class ContentPart(Struct):
    """One part of a message. Parts of types that are not known are accepted and count nothing."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: str | dict[str, Any] | None = None
    video_url: str | dict[str, Any] | None = None
    audio_url: str | dict[str, Any] | None = None
    input_audio: dict[str, Any] | None = None
    file: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.type in _TEXT_TYPES:
            raise ValueError(f"a part of type `{self.type}` needs `text`")
        if self.refusal is None and self.type == "refusal":
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
        kind, field, keys = known
        source = getattr(self, field)
        if isinstance(source, dict):
            source = next((source[key] for key in keys if isinstance(source.get(key), str)), None)
        if not isinstance(source, str):
            raise ValueError(f"a part of type `{self.type}` needs `{field}` with {' or '.join(keys)}")
        return Media(kind, blake2b(source.encode(), digest_size=16).digest())


Content = str | list[str | ContentPart] | None
"""What `content` may be; null in an assistant's turn that called tools."""


class CalledFunction(Struct):
    """The function of a call; the arguments are a text, which need be no JSON."""

    name: str
    arguments: str


class CalledCustom(Struct):
    """The custom tool of a call."""

    name: str
    input: str


class Call(Struct):
    """One of an assistant's `tool_calls`."""

    id: str
    type: Literal["function", "custom"] = "function"
    function: CalledFunction | None = None
    custom: CalledCustom | None = None

    def __post_init__(self) -> None:
        if getattr(self, self.type) is None:
            raise ValueError(f"a call of type `{self.type}` needs `{self.type}`")

    @property
    def text(self) -> str:
        """The call as a prompt has it."""
        if self.function is not None:
            return call_text(self.function.name, self.function.arguments)
        return call_text(self.custom.name, self.custom.input) if self.custom is not None else ""


class ChatMessage(Struct):
    """One message. Any role is taken: `developer`, `function`, and those of chat templates."""

    role: str
    content: Content = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    function_call: CalledFunction | None = None

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls that it made, as a prompt has them."""
        calls = [call.text for call in self.tool_calls or ()]
        if self.function_call is not None:
            calls.append(call_text(self.function_call.name, self.function_call.arguments))
        return tuple(calls)


def content_text(content: str | Sequence[str | ContentPart] | None) -> str:
    """All text of a message's content, its parts joined in order with nothing between."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part if isinstance(part, str) else _part_text(part) for part in content])


def prompt_of(messages: Iterable[ChatMessage]) -> Prompt:
    """The messages in no dialect."""
    media: list[Media] = []
    turns: list[Message] = []
    for message in messages:
        content = message.content
        text = content if isinstance(content, str) else content_text(content)
        if message.refusal is not None:
            text += message.refusal
        calls = () if message.tool_calls is None and message.function_call is None else message.calls
        inside: list[Media] = []
        if isinstance(content, list):
            inside = [found for part in content if isinstance(part, ContentPart) and (found := part.media())]
            media += inside
        turns.append(Message(message.role, text, calls, len(inside)))
    return Prompt(tuple(turns), media=tuple(media))


def _part_text(part: ContentPart) -> str:
    if part.type in _TEXT_TYPES:
        return part.text or ""
    return part.refusal or "" if part.type == "refusal" else ""
