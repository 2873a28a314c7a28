"""The converter's face: reads chunks in any form, keeps count of them, and closes after an error."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from mockllm.dialects.convert.agents import AgentsProfile
from mockllm.dialects.convert.chunks import ChatChunk, carries_error, read_chunk, stream_error
from mockllm.dialects.convert.layouts import Layout0160, Layout0161
from mockllm.dialects.convert.openai import OpenAIProfile
from mockllm.dialects.responses_events import Response, StreamEvent
from mockllm.errors import ConversionError

logger = logging.getLogger("mockllm.dialects.convert")

Profile = Literal["openai", "agents", "agents-0.16.1"]


class Dumping(Protocol):
    """A model of the SDK."""

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


ResponseFields = Response | Mapping[str, Any] | Dumping


class _Machine(Protocol):
    def feed(self, chunk: ChatChunk) -> list[StreamEvent]: ...

    def finish(self) -> list[StreamEvent]: ...


_PROFILES: dict[str, Callable[[Response, str | None, Callable[[str], str]], _Machine]] = {
    "openai": OpenAIProfile,
    "agents": lambda base, model, ids: AgentsProfile(base, model, ids, Layout0160()),
    "agents-0.16.1": lambda base, model, ids: AgentsProfile(base, model, ids, Layout0161()),
}


def make_id(kind: str) -> str:
    """A random id of a kind, e.g. `msg_` and 48 hex digits, as long as OpenAI's."""
    return f"{kind}_{os.urandom(24).hex()}"


class ChatToResponses:
    """Turns the chunks of one Chat Completions stream into the events of a Responses stream.

    A state machine without I/O: every call returns at once what its input makes.

    Args:
        model: Name used for provider-specific handling; None for none (`agents`) or for the
            chunks' own (`openai`).
        profile: `openai`, what the Responses API would have sent; `agents`, event for event what
            openai-agents-python 0.11 to 0.16.0 makes of the stream; `agents-0.16.1`, the same with
            that version's output indexes.
        ids: Makes the id of a new object: `ids(kind)` with kind `msg`, `rs`, `fc` or `ctc` for items,
            `call` for a call that came without an id, `resp` for a response that has none. Ids of one
            stream must differ (but in `agents`, which can do with one).
        response: Fields of the response object (id, created_at, tools …) as a struct, a mapping or the
            SDK's object; model and created_at are taken from the first chunk where they are missing.
        strict: Refuse chunks with a choice other than 0, which are otherwise ignored with a warning.

    Raises:
        ValueError: There is no such profile, or `response` is no response.
    """

    __slots__ = ("_agents", "_chunks", "_closed", "_finished", "_machine", "_strict", "_warned")

    def __init__(
        self,
        model: str | None = None,
        profile: Profile = "openai",
        ids: Callable[[str], str] = make_id,
        response: ResponseFields | None = None,
        *,
        strict: bool = False,
    ) -> None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, not {profile!r}")
        self._machine = _PROFILES[profile](_base_response(response), model, ids)
        self._strict = strict
        self._agents = profile != "openai"
        self._warned = False
        self._chunks = 0
        self._closed: ConversionError | None = None
        self._finished = False

    def feed(self, chunk: ChatChunk | bytes | str | Mapping[str, Any] | object) -> list[StreamEvent]:
        """Takes the next chunk.

        Args:
            chunk: The JSON of one SSE data line, a `ChatChunk`, a mapping, or the SDK's chunk object.
                `[DONE]` is taken and makes no events.

        Returns:
            The events that it makes, often none or one.

        Raises:
            ConversionError: It is no chunk, or the converter is closed.
        """
        if self._closed is not None or self._finished:
            raise self._refusal()
        number = self._chunks
        self._chunks = number + 1
        try:
            if type(chunk) is ChatChunk:
                return self._machine.feed(self._checked(chunk, number))
            if chunk == b"[DONE]" or chunk == "[DONE]":
                return []
            return self._machine.feed(self._checked(read_chunk(chunk, number), number))
        except ConversionError as broken:
            self._closed = broken
            raise

    def finish(self) -> list[StreamEvent]:
        """Ends the stream. Called again, it returns nothing.

        Returns:
            The events that close it.

        Raises:
            ConversionError: The converter is closed by an earlier error.
        """
        if self._closed is not None:
            raise self._refusal()
        if self._finished:
            return []
        self._finished = True
        return self._machine.finish()

    def _refusal(self) -> ConversionError:
        if self._closed is None:
            return ConversionError("the converter is closed: its stream was finished", chunk=self._chunks)
        cause = self._closed
        message = f"the converter is closed: chunk {cause.chunk} was broken ({cause.message})"
        return ConversionError(message, chunk=self._chunks, path="$")

    def _checked(self, chunk: ChatChunk, number: int) -> ChatChunk:
        if self._agents and carries_error(chunk):
            # The SDK raises before its handler sees such a chunk.
            error = stream_error(chunk)
            raise ConversionError(f"the stream carries an error: {error.message}", chunk=number, path="$.error")
        for position, choice in enumerate(chunk.choices or ()):
            if choice.index != 0:
                self._other_choice(choice.index, number, position)
        return chunk

    def _other_choice(self, index: int, number: int, position: int) -> None:
        if self._strict:
            message = f"choice {index} has no place in a response; only choice 0 is converted"
            raise ConversionError(message, chunk=number, path=f"$.choices[{position}].index")
        # The agents handler looks at the first choice, whatever its index.
        if not self._warned and not self._agents:
            self._warned = True
            logger.warning("chunk %d: choice %d is left out; only choice 0 is converted", number, index)


def _base_response(response: ResponseFields | None) -> Response:
    if isinstance(response, Response):
        return response
    if response is not None and not isinstance(response, Mapping) and hasattr(response, "model_dump"):
        response = response.model_dump(mode="json")
    if not isinstance(response, Mapping | None):
        raise ValueError(f"response must be a Response or a mapping, not {type(response).__name__}")
    # null is what a dump writes for a field that was never set.
    fields = {key: value for key, value in (response or {}).items() if value is not None}
    try:
        return msgspec.convert(fields, Response)
    except msgspec.ValidationError as error:
        raise ValueError(f"response: {error}") from None
