"""Chat Completions chunks.

Source: https://platform.openai.com/docs/api-reference/chat-streaming; vLLM's and DeepSeek's
`reasoning_content`, which newer versions of vLLM call `reasoning`.
"""

from __future__ import annotations

from mockllm.dialects.chat_request import served_tier
from mockllm.dialects.chunks import ChunkWriter, ids_json
from mockllm.dialects.dialect import Around, Context
from mockllm.dialects.jsontext import quoted
from mockllm.dialects.logprobs import chat_logprobs
from mockllm.generation.pieces import piece as as_piece
from mockllm.generation.plan import Choice, Segment


class ChatWriter(ChunkWriter):
    """Writes a plan as chat chunks.

    Args:
        context: The answer.
        role_chunk: A chunk of its own announces the role, with the first token; else the role
            stands nowhere (`none`) or went out with the head (`at-head`).
        reasoning_fields: Delta keys that carry reasoning text; one of them, or see `FieldsWriter`.
    """

    def __init__(self, context: Context, role_chunk: bool, reasoning_fields: tuple[str, ...]) -> None:
        # Chunks name the tier where the request does; it would be a tenth of each chunk for nothing.
        tier = context.body.service_tier
        more = b"" if tier is None else b'"service_tier":"%b",' % served_tier(tier)
        super().__init__(context, "chat.completion.chunk", b'"delta":{}', more)
        self._role_chunk = role_chunk
        self._reasoning_fields = reasoning_fields
        self._legacy = context.request.tool_choice.legacy
        self._top = context.request.logprobs or 0
        self._as_ids = context.request.tokens_as_ids
        self._echoed = echoed(context)
        self._tool_index: dict[int, int] = {}

    def role(self, choice: Choice) -> bytes:
        """The chunk that announces the role."""
        content = b"null" if choice.segments and choice.segments[0].kind == "tool" else b'""'
        chunk = self.chunk(choice.index, b'"delta":{"role":"assistant","content":%b}' % content, 0)
        if not self._ids or choice.prompt is None:
            return chunk
        tail = self._close_chunk(0)
        return chunk[: -len(tail)] + b"]" + ids_json("prompt_token_ids", choice.prompt.ids) + tail[1:]

    def open(self, choice: Choice) -> list[bytes]:
        events = [self.role(choice)] if self._role_chunk else []
        if self._echoed:
            events.append(self.chunk(choice.index, b'"delta":{"content":"%b"}' % self._echoed, 0))
        return events

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        call = segment.call
        if call is None:
            return []
        name = quoted(call.name)
        if self._legacy:
            delta = b'"function_call":{"name":%b,"arguments":""}' % name
        else:
            number = self._tool_index.get(choice.index, -1) + 1
            self._tool_index[choice.index] = number
            what = (
                b'"custom","custom":{"name":%b,"input":""}'
                if call.kind == "custom"
                else b'"function","function":{"name":%b,"arguments":""}'
            )
            delta = b'"tool_calls":[{"index":%d,"id":%b,"type":%b}]' % (number, quoted(call.id), what % name)
        before = 0
        for other in choice.segments:
            if other is segment:
                break
            before += other.steps
        return [self.chunk(choice.index, b'"delta":{%b}' % delta, before + 1)]

    def _around(self, choice: Choice, segment: Segment) -> tuple[bytes, bytes]:
        if segment.kind == "text":
            return b'"delta":{"content":"', b'"}'
        if segment.kind == "refusal":
            return b'"delta":{"refusal":"', b'"}'
        if segment.call is None:
            return b'"delta":{"%b":"' % self._reasoning_fields[0].encode(), b'"}'
        if self._legacy:
            return b'"delta":{"function_call":{"arguments":"', b'"}}'
        key = b'custom":{"input' if segment.call.kind == "custom" else b'function":{"arguments'
        return b'"delta":{"tool_calls":[{"index":%d,"%b":"' % (self._tool_index[choice.index], key), b'"}}]}'

    def _logprobs(self, choice: Choice, segment: Segment, first: int, upto: int) -> bytes:
        if choice.scores is None or segment.kind not in ("text", "refusal"):
            return b"null"
        ids = segment.ids[first:upto] if self._as_ids and segment.ids else None
        return scored(segment.kind, chat_logprobs(choice.scores, segment.pieces[first:upto], first, self._top, ids))


class FieldsWriter(ChatWriter):
    """The same for reasoning text that stands under several keys at once, or under none."""

    def around(self, choice: Choice, segment: Segment) -> Around | None:
        return None if segment.kind == "reasoning" else super().around(choice, segment)

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        if segment.kind != "reasoning":
            return super().tokens(choice, segment, first, upto, before)
        if not self._reasoning_fields:
            return []
        keys = [b'"%b":"' % field.encode() for field in self._reasoning_fields]
        return [
            self.chunk(choice.index, b'"delta":{%b}' % b",".join([key + text + b'"' for key in keys]), out)
            for _, _, text, out in self._stretches(choice, segment, first, upto, before)
            if text
        ]


def echoed(context: Context) -> bytes:
    """What a reply's text begins with where it goes on with the last message (vLLM's `echo`)."""
    request = context.request
    messages = request.prompts[0].messages
    if not request.echo or not messages or messages[-1].role != "assistant":
        return b""
    return as_piece(messages[-1].text)


def scored(kind: str, entries: bytes) -> bytes:
    """A choice's `logprobs`, out of the entries of its text or its refusal."""
    if kind == "refusal":
        return b'{"content":null,"refusal":[%b]}' % entries
    return b'{"content":[%b],"refusal":null}' % entries
