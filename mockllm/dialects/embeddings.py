"""`POST /v1/embeddings`.

A vector is a function of (seed, input): its components are drawn from the normal distribution and
scaled to unit length, so that different inputs are nearly orthogonal and equal ones the same.
Fewer dimensions give the beginning of the longer vector, scaled anew, as real models of several
sizes do.

Source: https://platform.openai.com/docs/api-reference/embeddings/create; `messages` in place of
`input` is vLLM's.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from math import hypot
from statistics import NormalDist
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mockllm.dialects.decode import decoder
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.messages import ChatMessage, prompt_of
from mockllm.dialects.reader import ReadContext, Reading, ReadRequest, Written, text_prompt
from mockllm.errors import RequestError
from mockllm.generation.keyed import make_key, octets
from mockllm.generation.plan import Prompt
from mockllm.generation.planner import prompt_content
from mockllm.generation.tokens import Tokenizer

MOST_DIMENSIONS = 65_536
MOST_INPUTS = 2048
"""As the API limits it; the dimensions have no such limit there, each model has its own."""

_COMPONENTS_PER_STEP = 8192
"""A step of a long answer takes about 0.6 ms, so that due chunks of others come in between."""

_QUANTILES = [NormalDist().inv_cdf((k + 0.5) / 256) for k in range(256)]

TokenId = Annotated[int, Meta(ge=0)]


class EmbeddingsRequest(ReadRequest, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    input: str | list[str | TokenId | list[TokenId]] | None = None
    messages: list[ChatMessage] | None = None
    dimensions: Annotated[int, Meta(ge=1, le=MOST_DIMENSIONS)] | None = None
    encoding_format: Literal["float", "base64"] | None = None


_decode = decoder(EmbeddingsRequest)
_encode = msgspec.json.Encoder().encode


class Embeddings:
    """The Embeddings dialect.

    Args:
        tokenizer: Tells what text token ids stand for: the vector is that of the text.
        dimensions: Length of a vector where the request names none.
    """

    id_prefix = "embd-"

    def __init__(self, tokenizer: Tokenizer, dimensions: int) -> None:
        self._tokenizer = tokenizer
        self._dimensions = dimensions

    def decode(self, body: bytes) -> tuple[EmbeddingsRequest, Reading]:
        """See `Reader`."""
        asked = _decode(body)
        if asked.input is None and asked.messages:
            return asked, Reading(asked.model, (prompt_of(asked.messages),), "messages", asked.overrides)
        return asked, Reading(asked.model, self._prompts(asked.input), "input", asked.overrides)

    def write(self, context: ReadContext) -> Written:
        """See `Reader`."""
        asked: EmbeddingsRequest = context.body
        prompts = context.reading.prompts
        dimensions = asked.dimensions or self._dimensions
        in_base64 = asked.encoding_format == "base64"
        per_step = max(1, _COMPONENTS_PER_STEP // dimensions)

        def render(first: int, upto: int) -> list[bytes]:
            start, end = first * per_step, min(upto * per_step, len(prompts))
            rows = []
            for number in range(start, end):
                vector = unit_vector(
                    make_key(context.seed, b"embedding:" + prompt_content(prompts[number])), dimensions
                )
                written = b'"' + _base64(vector) + b'"' if in_base64 else _encode(vector.tolist())
                rows.append(b'{"object":"embedding","index":%d,"embedding":%b}' % (number, written))
            part = b",".join(rows)
            part = b'{"object":"list","data":[' + part if start == 0 else b"," + part
            return [part + _end(context) if end == len(prompts) else part]

        return Written(-(-len(prompts) // per_step), render)

    def _prompts(self, given: str | list[str | int | list[int]] | None) -> tuple[Prompt, ...]:
        """A text, a list of texts, one list of token ids, or a list with both."""
        if given is None:
            raise _wrong("input", "this field is required")
        if isinstance(given, str):
            given = [given]
        if not given:
            raise _wrong("input", "must not be empty")
        if isinstance(given[0], int):
            ids = [part for part in given if isinstance(part, int)]
            if len(ids) != len(given):
                raise _wrong("input", "must be token ids alone, or have none beside texts and lists")
            return (self._of_ids(ids),)
        if len(given) > MOST_INPUTS:
            raise _wrong("input", f"must have at most {MOST_INPUTS} items, got {len(given)}")
        return tuple([self._one(part, number) for number, part in enumerate(given)])

    def _one(self, part: str | int | list[int], number: int) -> Prompt:
        if isinstance(part, int):
            raise _wrong(f"input[{number}]", "must be a text or a list of token ids")
        if not part:
            raise _wrong(f"input[{number}]", "must not be empty")
        return text_prompt(part) if isinstance(part, str) else self._of_ids(part)

    def _of_ids(self, ids: list[int]) -> Prompt:
        """The text that ids stand for; the ids themselves where they are another tokenizer's."""
        try:
            text = self._tokenizer.decode(ids)
        except ValueError:
            return Prompt(token_ids=tuple(ids))
        if self._tokenizer.count(text) == len(ids):
            return text_prompt(text)
        return Prompt(token_ids=tuple(ids))


def unit_vector(key: bytes, dimensions: int) -> array[float]:
    """A vector of unit length for a key, in single precision."""
    values = [_QUANTILES[octet] for octet in octets(key, dimensions)]
    scale = 1 / hypot(*values)
    return array("f", [value * scale for value in values])


def _base64(vector: array[float]) -> bytes:
    """The vector as the API packs it: base64 of little-endian float32 values."""
    if sys.byteorder == "big":
        vector.byteswap()
    return b64encode(vector.tobytes())


def _end(context: ReadContext) -> bytes:
    return b'],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}' % (
        quoted(context.model),
        context.prompt_tokens,
        context.prompt_tokens,
    )


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
