"""Turns a request into a plan: content, then length, then timing.

Text and length are keyed by (seed, prompt): the same prompt is answered alike by any worker, in
any order, streamed or whole, in any dialect. Timing is keyed by (seed, prompt, occurrence), so
that a body sent for ever still draws a distribution.
"""

from __future__ import annotations

from collections.abc import Callable

from mockllm.errors import RequestError
from mockllm.generation.content import TextSource
from mockllm.generation.keyed import derive, make_key, normals
from mockllm.generation.latency import Latency
from mockllm.generation.occurrence import Occurrences
from mockllm.generation.plan import Choice, FinishReason, GenerationRequest, Plan, Prompt, Segment, Tool, ToolCall
from mockllm.generation.tokens import Tokenizer

_ROLE_END = "\x1f"
_MESSAGE_END = "\x1e"


def prompt_content(prompt: Prompt) -> bytes:
    """What a prompt says, as bytes to key by; equal in every dialect for equal messages."""
    if prompt.token_ids is not None:
        return b"ids:" + b",".join([b"%d" % token for token in prompt.token_ids])
    text = _MESSAGE_END.join([message.role + _ROLE_END + message.text for message in prompt.messages])
    return text.encode("utf-8", "surrogatepass")


class Planner:
    """Plans answers.

    Args:
        tokenizer: Counts prompts.
        text: Makes free text.
        latency: Draws timings.
        seed: The server's seed, where a request has none.
        output_tokens, output_tokens_std: Length of free text, mean and standard deviation.
        max_model_len: Longest prompt and reply together, in tokens.
        new_id: Makes a unique id out of a prefix such as `call_`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: TextSource,
        latency: Latency,
        *,
        seed: int,
        output_tokens: float,
        output_tokens_std: float,
        max_model_len: int,
        new_id: Callable[[str], str],
    ) -> None:
        self._count = tokenizer.count
        self._text = text
        self._latency = latency
        self._seed = seed
        self._output_tokens = output_tokens
        self._output_tokens_std = output_tokens_std
        self._max_model_len = max_model_len
        self._new_id = new_id
        self._occurrences = Occurrences()

    def plan(self, request: GenerationRequest, occurrence_key: bytes | None = None) -> Plan:
        """Plan the answer.

        Args:
            request: What is asked for.
            occurrence_key: Takes the place of the occurrence in the key of the timing.

        Raises:
            RequestError: The limit is out of range, or prompt and limit exceed the context.
        """
        seed = self._seed if request.seed is None else request.seed
        counts = [self.prompt_tokens(prompt) for prompt in request.prompts]
        room = self._room(request, max(counts))
        choices: list[Choice] = []
        first_key = b""
        for prompt in request.prompts:
            key = make_key(seed, prompt_content(prompt))
            first_key = first_key or key
            for repeat in range(request.n):
                own = derive(key, b"choice:%d" % repeat) if repeat else key
                choices.append(self._choice(request, own, len(choices), room))
        steps = max([1, *[choice.tokens for choice in choices]])
        timing_key = b""
        if self._latency.draws:
            occurrence = occurrence_key or b"%d" % self._occurrences.count(first_key)
            timing_key = derive(first_key, b"timing:" + occurrence)
        offset_s, after_s = self._latency.stream(timing_key, steps)
        whole_s = None if request.stream else self._latency.whole(timing_key)
        return Plan(tuple(choices), sum(counts), steps, offset_s, after_s, whole_s)

    def prompt_tokens(self, prompt: Prompt) -> int:
        """Tokens of a prompt: each message's text by itself, without a template around it."""
        if prompt.token_ids is not None:
            return len(prompt.token_ids)
        count = self._count
        return sum([count(message.text) for message in prompt.messages]) + prompt.extra_tokens

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

    def _choice(self, request: GenerationRequest, key: bytes, index: int, room: int) -> Choice:
        tool = _tool_to_call(request)
        if tool is not None:
            return self._tool_choice(request, tool, key, index)
        wanted, finish_reason = self._length(request, key, room)
        return Choice(index, (Segment("text", self._text.pieces(key, wanted)),), finish_reason, wanted, key)

    def _length(self, request: GenerationRequest, key: bytes, room: int) -> tuple[int, FinishReason]:
        """Length of free text, and whether it ends by itself or is cut."""
        if request.exact and request.limit_tokens is not None:
            return room, "length"
        wanted = self._output_tokens
        if self._output_tokens_std:
            wanted += self._output_tokens_std * normals(derive(key, b"length"), 1)[0]
        tokens = max(1, request.min_tokens, round(wanted))
        return (room, "length") if tokens > room else (tokens, "stop")

    def _tool_choice(self, request: GenerationRequest, tool: Tool, key: bytes, index: int) -> Choice:
        pieces = [b"{", b"}"]
        finish_reason: FinishReason = "stop" if request.tool_choice.named else "tool_calls"
        limit = request.limit_tokens
        if limit is not None and limit < 1 + len(pieces):
            pieces = pieces[: limit - 1]
            finish_reason = "length"
        segment = Segment("tool", pieces, ToolCall(self._new_id("call_"), tool.name, tool.kind))
        return Choice(index, (segment,), finish_reason, segment.steps, key)


_PROMPTS = ("messages", "prompt", "input")


def _tool_to_call(request: GenerationRequest) -> Tool | None:
    choice = request.tool_choice
    if choice.mode != "required":
        return None
    allowed = [tool for tool in request.tools if not choice.names or tool.name in choice.names]
    return allowed[0] if allowed else None
