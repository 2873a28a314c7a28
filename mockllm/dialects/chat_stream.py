"""Chat Completions chunks.

Source: https://platform.openai.com/docs/api-reference/chat-streaming; vLLM's
`entrypoints/openai` for `continuous_usage_stats` and `reasoning_content`.
"""

from __future__ import annotations

from mockllm.dialects.dialect import Context
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.usage import usage_json
from mockllm.generation.plan import Choice, Segment

DONE = b"data: [DONE]\n\n"
FINGERPRINT = "fp_mockllm"


class ChatWriter:
    """Writes a plan as chat chunks.

    Args:
        context: The answer.
        role_chunk: A chunk of its own announces the role, with the first token; else the role
            stands nowhere (`none`) or went out with the head (`at-head`).
        reasoning_fields: Delta keys that carry reasoning text.
    """

    def __init__(self, context: Context, role_chunk: bool, reasoning_fields: tuple[str, ...]) -> None:
        request = context.request
        self._head = (
            b'data: {"id":"%b","object":"chat.completion.chunk","created":%d,"model":%b,'
            b'"system_fingerprint":"%b","choices":['
        ) % (context.id.encode(), context.created, quoted(request.model), FINGERPRINT.encode())
        self._context = context
        self._role_chunk = role_chunk
        self._reasoning_fields = reasoning_fields
        self._continuous = request.continuous_usage
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._tool_index: dict[int, int] = {}

    def _event(self, index: int, delta: bytes, tokens: int, finish: bytes = b"null") -> bytes:
        return b'%b{"index":%d,"delta":{%b},"logprobs":null,"finish_reason":%b}%b' % (
            self._head,
            index,
            delta,
            finish,
            self._close_event(tokens),
        )

    def _close_event(self, tokens: int) -> bytes:
        if not self._continuous:
            return self._tail
        return b'],"usage":' + usage_json(self._context.plan.prompt_tokens, tokens) + b"}\n\n"

    def role(self, choice: Choice) -> bytes:
        """The chunk that announces the role."""
        content = b"null" if choice.segments and choice.segments[0].kind == "tool" else b'""'
        return self._event(choice.index, b'"role":"assistant","content":' + content, 0)

    def open(self, choice: Choice) -> list[bytes]:
        return [self.role(choice)] if self._role_chunk else []

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        call = segment.call
        if call is None:
            return []
        number = self._tool_index.get(choice.index, -1) + 1
        self._tool_index[choice.index] = number
        delta = b'"tool_calls":[{"index":%d,"id":%b,"type":"function","function":{"name":%b,"arguments":""}}]' % (
            number,
            quoted(call.id),
            quoted(call.name),
        )
        return [self._event(choice.index, delta, 1)]

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        opening, closing = self._around(choice, segment)
        pieces = segment.pieces
        if upto - first != len(pieces):
            pieces = pieces[first:upto]
        prefix = b'%b{"index":%d,"delta":{%b' % (self._head, choice.index, opening)
        suffix = closing + b'},"logprobs":null,"finish_reason":null}'
        if self._continuous:
            return [
                prefix + piece + suffix + self._close_event(before + number)
                for number, piece in enumerate(pieces, 1)
                if piece
            ]
        suffix += self._tail
        return [prefix + piece + suffix for piece in pieces if piece]

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        """What stands before and after a piece inside the delta."""
        if segment.kind == "text":
            return b'"content":"', b'"'
        if segment.kind == "tool":
            number = self._tool_index[choice.index]
            return b'"tool_calls":[{"index":%d,"function":{"arguments":"' % number, b'"}}]'
        if segment.kind == "refusal":
            return b'"refusal":"', b'"'
        return b'"' + self._reasoning_fields[0].encode() + b'":"', b'"'

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def close(self, choice: Choice) -> list[bytes]:
        return [self._event(choice.index, b"", choice.tokens, b'"' + choice.finish_reason.encode() + b'"')]

    def finish(self) -> list[bytes]:
        if not self._context.request.include_usage:
            return [DONE]
        plan = self._context.plan
        usage = usage_json(
            plan.prompt_tokens, plan.completion_tokens, cached=plan.cached_tokens, reasoning=plan.reasoning_tokens
        )
        return [self._head + b'],"usage":' + usage + b"}\n\n", DONE]
