"""Responses that can be read back, in bounded memory.

A response's state is a function of the time asked at and of its plan: nothing runs for it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mockllm.dialects.dialect import Context
from mockllm.dialects.responses.assembly import Draft, drafts, response_of_item, text_of
from mockllm.dialects.responses.body import ResponsesBody
from mockllm.dialects.responses.inputs import Reading, add_call
from mockllm.dialects.responses_events import ResponseStatus
from mockllm.generation.plan import Message, call_text

MAX_RESPONSES = 1000
MAX_BYTES = 64 << 20
_OVERHEAD_BYTES = 4096


class Stored(Struct, gc=False):
    """One response that can be read back.

    Attributes:
        arrival_s: The zero of its timeline, in the clock's seconds.
        size_bytes: An estimate of the memory that it keeps.
        cancelled: It was cancelled before its end.
    """

    context: Context
    arrival_s: float
    size_bytes: int = 0
    cancelled: bool = False

    def status_at(self, now: float) -> ResponseStatus | None:
        """Where it stands; None where it has ended by itself.

        A background response is queued until its first token.
        """
        if self.cancelled:
            return "cancelled"
        plan = self.context.plan
        elapsed = now - self.arrival_s
        if elapsed >= plan.end_s:
            return None
        return "queued" if self.context.body.asked.background and elapsed < plan.offset_s else "in_progress"

    def conversation(self) -> list[Message]:
        """The turns that a response after this one continues: without the instructions."""
        messages = list(self.context.body.messages)
        if self.cancelled:
            return messages
        for draft in drafts(self.context.id, self.context.plan.choices[0]):
            if draft.kind == "text":
                messages.append(Message("assistant", "".join([text_of(segment) for segment in draft.segments])))
            elif draft.kind == "tool":
                add_call(messages, _call(draft))
        return messages


class ResponseStore:
    """The latest responses, by id; the oldest make room for new ones.

    Args:
        max_responses: Most responses kept.
        max_bytes: Most memory that they may keep, as estimated.

    Attributes:
        elsewhere: Says where a response is that is not here, as a sentence after a space; or nothing.
    """

    def __init__(self, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._by_id: dict[str, Stored] = {}
        self._bytes = 0
        self.elsewhere: Callable[[str], str] = lambda identity: ""

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def size_bytes(self) -> int:
        """Memory kept, as estimated."""
        return self._bytes

    def put(self, context: Context, arrival_s: float) -> Stored:
        """Keep a response."""
        stored = Stored(context, arrival_s, _size(context))
        self._by_id[context.id] = stored
        self._bytes += stored.size_bytes
        while self._by_id and (len(self._by_id) > self._max_responses or self._bytes > self._max_bytes):
            self.remove(next(iter(self._by_id)))
        return stored

    def get(self, identity: str) -> Stored | None:
        """The response with this id."""
        return self._by_id.get(identity)

    def remove(self, identity: str) -> Stored | None:
        """Forget a response; the one that was there."""
        stored = self._by_id.pop(identity, None)
        if stored is not None:
            self._bytes -= stored.size_bytes
        return stored

    def item(self, identity: str) -> Reading | None:
        """What an item of a stored response holds, for `item_reference`."""
        response_id, number, of_input = response_of_item(identity)
        stored = self._by_id.get(response_id)
        if stored is None:
            return None
        if of_input:
            body: ResponsesBody = stored.context.body
            return body.input_item(number)
        for draft in drafts(response_id, stored.context.plan.choices[0]):
            if draft.id == identity:
                if draft.kind == "reasoning":
                    return Reading([], [])
                if draft.kind == "tool":
                    return Reading([Message("assistant", "", (_call(draft),))], [])
                text = "".join([text_of(segment) for segment in draft.segments])
                return Reading([Message("assistant", text)], [])
        return None


def _call(draft: Draft) -> str:
    segment = draft.segments[0]
    assert segment.call is not None
    return call_text(segment.call.name, text_of(segment))


def _size(context: Context) -> int:
    """Pieces are shared between texts: a token costs its pointer and its due time."""
    messages = context.body.messages
    return (
        _OVERHEAD_BYTES
        + 2 * len(context.body.raw)  # the body, and what was decoded of it
        + 16 * context.plan.steps
        + sum([len(text) + 64 for message in messages for text in message.texts])
    )
