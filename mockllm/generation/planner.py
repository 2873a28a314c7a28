"""Turns a request into a plan: content, then length, then timing.

Text and length are keyed by (seed, prompt): the same prompt is answered alike by any worker, in
any order, streamed or whole, in any dialect. Timing is keyed by (seed, prompt, occurrence), so
that a body sent for ever still draws a distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mockllm.errors import RequestError
from mockllm.generation.calls import Calls
from mockllm.generation.composer import Composer, Content, Habits
from mockllm.generation.content import TextSource
from mockllm.generation.keyed import derive, make_key
from mockllm.generation.latency import Latency
from mockllm.generation.logprobs import Scores, Vocabulary
from mockllm.generation.occurrence import Occurrences
from mockllm.generation.overrides import Override
from mockllm.generation.overriding import check_for, own_timing
from mockllm.generation.pieces import piece as as_piece
from mockllm.generation.pieces import pieces_of
from mockllm.generation.plan import Choice, GenerationRequest, Plan, Prompt, PromptTokens
from mockllm.generation.structured import Schemas
from mockllm.generation.tokens import Tokenizer

_PART_END = "\x1f"
_MESSAGE_END = "\x1e"

MOST_CHOICES = 4096
"""The most replies to one request, prompts times `n`."""

MOST_READINGS = 4096
"""The most inputs of a request that has them read: so long it holds the loop, 0.3 s for moderations at worst."""

MOST_TOKENS = 1 << 20
"""The most tokens of several replies together, shown prompts included: so far goes one request's work."""

NO_MEDIA_TOKENS: Mapping[str, int] = {"image": 0, "audio": 0, "file": 0}


def prompt_content(prompt: Prompt) -> bytes:
    """What a prompt says, as bytes to key by; equal in every dialect for equal messages."""
    if prompt.token_ids is not None:
        content = b"ids:" + b",".join([b"%d" % token for token in prompt.token_ids])
    else:
        text = _MESSAGE_END.join([_PART_END.join((turn.role, turn.text, *turn.calls)) for turn in prompt.messages])
        content = text.encode("utf-8", "surrogatepass")
    if prompt.media:
        places = b",".join([b"%d" % turn.media for turn in prompt.messages])
        content += b"\x1d" + b"".join([media.kind.encode() + media.digest for media in prompt.media]) + places
    return content + b"\x1c" + prompt.suffix.encode("utf-8", "surrogatepass") if prompt.suffix else content


