"""Messages as the chat and responses APIs write them, and the text in them.

Source: https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages; plain
strings among the parts are vLLM's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from mockllm.generation.plan import Message, Prompt

_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


class ContentPart(Struct):
    """One part of a message; of parts that are no text (images, audio, files) just the type is kept."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.type in _TEXT_TYPES:
            raise ValueError(f"a part of type `{self.type}` needs `text`")
        if self.refusal is None and self.type == "refusal":
            raise ValueError("a part of type `refusal` needs `refusal`")


Content = str | list[str | ContentPart] | None
"""What `content` may be; null in an assistant's turn that called tools."""


class ChatMessage(Struct):
    """One message. Any role is taken: `developer`, `function`, and those of chat templates."""

    role: str
    content: Content = None


def content_text(content: str | Sequence[str | ContentPart] | None) -> str:
    """All text of a message's content, its parts joined in order with nothing between."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part if isinstance(part, str) else _part_text(part) for part in content])


def prompt_of(messages: Iterable[ChatMessage]) -> Prompt:
    """The messages in no dialect."""
    return Prompt(tuple([Message(message.role, content_text(message.content)) for message in messages]))


def _part_text(part: ContentPart) -> str:
    if part.type in _TEXT_TYPES:
        return part.text or ""
    return part.refusal or "" if part.type == "refusal" else ""
