"""`POST /v1/completions`.

Source: https://platform.openai.com/docs/api-reference/completions/create; vLLM's
`CompletionRequest` for what it adds.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from mockllm.dialects.chat import StreamOptions
from mockllm.dialects.chunks import FINGERPRINT, ChunkWriter, finish_json
from mockllm.dialects.decode import decoder
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.formats import Formatted, read_format
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import CompletionLogprobs, prompt_logprobs
from mockllm.dialects.usage import plan_usage
from mockllm.errors import RequestError
from mockllm.exchange import Timeline
from mockllm.generation.logprobs import Scores
from mockllm.generation.plan import Choice, GenerationRequest, Message, Prompt, Segment

DEFAULT_LIMIT_TOKENS = 16
"""What OpenAI's API takes where `max_tokens` is missing."""


class CompletionRequest(Formatted, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    prompt: str | list[str | list[int] | int] | None = None
    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    best_of: int | None = None
    stop: str | list[str] | UnsetType | None = UNSET
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    echo: bool | None = None
    suffix: str | None = None
    seed: int | None = None


_decode = decoder(CompletionRequest)


class Completions:
    """The legacy Completions dialect."""

    id_prefix = "cmpl-"

    def decode(self, body: bytes) -> tuple[CompletionRequest, GenerationRequest]:
        """See `Dialect`."""
        asked = _decode(body)
        if asked.stream_options is not None and not asked.stream:
            raise RequestError("stream_options is only allowed with stream: true.", param="stream_options")
        limit, param = asked.max_completion_tokens, "max_completion_tokens"
        if limit is None:
            limit, param = asked.max_tokens, "max_tokens"
        # A load generator's way to ask for exactly so many tokens: `stop: null` beside a limit.
        exact = bool(asked.ignore_eos) or (asked.stop is None and limit is not None)
        options, stop = asked.stream_options, asked.stop or ()
        request = GenerationRequest(
            asked.model,
            _prompts(asked.prompt, asked.suffix or ""),
            stream=bool(asked.stream),
            include_usage=options is not None and bool(options.include_usage),
            continuous_usage=options is not None and bool(options.continuous_usage_stats),
            n=asked.n or 1,
            limit_tokens=DEFAULT_LIMIT_TOKENS if limit is None else limit,
            limit_param=param,
            prompt_param="prompt",
            min_tokens=asked.min_tokens or 0,
            exact=exact and limit is not None,
            best_of=asked.best_of,
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            stop_token_ids=tuple(asked.stop_token_ids or ()),
            include_stop=bool(asked.include_stop_str_in_output),
            logprobs=asked.logprobs,
            prompt_logprobs=asked.prompt_logprobs,
            echo=bool(asked.echo),
            seed=asked.seed,
            format=read_format(asked),
            reasoning_effort="none",
        )
        return asked, request

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        return Timeline(plan.steps, StepStream(plan, CompletionWriter(context)).render, plan.offset_s, plan.after_s)

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        plan = context.plan
        return (
            b'{"id":"%b","object":"text_completion","created":%d,"model":%b,"choices":[%b],"usage":%b,'
            b'"system_fingerprint":"%b"}'
        ) % (
            context.id.encode(),
            context.created,
            quoted(context.request.model),
            b",".join([_choice(context, choice) for choice in plan.choices]),
            plan_usage(plan),
            FINGERPRINT.encode(),
        )


def _choice(context: Context, choice: Choice) -> bytes:
    request = context.request
    text = b"".join([b"".join(segment.pieces) for segment in choice.segments])
    parts: list[tuple[Scores | None, Sequence[bytes], int]] = [
        (choice.scores, segment.pieces, 0) for segment in choice.segments
    ]
    echoed = request.echo and choice.prompt is not None
    if request.echo and choice.prompt is not None:
        text = b"".join(choice.prompt.pieces) + text
        parts.insert(0, (choice.prompt.scores, choice.prompt.pieces, 0))
    return b'{"index":%d,"text":"%b","logprobs":%b,"finish_reason":%b%b}' % (
        choice.index,
        text,
        _logprobs(CompletionLogprobs(request.logprobs or 0), parts, opening=echoed),
        finish_json(choice),
        b""
        if choice.prompt is None or request.prompt_logprobs is None
        else b',"prompt_logprobs":' + prompt_logprobs(choice.prompt, request.prompt_logprobs),
    )


def _logprobs(
    written: CompletionLogprobs, parts: Sequence[tuple[Scores | None, Sequence[bytes], int]], *, opening: bool = False
) -> bytes:
    scored = [(scores, pieces, first) for scores, pieces, first in parts if scores is not None]
    return written.write(scored, opening=opening) if scored else b"null"


class CompletionWriter(ChunkWriter):
    """Writes a plan as completions chunks; an echoed prompt is one chunk, due with the first token."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, "text_completion", b'"text":""')
        self._echo = context.request.echo
        self._written: dict[int, CompletionLogprobs] = {}

    def open(self, choice: Choice) -> list[bytes]:
        count = self._context.request.logprobs
        if count is not None:
            self._written[choice.index] = CompletionLogprobs(count)
        prompt = choice.prompt
        if not self._echo or prompt is None or not any(prompt.pieces):
            return []
        logprobs = b"null"
        if count is not None:
            logprobs = _logprobs(self._written[choice.index], [(prompt.scores, prompt.pieces, 0)], opening=True)
        return [self.chunk(choice.index, b'"text":"%b"' % b"".join(prompt.pieces), 0, logprobs)]

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        return b'"text":"', b'"'

    def _logprobs(self, choice: Choice, segment: Segment, piece: bytes, position: int) -> bytes:
        if choice.scores is None:
            return b"null"
        return self._written[choice.index].write([(choice.scores, (piece,), position)])


def _prompts(prompt: str | list[str | list[int] | int] | None, suffix: str) -> tuple[Prompt, ...]:
    """A text, a list of texts, one list of token ids, or a list with both."""
    if isinstance(prompt, str):
        return (_text(prompt, suffix),)
    if not prompt:
        raise RequestError("prompt must be a text, a list of texts, or token ids.", param="prompt")
    if all(isinstance(part, int) for part in prompt):
        return (_ids(prompt, suffix),)
    prompts: list[Prompt] = []
    for number, part in enumerate(prompt):
        if isinstance(part, str):
            prompts.append(_text(part, suffix))
        elif isinstance(part, list) and part:
            prompts.append(_ids(part, suffix))
        else:
            raise RequestError(f"prompt[{number}] must be a text or a list of token ids.", param=f"prompt[{number}]")
    return tuple(prompts)


def _text(text: str, suffix: str) -> Prompt:
    return Prompt((Message("", text),), suffix=suffix)


def _ids(ids: list[int] | list[str | list[int] | int], suffix: str) -> Prompt:
    for token in ids:
        if not isinstance(token, int) or token < 0:
            raise RequestError(f"prompt: {token!r} is not a token id; token ids are integers ≥ 0.", param="prompt")
    return Prompt(token_ids=tuple(token for token in ids if isinstance(token, int)), suffix=suffix)
