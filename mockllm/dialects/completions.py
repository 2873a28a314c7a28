"""`POST /v1/completions`.

Source: https://platform.openai.com/docs/api-reference/completions/create; vLLM's
`CompletionRequest` for what it adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mockllm.dialects.chunks import FINGERPRINT, ChunkWriter, choice_ids, finish_json, ids_json
from mockllm.dialects.completions_request import CompletionRequest, read_completion
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import CompletionLogprobs, Run, prepared, prompt_logprobs
from mockllm.dialects.usage import plan_usage
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Segment


class Completions:
    """The legacy Completions dialect.

    Args:
        lenient: Bounds that can be passed are.
    """

    id_prefix = "cmpl-"

    def __init__(self, lenient: bool = False) -> None:
        self._read = partial(read_completion, lenient=lenient)

    def decode(self, body: bytes) -> tuple[CompletionRequest, GenerationRequest]:
        """See `Dialect`."""
        return self._read(body)

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        writer = CompletionWriter(context)
        return Timeline(plan.steps, StepStream(plan, writer, writer.around).render, plan.offset_s, plan.after_s)

    def prepare(self, context: Context) -> Iterator[None] | None:
        """See `Dialect`."""
        request = context.request

        def write(choice: Choice, first: int, upto: int) -> None:
            if request.logprobs is not None:
                runs = _prompt_run(request, choice, first, upto) if request.echo else []
                runs += [run for s in choice.segments for run in _run(request, choice, s, first, upto)]
                CompletionLogprobs(request.logprobs).write(runs)
            if choice.prompt is not None and request.prompt_logprobs is not None:
                prompt_logprobs(choice.prompt, request.prompt_logprobs, first, upto)

        return prepared(context, write)

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
    echoed = request.echo and choice.prompt is not None
    fields = b""
    if choice.prompt is not None:
        if request.echo:
            text = b"".join(choice.prompt.pieces) + text
        if request.prompt_logprobs is not None:
            fields += b',"prompt_logprobs":' + prompt_logprobs(choice.prompt, request.prompt_logprobs)
        if request.token_ids:
            fields += ids_json("prompt_token_ids", choice.prompt.ids) + ids_json("token_ids", choice_ids(choice))
    logprobs = b"null"
    if request.logprobs is not None:
        runs = _prompt_run(request, choice) if echoed else []
        runs += [run for segment in choice.segments for run in _run(request, choice, segment, 0, len(segment.pieces))]
        logprobs = CompletionLogprobs(request.logprobs).write(runs, opening=echoed)
    return b'{"index":%d,"text":"%b","logprobs":%b,"finish_reason":%b%b}' % (
        choice.index,
        text,
        logprobs,
        finish_json(choice),
        fields,
    )


def _prompt_run(request: GenerationRequest, choice: Choice, first: int = 0, upto: int | None = None) -> list[Run]:
    prompt = choice.prompt
    if prompt is None or prompt.scores is None:
        return []
    ids = prompt.ids[first:upto] if request.tokens_as_ids else None
    return [(prompt.scores, prompt.pieces[first:upto], first, ids)]


def _run(request: GenerationRequest, choice: Choice, segment: Segment, first: int, upto: int) -> list[Run]:
    if choice.scores is None:
        return []
    ids = segment.ids[first:upto] if request.tokens_as_ids and segment.ids is not None else None
    return [(choice.scores, segment.pieces[first:upto], first, ids)]


class CompletionWriter(ChunkWriter):
    """Writes a plan as completions chunks; an echoed prompt is one chunk, due with the first token."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, "text_completion", b'"text":""')
        self._written: dict[int, CompletionLogprobs] = {}

    def open(self, choice: Choice) -> list[bytes]:
        request = self._context.request
        if request.logprobs is not None:
            self._written[choice.index] = CompletionLogprobs(request.logprobs)
        prompt = choice.prompt
        if prompt is None:
            return []
        text = b"".join(prompt.pieces) if request.echo else b""
        if not text and not request.token_ids:
            return []
        logprobs = b"null"
        if text and request.logprobs is not None:
            logprobs = self._written[choice.index].write(_prompt_run(request, choice), opening=True)
        finish = b"null" + ids_json("prompt_token_ids", prompt.ids) if request.token_ids else b"null"
        return [self.chunk(choice.index, b'"text":"%b"' % text, 0, logprobs, finish)]

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        return b'"text":"', b'"'

    def _logprobs(self, choice: Choice, segment: Segment, first: int, upto: int) -> bytes:
        if choice.scores is None:
            return b"null"
        run = _run(self._context.request, choice, segment, first, upto)
        return self._written[choice.index].write(run)
