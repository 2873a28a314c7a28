"""`POST /v1/completions`.

Source: https://platform.openai.com/docs/api-reference/completions/create; vLLM's
`CompletionRequest` for what it adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mockllm.dialects.chunks import FINGERPRINT, ChunkWriter, finish_json
from mockllm.dialects.completions_request import CompletionRequest, read_completion
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import CompletionLogprobs, prompt_logprobs
from mockllm.dialects.usage import plan_usage
from mockllm.exchange import Timeline
from mockllm.generation.logprobs import Scores
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
