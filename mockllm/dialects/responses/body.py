"""A decoded request, as the rest of the dialect uses it."""

from __future__ import annotations

from msgspec import Struct

from mockllm.dialects.responses.inputs import read_input
from mockllm.dialects.responses.request import ResponsesRequest
from mockllm.generation.plan import Message


class ResponsesBody(Struct, gc=False):
    """A decoded request.

    Attributes:
        asked: Its fields.
        raw: The body as it came, for what is read back of it.
        messages: The conversation that is answered, without the instructions.
    """

    asked: ResponsesRequest
    raw: bytes
    messages: list[Message]

    def input_messages(self, number: int) -> list[Message] | None:
        """What one item of its own input says."""
        given = self.asked.input
        if given is None or isinstance(given, str):
            return [Message("user", given)] if given is not None and number == 0 else None
        return read_input(given[number : number + 1], _nothing).messages if number < len(given) else None


def _nothing(_identity: str) -> None:
    return None
