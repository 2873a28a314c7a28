"""`POST /v1/completions`.

Source: https://platform.openai.com/docs/api-reference/completions/create; vLLM's
`CompletionRequest` for what it adds.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from mockllm.dialects.chat import StreamOptions
from mockllm.dialects.chat_stream import DONE, FINGERPRINT
from mockllm.dialects.decode import decoder
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.usage import usage_json
from mockllm.errors import RequestError
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Message, Prompt, Segment

DEFAULT_LIMIT_TOKENS = 16
"""What OpenAI's API takes where `max_tokens` is missing."""


class CompletionRequest(Struct):
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
    stop: str | list[str] | UnsetType | None = UNSET
    echo: bool | None = None
    seed: int | None = None


_decode = decoder(CompletionRequest)


class Completions:
    """The legacy Completions dialect."""

    id_prefix = "cmpl-"

    def decode(self, body: bytes) -> tuple[CompletionRequest, GenerationRequest]:
        """See `Dialect`."""
        asked = _decode(body)
        limit, param = asked.max_completion_tokens, "max_completion_tokens"
        if limit is None:
            limit, param = asked.max_tokens, "max_tokens"
        # A load generator's way to ask for exactly so many tokens: `stop: null` beside a limit.
        exact = bool(asked.ignore_eos) or (asked.stop is None and limit is not None)
        options = asked.stream_options
        request = GenerationRequest(
            asked.model,
            _prompts(asked.prompt),
            stream=bool(asked.stream),
            include_usage=options is not None and bool(options.include_usage),
            continuous_usage=options is not None and bool(options.continuous_usage_stats),
            n=asked.n or 1,
            limit_tokens=DEFAULT_LIMIT_TOKENS if limit is None else limit,
            limit_param=param,
            prompt_param="prompt",
            min_tokens=asked.min_tokens or 0,
            exact=exact and limit is not None,
            echo=bool(asked.echo),
            seed=asked.seed,
        )
        return asked, request

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        return Timeline(plan.steps, StepStream(plan, _Writer(context)).render, plan.offset_s, plan.after_s)

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
            b",".join([_choice(choice) for choice in plan.choices]),
            usage_json(plan.prompt_tokens, plan.completion_tokens, cached=plan.cached_tokens),
            FINGERPRINT.encode(),
        )


def _choice(choice: Choice) -> bytes:
    text = b"".join([b"".join(segment.pieces) for segment in choice.segments])
    return b'{"index":%d,"text":"%b","logprobs":null,"finish_reason":"%b"}' % (
        choice.index,
        text,
        choice.finish_reason.encode(),
    )


def _prompts(prompt: str | list[str | list[int] | int] | None) -> tuple[Prompt, ...]:
    """A text, a list of texts, one list of token ids, or a list with both."""
    if isinstance(prompt, str):
        return (_text(prompt),)
    if not prompt:
        raise RequestError("prompt must be a text, a list of texts, or token ids.", param="prompt")
    if all(isinstance(part, int) for part in prompt):
        return (_ids(prompt),)
    prompts: list[Prompt] = []
    for number, part in enumerate(prompt):
        if isinstance(part, str):
            prompts.append(_text(part))
        elif isinstance(part, list) and part:
            prompts.append(_ids(part))
        else:
            raise RequestError(f"prompt[{number}] must be a text or a list of token ids.", param=f"prompt[{number}]")
    return tuple(prompts)


def _text(text: str) -> Prompt:
    return Prompt((Message("", text),))


def _ids(ids: list[int] | list[str | list[int] | int]) -> Prompt:
    for token in ids:
        if not isinstance(token, int) or token < 0:
            raise RequestError(f"prompt: {token!r} is not a token id; token ids are integers ≥ 0.", param="prompt")
    return Prompt(token_ids=tuple(token for token in ids if isinstance(token, int)))


class _Writer:
    def __init__(self, context: Context) -> None:
        request = context.request
        self._head = (
            f'data: {{"id":"{context.id}","object":"text_completion","created":{context.created},"model":'.encode()
            + quoted(request.model)
            + f',"system_fingerprint":"{FINGERPRINT}","choices":['.encode()
        )
        self._context = context
        self._continuous = request.continuous_usage
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"

    def _close_event(self, tokens: int) -> bytes:
        if not self._continuous:
            return self._tail
        return b'],"usage":' + usage_json(self._context.plan.prompt_tokens, tokens) + b"}\n\n"

    def open(self, choice: Choice) -> list[bytes]:
        return []

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        pieces = segment.pieces
        if upto - first != len(pieces):
            pieces = pieces[first:upto]
        prefix = b'%b{"index":%d,"text":"' % (self._head, choice.index)
        suffix = b'","logprobs":null,"finish_reason":null}'
        if self._continuous:
            return [
                prefix + piece + suffix + self._close_event(before + number)
                for number, piece in enumerate(pieces, 1)
                if piece
            ]
        suffix += self._tail
        return [prefix + piece + suffix for piece in pieces if piece]

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def close(self, choice: Choice) -> list[bytes]:
        return [
            b'%b{"index":%d,"text":"","logprobs":null,"finish_reason":"%b"}%b'
            % (self._head, choice.index, choice.finish_reason.encode(), self._close_event(choice.tokens))
        ]

    def finish(self) -> list[bytes]:
        if not self._context.request.include_usage:
            return [DONE]
        plan = self._context.plan
        usage = usage_json(plan.prompt_tokens, plan.completion_tokens, cached=plan.cached_tokens)
        return [self._head + b'],"usage":' + usage + b"}\n\n", DONE]
