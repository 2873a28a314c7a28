"""`POST /v1/chat/completions`.

Source: https://platform.openai.com/docs/api-reference/chat/create; vLLM's
`ChatCompletionRequest` for what it adds.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mockllm.dialects.chat_stream import ChatWriter, scored
from mockllm.dialects.chat_tools import read_function_call, read_functions, read_tool_choice, read_tools
from mockllm.dialects.chunks import FINGERPRINT, finish_json
from mockllm.dialects.decode import decoder
from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.formats import Formatted, read_format
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import chat_logprobs, prompt_logprobs
from mockllm.dialects.messages import ChatMessage, Content, content_text, prompt_of
from mockllm.dialects.usage import plan_usage
from mockllm.errors import RequestError
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Segment

REASONING_FIELDS = {
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "both": ("reasoning_content", "reasoning"),
}


class StreamOptions(Struct):
    """`stream_options`; `continuous_usage_stats` is vLLM's."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Prediction(Struct):
    """`prediction`: the text that the client expects."""

    content: Content = None


class ChatRequest(Formatted, kw_only=True):
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
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    seed: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    prompt_logprobs: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    reasoning_effort: str | None = None
    include_reasoning: bool | None = None
    prediction: Prediction | None = None


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
        if asked.stream_options is not None and not asked.stream:
            raise RequestError("stream_options is only allowed with stream: true.", param="stream_options")
        limit, param = asked.max_completion_tokens, "max_completion_tokens"
        if limit is None:
            limit, param = asked.max_tokens, "max_tokens"
        if asked.top_logprobs is not None and not asked.logprobs:
            raise RequestError("top_logprobs is only allowed with logprobs: true.", param="top_logprobs")
        if asked.functions is None or asked.tools is not None:
            tools = read_tools(asked.tools)
            choice = read_tool_choice(asked.tool_choice, tools)
        else:
            tools = read_functions(asked.functions)
            choice = read_function_call(asked.function_call, tools)
        options, stop = asked.stream_options, asked.stop
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
            stop=() if not stop else (stop,) if isinstance(stop, str) else tuple(stop),
            stop_token_ids=tuple(asked.stop_token_ids or ()),
            include_stop=bool(asked.include_stop_str_in_output),
            seed=asked.seed,
            logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
            prompt_logprobs=asked.prompt_logprobs,
            tools=tools,
            tool_choice=choice,
            parallel_tool_calls=asked.parallel_tool_calls is not False,
            format=read_format(asked),
            reasoning_effort=asked.reasoning_effort,
            prediction=None if asked.prediction is None else content_text(asked.prediction.content),
        )
        return asked, request

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        writer = ChatWriter(context, self._role_chunk == "with-first-token", self._shown_fields(context))
        preamble = [writer.role(choice) for choice in plan.choices] if self._role_chunk == "at-head" else []
        return Timeline(plan.steps, StepStream(plan, writer).render, plan.offset_s, plan.after_s, preamble)

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        plan = context.plan
        return (
            b'{"id":"%b","object":"chat.completion","created":%d,"model":%b,"choices":[%b],"usage":%b,'
            b'"service_tier":"default","system_fingerprint":"%b"%b}'
        ) % (
            context.id.encode(),
            context.created,
            quoted(context.request.model),
            b",".join([self._choice(context, choice) for choice in plan.choices]),
            plan_usage(plan),
            FINGERPRINT.encode(),
            _prompt_logprobs(context),
        )

    def _shown_fields(self, context: Context) -> tuple[str, ...]:
        """The keys of reasoning text; none where the client asked for it to be left out (vLLM)."""
        return () if context.body.include_reasoning is False else self._reasoning_fields

    def _choice(self, context: Context, choice: Choice) -> bytes:
        return b'{"index":%d,"message":{"role":"assistant",%b},"logprobs":%b,"finish_reason":%b}' % (
            choice.index,
            self._message(context, choice),
            _logprobs(context, choice),
            finish_json(choice),
        )

    def _message(self, context: Context, choice: Choice) -> bytes:
        text = _joined(choice, "text")
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


def _logprobs(context: Context, choice: Choice) -> bytes:
    """Of the text or the refusal; null where there is neither, or none were asked for."""
    if choice.scores is None:
        return b"null"
    for segment in choice.segments:
        if segment.kind in ("text", "refusal"):
            entries = chat_logprobs(choice.scores, segment.pieces, 0, context.request.logprobs or 0)
            return scored(segment.kind, entries)
    return b"null"


def _prompt_logprobs(context: Context) -> bytes:
    """vLLM's field of the whole reply; nothing where it was not asked for."""
    count = context.request.prompt_logprobs
    shown = context.plan.choices[0].prompt
    if count is None or shown is None:
        return b""
    return b',"prompt_logprobs":' + prompt_logprobs(shown, count)
