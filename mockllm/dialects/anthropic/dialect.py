"""`POST /v1/messages`: from the body to a `GenerationRequest`, and from the plan to a reply."""

from __future__ import annotations

from msgspec import UNSET

from mockllm.dialects.anthropic.inputs import read_effort, read_format, read_prompt, read_tool_choice, read_tools
from mockllm.dialects.anthropic.request import MessagesRequest, decode_conversation, decode_messages
from mockllm.dialects.anthropic.writer import MessagesWriter, block, ending, message, shown, usage
from mockllm.dialects.dialect import Context, StepStream
from mockllm.exchange import Timeline
from mockllm.generation.plan import GenerationRequest, Prompt


class Messages:
    """The Messages dialect.

    Args:
        opening_events: When `message_start` leaves: `at-head` or `with-first-token`.
    """

    id_prefix = "msg_"

    def __init__(self, opening_events: str = "at-head") -> None:
        self._opened_at_head = opening_events == "at-head"

    def decode(self, body: bytes) -> tuple[MessagesRequest, GenerationRequest]:
        """See `Dialect`."""
        asked = decode_messages(body)
        tools = read_tools(asked.tools)
        choice = asked.tool_choice
        request = GenerationRequest(
            asked.model,
            (read_prompt(asked),),
            stream=bool(asked.stream),
            limit_tokens=asked.max_tokens,
            min_tokens=asked.min_tokens or 0,
            exact=bool(asked.ignore_eos),
            stop=tuple(asked.stop_sequences or ()),
            seed=asked.seed,
            tools=tools,
            tool_choice=read_tool_choice(asked, tools),
            parallel_tool_calls=choice is None or not choice.disable_parallel_tool_use,
            format=read_format(asked),
            reasoning_effort=read_effort(asked, asked.max_tokens),
            overrides=None if asked.mockllm is UNSET else asked.mockllm,
        )
        return asked, request

    def counted(self, body: bytes) -> tuple[str, Prompt]:
        """The model and the prompt of a body that is only to be counted."""
        asked = decode_conversation(body)
        return asked.model, read_prompt(asked)

    def prepare(self, context: Context) -> None:
        """See `Dialect`."""

    def whole(self, context: Context) -> bytes:
        """See `Dialect`."""
        (choice,) = context.plan.choices
        silent = _silent(context)
        blocks = [block(choice, segment, silent) for segment in choice.segments if shown(segment)]
        return message(context, b",".join(blocks), ending(choice), usage(context.plan))

    def stream(self, context: Context) -> Timeline:
        """See `Dialect`."""
        plan = context.plan
        writer = MessagesWriter(context, self._opened_at_head, _silent(context))
        preamble = [writer.opening()] if self._opened_at_head else []
        return Timeline(plan.steps, StepStream(plan, writer).render, plan.offset_s, plan.after_s, preamble)


def _silent(context: Context) -> bool:
    body: MessagesRequest = context.body
    return body.thinking is not None and body.thinking.display == "omitted"
