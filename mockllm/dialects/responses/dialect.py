"""`POST /v1/responses`: from the body to a `GenerationRequest`, and from the plan to a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.fields import read_stop
from mockllm.dialects.responses.assembly import ID_PREFIX, opening, whole_response
from mockllm.dialects.responses.body import ResponsesBody, echo_of
from mockllm.dialects.responses.inputs import read_input
from mockllm.dialects.responses.request import ResponsesRequest, read_request
from mockllm.dialects.responses.store import ResponseStore
from mockllm.dialects.responses.tools import read_format, read_tool_choice, read_tools
from mockllm.dialects.responses.writer import ResponsesWriter
from mockllm.errors import RequestError
from mockllm.exchange import Timeline
from mockllm.generation.plan import GenerationRequest, Media, Message, Prompt

_encode = msgspec.json.Encoder().encode


class Responses:
    """The Responses dialect.

    Args:
        store: Holds what earlier responses said.
        opening_events: When `created` and `in_progress` leave: `at-head` or `with-first-token`.
        count: Tokens of a prompt, for `truncation: "auto"`.
        max_model_len: Longest prompt and reply together, in tokens.
        lenient: Bounds that can be passed are.
    """

    id_prefix = ID_PREFIX

    def __init__(
        self,
        store: ResponseStore,
        opening_events: str = "at-head",
        count: Callable[[Prompt], int] = lambda prompt: 0,
        max_model_len: int = 131_072,
        lenient: bool = False,
    ) -> None:
        self._store = store
        self._count = count
        self._max_model_len = max_model_len
        self._opened_at_head = opening_events == "at-head"
        self._lenient = lenient

    def decode(self, body: bytes) -> tuple[ResponsesBody, GenerationRequest]:
        """See `Dialect`."""
        asked = read_request(body)
        messages, media = self._earlier(asked.previous_response_id)
        reading = read_input(asked.input, self._store.item)
        messages += reading.messages
        media += reading.media
        tools = read_tools(asked.tools)
        text, reasoning = asked.text, asked.reasoning
        prompt = self._prompt(asked, messages, media)
        request = GenerationRequest(
            asked.model,
            (prompt,),
            stream=bool(asked.stream),
            limit_tokens=asked.max_output_tokens,
            limit_param="max_output_tokens",
            prompt_param="input",
            min_tokens=asked.min_tokens or 0,
            exact=bool(asked.ignore_eos),
            stop=read_stop(asked.stop or (), self._lenient),
            include_stop=bool(asked.include_stop_str_in_output),
            seed=asked.seed,
            logprobs=(asked.top_logprobs or 0) if asked.with_logprobs else None,
            tools=tools,
            tool_choice=read_tool_choice(asked.tool_choice, tools, bool(asked.tools)),
            parallel_tool_calls=asked.parallel_tool_calls is not False,
            format=read_format(text.format if text is not None else None),
            reasoning_effort=reasoning.effort if reasoning is not None else None,
            overrides=None if asked.mockllm is UNSET else asked.mockllm,
        )
        return ResponsesBody(asked, body if asked.stored else b"", messages, media, echo_of(asked)), request

    def prepare(self, context: Context) -> None:
        """See `Dialect`."""

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        return _encode(whole_response(context))

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        writer = ResponsesWriter(context, self._opened_at_head, context.body.asked.padded)
        preamble = writer.opening() if self._opened_at_head else []
        return Timeline(plan.steps, StepStream(plan, writer).render, plan.offset_s, plan.after_s, preamble)

    def accepted(self, context: Context) -> bytes:
        """The body that answers a background request at once."""
        return _encode(msgspec.structs.replace(opening(context), status="queued"))

    def _prompt(self, asked: ResponsesRequest, messages: Sequence[Message], media: Sequence[Media]) -> Prompt:
        """The instructions and the conversation, whose oldest turns are dropped where that was asked for."""
        system = () if asked.instructions is None else (Message("system", asked.instructions),)
        prompt = Prompt((*system, *messages), media=tuple(media))
        if asked.truncation != "auto":
            return prompt
        over = self._count(prompt) + max(1, asked.max_output_tokens or 1) - self._max_model_len
        dropped = 0
        while over > 0 and dropped < len(messages) - 1:
            over -= self._count(Prompt((messages[dropped],)))
            dropped += 1
        return Prompt((*system, *messages[dropped:]), media=prompt.media) if dropped else prompt

    def _earlier(self, previous: str | None) -> tuple[list[Message], list[Media]]:
        if previous is None:
            return [], []
        stored = self._store.get(previous)
        if stored is None:
            raise RequestError(
                f"Previous response with id {previous[:100]!r} not found." + self._store.elsewhere(previous),
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return stored.conversation(), list(stored.context.body.media)
