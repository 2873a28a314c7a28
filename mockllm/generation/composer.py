"""What a reply consists of: reasoning, then text, a document, tool calls or a refusal.

Each part is a function of the choice's key alone. The request's limit, its stop sequences and
whether it is streamed only decide how much of it is seen: the first k tokens are always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from mockllm.generation.calls import Calls, finish_reason
from mockllm.generation.content import TextSource
from mockllm.generation.keyed import Draws, derive, normals
from mockllm.generation.logprobs import Scores, Vocabulary
from mockllm.generation.overrides import Override
from mockllm.generation.pieces import PieceMemo, pieces_of, texts_of
from mockllm.generation.plan import Choice, FinishReason, GenerationRequest, Prompt, PromptTokens, Segment
from mockllm.generation.stopping import Stopped, stop_text, stop_token
from mockllm.generation.structured import Schemas, document
from mockllm.generation.tokens import Tokenizer

REFUSAL = "I'm sorry, but I can't help with that."

Ending = Literal["refusal", "content_filter"]

Content = Callable[[Prompt], str]
"""Gives the text that answers a prompt, as long as it is."""

DEFAULT_EFFORT = "default"
"""The effort of a request that names none."""


class Habits(Struct, frozen=True):
    """How the model that is mocked tends to answer.

    Attributes:
        output_tokens, output_tokens_std: Length of free text, mean and standard deviation.
        reasoning_tokens: Tokens of reasoning for each effort; an effort that is missing has none.
        call_probability: How often it calls a tool where it may choose, 0 to 1.
        fewest_calls, most_calls: How many calls a reply makes.
        refusal_probability: How often it refuses, 0 to 1.
        filter_probability: How often a content filter cuts the text off, 0 to 1.
    """

    output_tokens: float = 128
    output_tokens_std: float = 0.0
    reasoning_tokens: Mapping[str, int] = {}
    call_probability: float = 0.0
    fewest_calls: int = 1
    most_calls: int = 1
    refusal_probability: float = 0.0
    filter_probability: float = 0.0


class Composer:
    """Composes choices.

    Args:
        tokenizer: Cuts texts that are given into tokens.
        text: Makes free text.
        calls: Makes tool calls.
        schemas: Reads the schemas of documents.
        vocabulary: The alternatives of logprobs.
        habits: How the model tends to answer.
        content: Gives the text of a reply, where that is not made out of words.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: TextSource,
        calls: Calls,
        schemas: Schemas,
        vocabulary: Vocabulary,
        habits: Habits,
        content: Content | None = None,
    ) -> None:
        self._content = content
        self._tokenizer = tokenizer
        self._text = text
        self._calls = calls
        self._schemas = schemas
        self._vocabulary = vocabulary
        self._habits = habits
        self._refusal = pieces_of(tokenizer, REFUSAL)
        self._pieces = PieceMemo(tokenizer)
        self._usual = max(1, round(habits.output_tokens))
        self._may_end = bool(habits.refusal_probability or habits.filter_probability)

    def choice(
        self, request: GenerationRequest, prompt: Prompt, shown: PromptTokens | None, key: bytes, index: int, room: int
    ) -> Choice:
        """One choice.

        Args:
            request: What is asked for.
            prompt: What it answers.
            shown: Its prompt's tokens, where they are to be shown.
            key: 16 bytes: what the choice is a function of.
            index: Its index among all choices of the request.
            room: The longest reply that is allowed, in tokens.

        Raises:
            RequestError: A schema or a pattern is malformed or cannot be met.
        """
        override = request.override
        thought = self._thought(request, key)
        fixed, reason = self._fixed(request, prompt, key)
        if not fixed:
            length, reason = self._length(request, key, room - len(thought))
            text = Segment("text", self._text.pieces(key, length))
            if not (thought or _adorned(request)):
                return Choice(index, (text,), reason, length, key, 0, None, None, shown)
            fixed = [text]
        elif request.limit_tokens is not None:
            fixed, cut = _first(fixed, request.limit_tokens - len(thought))
            reason = "length" if cut else reason
        if request.token_ids or request.tokens_as_ids or request.stop_token_ids:
            fixed = [self._numbered(request, segment) for segment in fixed]
        reason_why: str | int | None = None
        if (request.stop or request.stop_token_ids) and fixed and fixed[0].kind == "text":
            stopped = self._stop(request, fixed[0], len(thought))
            if stopped is not None:
                ids = fixed[0].ids and fixed[0].ids[: len(stopped.pieces)]
                fixed, reason, reason_why = [Segment("text", stopped.pieces, ids=ids)], "stop", stopped.reason
        if thought:
            if len(thought) > room:
                thought = thought[:room]
            fixed = [self._numbered(request, Segment("reasoning", thought)), *[part for part in fixed if part.steps]]
        if override is not None and override.finish_reason is not None:
            reason = override.finish_reason
        scores = None if request.logprobs is None else Scores(key, self._vocabulary)
        tokens = sum([segment.steps for segment in fixed])
        return Choice(index, tuple(fixed), reason, tokens, key, len(thought), reason_why, scores, shown)

    # ---- the parts ---------------------------------------------------------------------------

    def _thought(self, request: GenerationRequest, key: bytes) -> list[bytes]:
        if request.override is not None and request.override.reasoning is not None:
            return self._pieces(request.override.reasoning)
        if not self._habits.reasoning_tokens:
            return []
        effort = DEFAULT_EFFORT if request.reasoning_effort is None else request.reasoning_effort
        count = self._habits.reasoning_tokens.get(effort, 0)
        if request.reasoning_limit_tokens is not None and 0 <= request.reasoning_limit_tokens < count:
            count = request.reasoning_limit_tokens
        return self._text.pieces(derive(key, b"reasoning"), count) if count else []

    def _fixed(self, request: GenerationRequest, prompt: Prompt, key: bytes) -> tuple[list[Segment], FinishReason]:
        """What is as long as it is; nothing where free text is to be made."""
        override = request.override
        if override is not None:
            given = self._given(request, override)
            if given:
                calls_made = override.tool_calls and override.refusal is None
                return given, finish_reason(request.tool_choice) if calls_made else "stop"
        ending = request.ending
        if ending is None and self._may_end:
            ending = self._ending(key)
        if ending == "refusal":
            return [Segment("refusal", self._refusal)], "stop"
        if request.tools and (override is None or override.tool_calls is None):
            calls = self._calls.make(request, prompt, key)
            if calls:
                return calls, finish_reason(request.tool_choice)
        if request.format.kind == "text":
            asked_length = override is not None and override.output_tokens is not None
            if self._content is not None and not asked_length:
                pieces = pieces_of(self._tokenizer, self._content(prompt))
            elif ending is None:
                return [], "stop"
            else:
                pieces = self._text.pieces(key, self._wanted(request, key))
        else:
            pieces = pieces_of(self._tokenizer, document(request.format, self._schemas, key))
        if ending is None:
            return [Segment("text", pieces)], "stop"
        return [Segment("text", pieces[: Draws(derive(key, b"filter")).below(len(pieces) or 1)])], "content_filter"

    def _given(self, request: GenerationRequest, override: Override) -> list[Segment]:
        """The segments that an override gives; none where it leaves them to the server."""
        if override.refusal is not None:
            return [Segment("refusal", self._pieces(override.refusal))]
        given: list[Segment] = []
        if override.text is not None:
            given.append(Segment("text", self._pieces(override.text)))
        given += [self._calls.given(request, call, self._pieces) for call in override.tool_calls or ()]
        return given

    def _ending(self, key: bytes) -> Ending | None:
        draw = Draws(derive(key, b"ending")).uniform()
        if draw < self._habits.refusal_probability:
            return "refusal"
        return "content_filter" if draw >= 1 - self._habits.filter_probability else None

    def _length(self, request: GenerationRequest, key: bytes, room: int) -> tuple[int, FinishReason]:
        """Length of free text, and whether it ends by itself or is cut."""
        override = request.override
        if override is not None and override.output_tokens is not None:
            wanted = override.output_tokens
        elif request.exact and request.limit_tokens is not None:
            return max(0, room), "length"
        else:
            wanted = self._wanted(request, key)
        if wanted <= room:
            return wanted, "stop"
        return (room if room > 0 else 0), "length"

    def _wanted(self, request: GenerationRequest, key: bytes) -> int:
        wanted = self._usual
        if self._habits.output_tokens_std:
            drawn = self._habits.output_tokens_std * normals(derive(key, b"length"), 1)[0]
            wanted = max(1, round(self._habits.output_tokens + drawn))
        return wanted if wanted > request.min_tokens else request.min_tokens

    def _numbered(self, request: GenerationRequest, segment: Segment) -> Segment:
        """The segment with its token ids, where they are needed."""
        if not (request.token_ids or request.tokens_as_ids or request.stop_token_ids):
            return segment
        encode, texts = self._tokenizer.encode, texts_of(segment.pieces)
        ids = encode("".join(texts))
        if len(ids) != len(texts):
            ids = [encode(text)[0] if text else 0 for text in texts]
        return Segment(segment.kind, segment.pieces, segment.call, ids)

    def _stop(self, request: GenerationRequest, segment: Segment, thought: int) -> Stopped | None:
        """Where the text ends early; tokens of reasoning count for `min_tokens` too."""
        pieces = segment.pieces
        include, after = request.include_stop, max(0, request.min_tokens - thought)
        found = stop_text(pieces, request.stop, include=include, after_tokens=after) if request.stop else None
        if segment.ids is not None and request.stop_token_ids:
            other = stop_token(pieces, segment.ids, request.stop_token_ids, include=include, after_tokens=after)
            if other is not None and (found is None or len(other.pieces) < len(found.pieces)):
                return other
        return found


def _adorned(request: GenerationRequest) -> bool:
    """Whether more is asked for than just text."""
    return (
        request.logprobs is not None
        or request.override is not None
        or bool(request.stop or request.stop_token_ids or request.token_ids)
    )


def _first(segments: list[Segment], tokens: int) -> tuple[list[Segment], bool]:
    """The segments up to so many tokens, and whether any were cut off."""
    kept: list[Segment] = []
    for segment in segments:
        if segment.steps > tokens:
            if tokens > 0:
                end = tokens - (segment.call is not None)
                kept.append(Segment(segment.kind, segment.pieces[:end], segment.call))
            return kept, True
        kept.append(segment)
        tokens -= segment.steps
    return kept, False
