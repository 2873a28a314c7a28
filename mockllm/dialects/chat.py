"""`POST /v1/chat/completions`.

Source: https://platform.openai.com/docs/api-reference/chat/create; vLLM's
`ChatCompletionRequest` for what it adds.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mockllm.dialects.chat_stream import FINGERPRINT, ChatWriter
from mockllm.dialects.decode import decoder
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.messages import ChatMessage, prompt_of
from mockllm.dialects.usage import usage_json
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Segment


class StreamOptions(Struct):
    """`stream_options`; `continuous_usage_stats` is vLLM's."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class ChatRequest(Struct):
    """The body; fields that are not here are accepted and change nothing."""

    messages: list[ChatMessage]
    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    seed: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None


_decode = decoder(ChatRequest)


class Chat:
    """The Chat Completions dialect.

    Args:
        role_chunk: When the role is announced: `with-first-token`, `at-head` or `none`.
        reasoning_fields: Keys that carry reasoning text in messages and deltas.
    """

    id_prefix = "chatcmpl-"

    def __init__(
        self, role_chunk: str = "with-first-token", reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    ) -> None:
        self._role_chunk = role_chunk
        self._reasoning_fields = reasoning_fields

    def decode(self, body: bytes) -> tuple[ChatRequest, GenerationRequest]:
        """See `Dialect`."""
        asked = _decode(body)
        limit, param = asked.max_completion_tokens, "max_completion_tokens"
        if limit is None:
            limit, param = asked.max_tokens, "max_tokens"
        options = asked.stream_options
        request = GenerationRequest(
            asked.model,
            (prompt_of(asked.messages),),
            stream=bool(asked.stream),
            include_usage=options is not None and bool(options.include_usage),
            continuous_usage=options is not None and bool(options.continuous_usage_stats),
            n=asked.n or 1,
            limit_tokens=limit,
            limit_param=param,
            min_tokens=asked.min_tokens or 0,
            exact=bool(asked.ignore_eos),
            seed=asked.seed,
        )
        return asked, request

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        writer = ChatWriter(context, self._role_chunk == "with-first-token", self._reasoning_fields)
        preamble = [writer.role(choice) for choice in plan.choices] if self._role_chunk == "at-head" else []
        return Timeline(plan.steps, StepStream(plan, writer).render, plan.offset_s, plan.after_s, preamble)

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        plan = context.plan
        return (
            b'{"id":"%b","object":"chat.completion","created":%d,"model":%b,"choices":[%b],"usage":%b,'
            b'"service_tier":"default","system_fingerprint":"%b"}'
        ) % (
            context.id.encode(),
            context.created,
            quoted(context.request.model),
            b",".join([self._choice(choice) for choice in plan.choices]),
            usage_json(
                plan.prompt_tokens, plan.completion_tokens, cached=plan.cached_tokens, reasoning=plan.reasoning_tokens
            ),
            FINGERPRINT.encode(),
        )

    def _choice(self, choice: Choice) -> bytes:
        return b'{"index":%d,"message":{"role":"assistant",%b},"logprobs":null,"finish_reason":"%b"}' % (
            choice.index,
            self._message(choice),
            choice.finish_reason.encode(),
        )

    def _message(self, choice: Choice) -> bytes:
        text = b"".join([b"".join(segment.pieces) for segment in choice.segments if segment.kind == "text"])
        calls = [_call(segment) for segment in choice.segments if segment.kind == "tool"]
        refusal = b"".join([b"".join(segment.pieces) for segment in choice.segments if segment.kind == "refusal"])
        content = b"null" if (calls or refusal) and not text else b'"' + text + b'"'
        message = b'"content":' + content + b',"refusal":' + (b'"' + refusal + b'"' if refusal else b"null")
        if calls:
            message += b',"tool_calls":[' + b",".join(calls) + b"]"
        return message


def _call(segment: Segment) -> bytes:
    call = segment.call
    assert call is not None
    return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":"%b"}}' % (
        quoted(call.id),
        quoted(call.name),
        b"".join(segment.pieces),
    )
