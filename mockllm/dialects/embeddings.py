"""`POST /v1/embeddings`.

A vector is a function of (seed, input). Its components are pairs (cos a, sin a), all of one length,
with angles out of 256 drawn by the key: so it has unit length without being measured, and is put
together out of pieces that are encoded already. Different inputs are as nearly orthogonal as vectors
of normal draws would be (the variance of their cosine is one in as many as there are dimensions),
and fewer dimensions are the beginning of more, scaled anew, as with real models of several sizes.

Source: https://platform.openai.com/docs/api-reference/embeddings/create; `messages` in place of
`input` is vLLM's.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from math import copysign, cos, pi, sin, sqrt
from struct import pack, unpack
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

_COMPONENTS_PER_STEP = 16_384
"""A step takes about 0.2 ms (2-core AMD EPYC, CPython 3.11)."""

_BEGIN = b'{"object":"list","data":['

_ANGLES = 256
_KNOWN_LENGTHS = 64

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
            parts = []  # joined once: a vector of 1,536 numbers has 32,000 bytes
            for number in range(start, end):
                key = make_key(context.seed, b"embedding:" + prompt_content(prompts[number]))
                parts.append(b'%b{"object":"embedding","index":%d,"embedding":' % (b"," if number else _BEGIN, number))
                parts.append(as_base64(key, dimensions) if in_base64 else as_numbers(key, dimensions))
                parts.append(b"}")
            if end == len(prompts):
                parts.append(_end(context))
            return [b"".join(parts)]

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


def as_numbers(key: bytes, dimensions: int) -> bytes:
    """A key's vector as a JSON array of numbers, each with all digits of its single-precision value."""
    numbers, _ = _pieces(dimensions)
    return b"[" + b",".join(map(numbers.__getitem__, _draws(key, dimensions))) + b"]"


def as_base64(key: bytes, dimensions: int) -> bytes:
    """The same vector as a JSON string: base64 of little-endian single-precision values."""
    _, packed = _pieces(dimensions)
    return b'"' + b64encode(b"".join(map(packed.__getitem__, _draws(key, dimensions)))) + b'"'


def _draws(key: bytes, dimensions: int) -> Sequence[int]:
    """Which piece stands where: pairs, and at an odd end one of the pieces that are alone."""
    draws = octets(key, (dimensions + 1) // 2)
    return draws if dimensions % 2 == 0 else [*draws[:-1], _ANGLES + draws[-1]]


@lru_cache(_KNOWN_LENGTHS)
def _pieces(dimensions: int) -> tuple[list[bytes], list[bytes]]:
    """The encoded pairs of vectors of one length, as numbers and packed; then what may stand alone."""
    scale = sqrt(2 / dimensions)
    angles = [2 * pi * (k + 0.5) / _ANGLES for k in range(_ANGLES)]
    packed = [pack("<2f", scale * cos(angle), scale * sin(angle)) for angle in angles]
    packed += [pack("<f", copysign(sqrt(1 / dimensions), cos(angle))) for angle in angles]
    values = [unpack(f"<{len(piece) // 4}f", piece) for piece in packed]
    return [_encode(list(value))[1:-1] for value in values], packed


def _end(context: ReadContext) -> bytes:
    return b'],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}' % (
        quoted(context.model),
        context.prompt_tokens,
        context.prompt_tokens,
    )


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
