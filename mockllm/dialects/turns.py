"""The messages of a chat request, checked by role.

Source: https://platform.openai.com/docs/api-reference/chat/create#chat-create-messages; other
roles, a string for `image_url`, and `audio_url` and `video_url` are vLLM's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockllm.dialects.messages import ChatMessage, ContentPart
from mockllm.errors import RequestError

PLAIN_ROLES = frozenset({"user", "assistant", "system", "developer"})
"""Roles whose messages need no more than a text."""

_PARTS = (
    "text", "image_url", "input_audio", "file", "refusal", "audio_url", "video_url", "input_text", "output_text",
    "input_image", "thinking", "image_embeds", "audio_embeds",
)  # fmt: skip
_SCHEMES = ("http://", "https://", "data:", "file://")
_DETAILS = (None, "auto", "low", "high", "original")
_AUDIO_FORMATS = ("wav", "mp3")


class Turn(ChatMessage):
    """One message of a chat request."""

    name: str | None = None
    tool_call_id: str | None = None
    audio: dict[str, Any] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None

    @property
    def says_nothing(self) -> bool:
        """Without content, there is nothing else either that an assistant may have said."""
        return not (self.tool_calls or self.function_call or self.refusal or self.audio) and (
            self.reasoning is None and self.reasoning_content is None
        )


def check_turns(turns: Sequence[Turn]) -> None:
    """Refuse messages that lack what their role needs, and parts of the wrong shape.

    Raises:
        RequestError: With the place, e.g. `messages[1].tool_call_id`.
    """
    if not turns:
        raise _wrong("messages", "there must be at least one message")
    for number, turn in enumerate(turns):
        # The usual message has nothing to check.
        if turn.content.__class__ is not str or turn.role not in PLAIN_ROLES:
            _check(turn, f"messages[{number}]")


def _check(turn: Turn, place: str) -> None:
    role, content = turn.role, turn.content
    if role == "tool" and turn.tool_call_id is None:
        raise _wrong(f"{place}.tool_call_id", "this field is required in a message with role `tool`")
    if role == "function" and turn.name is None:
        raise _wrong(f"{place}.name", "this field is required in a message with role `function`")
    if content is None:
        if role == "assistant":
            if turn.says_nothing:
                raise _wrong(f"{place}.content", "this field is required where there are no `tool_calls`")
        elif role == "tool" or role in PLAIN_ROLES:
            raise _wrong(f"{place}.content", f"this field is required in a message with role `{role}`")
    elif not isinstance(content, str):
        for number, part in enumerate(content):
            if isinstance(part, ContentPart):
                _check_part(part, f"{place}.content[{number}]")


def _check_part(part: ContentPart, place: str) -> None:
    kind = part.type
    if kind not in _PARTS:
        raise _wrong(f"{place}.type", f"must be one of {', '.join(_PARTS)}, got {kind[:60]!r}")
    if kind in ("image_url", "input_image"):
        _check_url(part.image_url, f"{place}.image_url")
    elif kind in ("audio_url", "video_url"):
        _check_url(getattr(part, kind), f"{place}.{kind}")
    elif kind == "input_audio":
        format = (part.input_audio or {}).get("format")
        if format not in _AUDIO_FORMATS:
            given = "nothing" if format is None else repr(format)[:60]
            raise _wrong(f"{place}.input_audio.format", f"must be wav or mp3, got {given}")


def _check_url(given: str | dict[str, Any] | None, place: str) -> None:
    """An address that could be fetched, or the data itself. It is neither fetched nor decoded."""
    url, detail = (given, None) if not isinstance(given, dict) else (given.get("url"), given.get("detail"))
    if isinstance(given, dict):
        place += ".url"
    if not isinstance(url, str) or not url[:8].lower().startswith(_SCHEMES):
        raise _wrong(place, f"must be a URL that begins with one of {', '.join(_SCHEMES)}")
    if url[:5].lower() == "data:" and "," not in url:
        raise _wrong(place, "a data URL must have a comma before its data")
    if detail not in _DETAILS:
        raise _wrong(place.removesuffix("url") + "detail", f"must be auto, low, high or original, got {detail!r:.60}")


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
