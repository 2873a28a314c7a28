"""`POST /v1/chat/completions`.

Source: https://platform.openai.com/docs/api-reference/chat/create; vLLM's
`ChatCompletionRequest` for what it adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mockllm.dialects.chat_request import ChatRequest, read_chat, served_tier
from mockllm.dialects.chat_stream import ChatWriter, FieldsWriter, echoed, scored
from mockllm.dialects.chunks import FINGERPRINT, choice_ids, finish_json, ids_json
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import chat_logprobs, prepared, prompt_logprobs
from mockllm.dialects.padding import PaddedWriter
from mockllm.dialects.usage import plan_usage
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Segment

REASONING_FIELDS = {
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "both": ("reasoning_content", "reasoning"),
}


class Chat:
    """The Chat Completions dialect.

    Args:
        role_chunk: When the role is announced: `with-first-token`, `at-head` or `none`.
        reasoning_fields: Keys that carry reasoning text in messages and deltas.
        lenient: Bounds that can be passed are.
    """

    id_prefix = "chatcmpl-"

    def __init__(
        self,
        role_chunk: str = "with-first-token",
        reasoning_fields: tuple[str, ...] = ("reasoning_content",),
        *,
        lenient: bool = False,
    ) -> None:
        self._read = partial(read_chat, lenient=lenient)
        self._role_chunk = role_chunk
        self._reasoning_fields = reasoning_fields

    def decode(self, body: bytes) -> tuple[ChatRequest, GenerationRequest]:
        """See `Dialect`."""
        return self._read(body)

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        fields = self._shown_fields(context)
        writer_type = ChatWriter if len(fields) == 1 else FieldsWriter
        writer = writer_type(context, self._role_chunk == "with-first-token", fields)
        preamble = [writer.role(choice) for choice in plan.choices] if self._role_chunk == "at-head" else []
        options = context.body.stream_options
        if options is not None and options.include_obfuscation:
            padded = PaddedWriter(writer)
            preamble = [padded.pad(choice, [event])[0] for choice, event in zip(plan.choices, preamble, strict=False)]
            return Timeline(plan.steps, StepStream(plan, padded).render, plan.offset_s, plan.after_s, preamble)
        return Timeline(
            plan.steps, StepStream(plan, writer, writer.around).render, plan.offset_s, plan.after_s, preamble
        )

    def prepare(self, context: Context) -> Iterator[None] | None:
        """See `Dialect`."""

        def write(choice: Choice, first: int, upto: int) -> None:
            _logprobs(context, choice, first, upto)
            if choice.prompt is not None and context.request.prompt_logprobs is not None and choice.index == 0:
                prompt_logprobs(choice.prompt, context.request.prompt_logprobs, first, upto)

        return prepared(context, write)

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        plan = context.plan
        return (
            b'{"id":"%b","object":"chat.completion","created":%d,"model":%b,"choices":[%b],"usage":%b,'
            b'"service_tier":"%b","system_fingerprint":"%b"%b}'
        ) % (
            context.id.encode(),
            context.created,
            quoted(context.request.model),
            b",".join([self._choice(context, choice) for choice in plan.choices]),
            plan_usage(plan),
            served_tier(context.body.service_tier),
            FINGERPRINT.encode(),
            _prompt(context),
        )

    def _shown_fields(self, context: Context) -> tuple[str, ...]:
        """The keys of reasoning text; none where the client asked for it to be left out (vLLM)."""
        return () if context.body.include_reasoning is False else self._reasoning_fields

    def _choice(self, context: Context, choice: Choice) -> bytes:
        return b'{"index":%d,"message":{"role":"assistant",%b},"logprobs":%b,"finish_reason":%b%b}' % (
            choice.index,
            self._message(context, choice),
            _logprobs(context, choice),
            finish_json(choice),
            ids_json("token_ids", choice_ids(choice)) if context.request.token_ids else b"",
        )

    def _message(self, context: Context, choice: Choice) -> bytes:
        text = echoed(context) + _joined(choice, "text")
        refusal = _joined(choice, "refusal")
        reasoning = _joined(choice, "reasoning")
        calls = [segment for segment in choice.segments if segment.kind == "tool"]
        content = b"null" if (calls or refusal) and not text else b'"' + text + b'"'
        message = b'"content":' + content + b',"refusal":' + (b'"' + refusal + b'"' if refusal else b"null")
        if reasoning:
            for field in self._shown_fields(context):
                message += b',"%b":"%b"' % (field.encode(), reasoning)
        if calls and context.request.tool_choice.legacy:
            message += b',"function_call":' + _function(calls[0])
        elif calls:
            message += b',"tool_calls":[' + b",".join(map(_call, calls)) + b"]"
        return message


def _joined(choice: Choice, kind: str) -> bytes:
    return b"".join([b"".join(segment.pieces) for segment in choice.segments if segment.kind == kind])


def _call(segment: Segment) -> bytes:
    call = segment.call
    assert call is not None
    if call.kind == "function":
        return b'{"id":%b,"type":"function","function":%b}' % (quoted(call.id), _function(segment))
    return b'{"id":%b,"type":"custom","custom":{"name":%b,"input":"%b"}}' % (
        quoted(call.id),
        quoted(call.name),
        b"".join(segment.pieces),
    )


def _function(segment: Segment) -> bytes:
    assert segment.call is not None
    return b'{"name":%b,"arguments":"%b"}' % (quoted(segment.call.name), b"".join(segment.pieces))


def _logprobs(context: Context, choice: Choice, first: int = 0, upto: int | None = None) -> bytes:
    """Of the text or the refusal; null where there is neither, or none were asked for."""
    if choice.scores is None:
        return b"null"
    for segment in choice.segments:
        if segment.kind in ("text", "refusal"):
            ids = segment.ids[first:upto] if context.request.tokens_as_ids and segment.ids is not None else None
            entries = chat_logprobs(
                choice.scores, segment.pieces[first:upto], first, context.request.logprobs or 0, ids
            )
            return scored(segment.kind, entries)
    return b"null"


def _prompt(context: Context) -> bytes:
    """vLLM's fields about the prompt's tokens; nothing where they were not asked for."""
    request = context.request
    shown = context.plan.choices[0].prompt
    if shown is None:
        return b""
    fields = b""
    if request.prompt_logprobs is not None:
        fields += b',"prompt_logprobs":' + prompt_logprobs(shown, request.prompt_logprobs)
    return fields + ids_json("prompt_token_ids", shown.ids) if request.token_ids else fields
