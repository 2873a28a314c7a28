"""What a dialect is that reads and generates nothing: embeddings, scores, moderation.

A model answers such a request after one prefill, so that the answer is due when the first token
of a generation would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType

from mockllm.generation.plan import Message, Prompt


class Reading(Struct, frozen=True):
    """What is to be read.

    Attributes:
        model: As the request names it.
        prompts: At least one; each is read by itself.
        prompt_param: The field that the prompts came from, for errors.
        overrides: The body key `mockllm`, undecoded; of what it can say, the time and the seed matter.
    """

    model: str
    prompts: tuple[Prompt, ...]
    prompt_param: str = "input"
    overrides: Raw | None = None


class ReadRequest(Struct, kw_only=True):
    """What the bodies of all of them may have."""

    model: str = ""
    mockllm: Raw | UnsetType = UNSET

    @property
    def overrides(self) -> Raw | None:
        """The body key `mockllm`."""
        return None if self.mockllm is UNSET else self.mockllm


class ReadContext(Struct, gc=False):
    """One answer on its way out.

    Attributes:
        id: The reply's id, e.g. `modr-…`.
        created: Unix time in whole seconds.
        model: The one that answers.
        body: The dialect's own decoded request.
        reading: The same in no dialect.
        prompt_tokens: Tokens of all prompts.
        seed: What the answer is a function of, beside what is read.
    """

    id: str
    created: int
    model: str
    body: Any
    reading: Reading
    prompt_tokens: int
    seed: int


class Written(NamedTuple):
    """A body in steps: `render(i, j)` makes the parts i … j-1, in ways of `Timeline`."""

    steps: int
    render: Callable[[int, int], list[bytes]]


class Reader(Protocol):
    """One API's way to have something read."""

    id_prefix: str

    def decode(self, body: bytes) -> tuple[Any, Reading]:
        """Decode and validate a body.

        Raises:
            RequestError: The body is no JSON, or not what the API takes.
        """
        ...

    def write(self, context: ReadContext) -> Written:
        """The body of the reply, in steps short enough for other replies to come in between."""
        ...


def in_one_step(body: bytes) -> Written:
    """A body that takes little time to make."""
    return Written(1, lambda first, upto: [body])


def text_prompt(text: str) -> Prompt:
    """A prompt that is plain text."""
    return Prompt((Message("", text),))
