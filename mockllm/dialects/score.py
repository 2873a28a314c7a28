"""`POST /v1/score`: how well pairs of texts match.

A score is a function of (seed, first text, second text), from 0 to 1.

Source: vLLM's `ScoreRequest` and `ScoreResponse`; the pairs are `text_1` and `text_2`, `data_1` and
`data_2`, or `queries` and one of `documents` and `items`.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from mockllm.dialects.decode import decoder
from mockllm.dialects.messages import ContentPart, content_text
from mockllm.dialects.reader import ReadContext, Reading, ReadRequest, Written, in_one_step
from mockllm.errors import RequestError
from mockllm.generation.keyed import Draws, make_key
from mockllm.generation.plan import Message, Prompt


class Content(Struct):
    """A text in parts, of which some may be no text."""

    content: list[str | ContentPart]


Side = str | Content | list[str | Content] | None


class ScoreRequest(ReadRequest, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    text_1: Side = None
    text_2: Side = None
    data_1: Side = None
    data_2: Side = None
    queries: Side = None
    documents: Side = None
    items: Side = None


_decode = decoder(ScoreRequest)


class Score:
    """The Score dialect."""

    id_prefix = "score-"

    def decode(self, body: bytes) -> tuple[ScoreRequest, Reading]:
        """See `Reader`."""
        asked = _decode(body)
        first_param, first = _given(asked, ("text_1", "data_1", "queries"))
        second_param, second = _given(asked, ("text_2", "data_2", "documents", "items"))
        if len(first) == 1:
            first *= len(second)
        if len(first) != len(second):
            raise RequestError(
                f"{first_param} must be one text, or as many as {second_param} has: "
                f"got {len(first)} and {len(second)}.",
                param=first_param,
            )
        pairs = [pair(one, other) for one, other in zip(first, second, strict=True)]
        return asked, Reading(asked.model, tuple(pairs), second_param, asked.overrides)

    def write(self, context: ReadContext) -> Written:
        """See `Reader`."""
        scores = [score(context.seed, prompt) for prompt in context.reading.prompts]
        tokens = context.prompt_tokens
        return in_one_step(
            msgspec.json.encode(
                {
                    "id": context.id,
                    "object": "list",
                    "created": context.created,
                    "model": context.model,
                    "data": [{"index": k, "object": "score", "score": value} for k, value in enumerate(scores)],
                    "usage": {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
                }
            )
        )


def pair(first: str, second: str) -> Prompt:
    """Two texts that are read together."""
    return Prompt((Message("query", first), Message("document", second)))


def score(seed: int, prompt: Prompt) -> float:
    """How well the texts of a pair match, from 0 to 1."""
    first, second = [message.text.encode("utf-8", "surrogatepass") for message in prompt.messages]
    return Draws(make_key(seed, b"score:%d:%b%b" % (len(first), first, second))).uniform()


def text_of(given: str | Content) -> str:
    """The text of one side of a pair."""
    return given if isinstance(given, str) else content_text(given.content)


def _given(asked: ScoreRequest, names: tuple[str, ...]) -> tuple[str, list[str]]:
    """The first field that is there, and its texts."""
    for name in names:
        side: Side = getattr(asked, name)
        if side is None:
            continue
        if side == []:
            raise RequestError(f"{name} must not be empty.", param=name)
        return name, [text_of(part) for part in side] if isinstance(side, list) else [text_of(side)]
    raise RequestError(f"Invalid request, at $.{names[0]}: this field is required", param=names[0])