class Planner:
    """Plans answers.

    Args:
        tokenizer: Counts prompts.
        text: Makes free text.
        latency: Draws timings.
        seed: The server's seed, where a request has none.
        max_model_len: Longest prompt and reply together, in tokens.
        new_id: Makes a unique id out of a prefix such as `call_`.
        habits: How the model that is mocked tends to answer.
        content: Gives the texts of replies, where they are not made out of words.
        media_tokens: What an image, a recording and a file count in a prompt.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: TextSource,
        latency: Latency,
        *,
        seed: int,
        max_model_len: int,
        new_id: Callable[[str], str],
        habits: Habits,
        content: Content | None = None,
        media_tokens: Mapping[str, int] = NO_MEDIA_TOKENS,
    ) -> None:
        schemas = Schemas()
        self._echoes = content is not None
        self._tokenizer = tokenizer
        self._count = tokenizer.count
        self._latency = latency
        self.seed = seed
        self._max_model_len = max_model_len
        self._media_tokens = media_tokens
        self._vocabulary = Vocabulary(text.vocabulary, tokenizer.encode)
        self._calls = Calls(
            tokenizer,
            schemas,
            new_id,
            probability=habits.call_probability,
            fewest=habits.fewest_calls,
            most=habits.most_calls,
        )
        self._composer = Composer(tokenizer, text, self._calls, schemas, self._vocabulary, habits, content)
        self._occurrences = Occurrences()

    @property
    def draws(self) -> bool:
        """Whether equal requests get different plans; without, a plan may be used again."""
        return self._latency.draws

    def plan(self, request: GenerationRequest, occurrence_key: bytes | None = None) -> Plan:
        """Plan the answer.

        Args:
            request: What is asked for.
            occurrence_key: Takes the place of the occurrence in the key of the timing.

        Raises:
            RequestError: The limit is out of range, prompt and limit exceed the context, a schema
                or pattern cannot be met, or the override says what this API has no place for.
        """
        own = request.override
        if own is not None:
            check_for(own, request)
        if request.limit_is_default and (self._echoes if own is None else own.exact or self._echoes):
            request.limit_tokens = None
        seed = self.seed if request.seed is None else request.seed
        counts = [self.prompt_tokens(prompt) for prompt in request.prompts]
        if request.prompt_limit_tokens is not None:
            longest = request.prompt_limit_tokens if request.prompt_limit_tokens >= 0 else self._max_model_len
            counts = [min(count, longest) for count in counts]
        room = self._room(request, max(counts))
        if request.tools:
            self._calls.check(request.tools)
        shows = request.echo or request.token_ids or request.prompt_logprobs is not None
        if len(request.prompts) * request.n > MOST_CHOICES:
            raise RequestError(
                f"A request can have at most {MOST_CHOICES} replies, prompts times n; this one asks for "
                f"{len(request.prompts) * request.n}.",
                param="n" if request.n > 1 else request.prompt_param,
            )
        choices: list[Choice] = []
        tokens = 0
        first_key = b""
        for prompt in request.prompts:
            key = make_key(seed, prompt_content(prompt))
            first_key = first_key or key
            shown = self._shown(request, prompt, key) if shows else None
            for repeat in range(request.n):
                each = derive(key, b"choice:%d" % repeat) if repeat else key
                choice = self._composer.choice(request, prompt, shown, each, len(choices), room)
                choices.append(choice)
                tokens += choice.tokens + (0 if shown is None else len(shown.pieces))
                if tokens > MOST_TOKENS and len(choices) > 1:
                    raise RequestError(
                        f"The replies to a request can have at most {MOST_TOKENS} tokens in all; here they have more.",
                        param="n" if request.n > 1 else request.prompt_param,
                    )
        steps = max([1, *[choice.tokens for choice in choices]])
        drawn = self._latency.draws or (own is not None and own.draws)
        timing_key = self._timing_key(first_key, occurrence_key) if drawn else b""
        offset_s, after_s = self._latency.stream(timing_key, steps)
        whole_s = None if request.stream else self._latency.whole(timing_key)
        if own is not None and (own.ttft_ms is not None or own.itl_ms is not None):
            offset_s, after_s = own_timing(own, timing_key, steps, offset_s, after_s)
            whole_s = None
        plan = Plan(tuple(choices), sum(counts), steps, offset_s, after_s, whole_s)
        if request.prediction is not None:
            plan.accepted_tokens, plan.rejected_tokens = self._judge(request.prediction, choices)
        for prompt in request.prompts:
            if prompt.media:
                plan.prompt_audio_tokens += self._media(prompt, "audio")
        return plan

    def reading(
        self,
        prompts: Sequence[Prompt],
        param: str,
        occurrence_key: bytes | None = None,
        own: Override | None = None,
    ) -> Plan:
        """Plan the answer to a request that has prompts read and generates nothing.

        It is due after one prefill: when the first token of a generation would be, or, where whole
        replies have a latency of their own, after that.

        Args:
            prompts: At least one.
            param: The field they came from.
            occurrence_key: See `plan`.
            own: The request's override, whose `ttft_ms` takes the place of both.

        Raises:
            RequestError: A prompt exceeds the context.
        """
        if len(prompts) > MOST_READINGS:
            raise RequestError(
                f"{param} can have at most {MOST_READINGS} items; here it has {len(prompts)}.", param=param
            )
        counts = [self.prompt_tokens(prompt) for prompt in prompts]
        if max(counts) > self._max_model_len:
            raise RequestError(
                f"This model's maximum context length is {self._max_model_len} tokens, but an input has {max(counts)}.",
                param=param,
                code="context_length_exceeded",
            )
        timing_key = b""
        if self._latency.draws or (own is not None and own.draws):
            timing_key = self._timing_key(make_key(self.seed, prompt_content(prompts[0])), occurrence_key)
        offset_s, after_s = self._latency.stream(timing_key, 1)
        whole_s = self._latency.whole(timing_key)
        if own is not None and own.ttft_ms is not None:
            offset_s, after_s = own_timing(own, timing_key, 1, offset_s, after_s)
            whole_s = None
        return Plan((), sum(counts), 1, offset_s, after_s, whole_s)

    def _timing_key(self, key: bytes, occurrence_key: bytes | None) -> bytes:
        """What the timing of an answer is drawn by: its own key, and the how manieth time it is asked for."""
        return derive(key, b"timing:" + (occurrence_key or b"%d" % self._occurrences.count(key)))

    # ---- the prompt --------------------------------------------------------------------------

    def prompt_tokens(self, prompt: Prompt) -> int:
        """Tokens of a prompt: each message's text by itself, and each of its calls, without a template around them."""
        count = self._count
        if prompt.token_ids is not None:
            tokens = len(prompt.token_ids)
        else:
            tokens = sum([count(message.text) for message in prompt.messages]) + prompt.extra_tokens
            tokens += sum([count(call) for message in prompt.messages for call in message.calls])
        if prompt.suffix:
            tokens += count(prompt.suffix)
        return tokens + self._media(prompt) if prompt.media else tokens

    def _media(self, prompt: Prompt, kind: str | None = None) -> int:
        """Tokens of what is no text, or of one kind of it."""
        return sum([self._media_tokens[media.kind] for media in prompt.media if kind in (None, media.kind)])

    def _shown(self, request: GenerationRequest, prompt: Prompt, key: bytes) -> PromptTokens:
        """The prompt's tokens, for a reply that shows them: with `echo`, `prompt_logprobs` or their ids."""
        tokenizer = self._tokenizer
        if prompt.token_ids is None:
            texts = [text for message in prompt.messages for text in message.texts]
            ids = [token for text in texts for token in tokenizer.encode(text)]
            pieces = [piece for text in texts for piece in pieces_of(tokenizer, text)]
        else:
            ids = list(prompt.token_ids)
            pieces = self._decoded(ids, request.prompt_param)
        if request.prompt_limit_tokens is not None and request.prompt_limit_tokens >= 0:
            first = max(0, len(ids) - request.prompt_limit_tokens)
            pieces, ids = pieces[first:], ids[first:]
        scored = request.prompt_logprobs is not None or request.logprobs is not None
        scores = Scores(derive(key, b"prompt"), self._vocabulary) if scored else None
        return PromptTokens(pieces, ids, scores)

    def _decoded(self, ids: list[int], param: str) -> list[bytes]:
        """A piece for each of some token ids; where single ones have no text of their own, the first has it all."""
        decode = self._tokenizer.decode
        try:
            text = decode(ids)
            texts = [decode([identity]) for identity in ids]
        except ValueError as error:
            raise RequestError(f"{param}: {error}.", param=param) from None
        if "".join(texts) == text:
            return list(map(as_piece, texts))
        pieces = pieces_of(self._tokenizer, text)
        if len(pieces) == len(ids):
            return pieces
        return [b"".join(pieces), *[b""] * (len(ids) - 1)]

    # ---- limits ------------------------------------------------------------------------------

    def _room(self, request: GenerationRequest, prompt_tokens: int) -> int:
        """The longest reply allowed: the request's limit, else what the context leaves."""
        room = self._max_model_len - prompt_tokens
        limit = request.limit_tokens
        if limit is None:
            if room < 1:
                raise self._too_long(request.prompt_param, prompt_tokens, 1)
            return room
        if limit < (0 if request.echo else 1):
            raise RequestError(
                f"{request.limit_param} must be at least {0 if request.echo else 1}, got {limit}.",
                param=request.limit_param,
            )
        if limit > room:
            raise self._too_long(request.limit_param if room > 0 else request.prompt_param, prompt_tokens, limit)
        return limit

    def _too_long(self, param: str, prompt_tokens: int, limit: int) -> RequestError:
        where = param if param in _PROMPTS else "prompt"
        return RequestError(
            f"This model's maximum context length is {self._max_model_len} tokens, but {prompt_tokens + limit} were "
            f"requested ({prompt_tokens} in the {where}, {limit} in the completion).",
            param=param,
            code="context_length_exceeded",
        )

    def _judge(self, prediction: str, choices: list[Choice]) -> tuple[int, int]:
        """How many tokens of a prediction the replies had, and how many they had not.

        They are accepted up to the first one that differs; of several replies the best one counts.
        """
        predicted = pieces_of(self._tokenizer, prediction)
        accepted = 0
        for choice in choices:
            text = [piece for segment in choice.segments if segment.kind == "text" for piece in segment.pieces]
            same = next((k for k, (a, b) in enumerate(zip(text, predicted, strict=False)) if a != b), None)
            accepted = max(accepted, min(len(text), len(predicted)) if same is None else same)
        return accepted, len(predicted) - accepted


_PROMPTS = ("messages", "prompt", "input")
