"""The events of a streamed message, and the parts that a whole one shares with them.

Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

from base64 import b64encode

import msgspec

from mockllm.dialects.dialect import Context
from mockllm.dialects.jsontext import plain, quoted
from mockllm.generation.keyed import derive, octets
from mockllm.generation.plan import Choice, Plan, Segment, ToolCall

SIGNATURE_BYTES = 192

_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_NOT_ENDED = b'"stop_reason":null,"stop_sequence":null'
_STOP_REASONS = {"length": b'"max_tokens"', "content_filter": b'"refusal"', "tool_calls": b'"tool_use"'}
_DELTAS = {
    "text": b'"text_delta","text":"',
    "refusal": b'"text_delta","text":"',
    "reasoning": b'"thinking_delta","thinking":"',
    "tool": b'"input_json_delta","partial_json":"',
}


class MessagesWriter:
    """Writes a plan as the events of a message; see `Writer`.

    Args:
        context: The answer.
        opened: `message_start` left with the head, and is not to be sent again.
        silent: Thinking is done, but not shown (`thinking.display` is `omitted`).
    """

    def __init__(self, context: Context, opened: bool, silent: bool) -> None:
        self._context = context
        self._opened = opened
        self._silent = silent
        self._index = -1
        self._prefix = b""

    def opening(self) -> bytes:
        """The event that opens the message; nothing is written yet, and it says so."""
        return b'event: message_start\ndata: {"type":"message_start","message":%b}\n\n' % message(self._context)

    def open(self, choice: Choice) -> list[bytes]:
        return [] if self._opened else [self.opening()]

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        if not shown(segment):
            return []
        self._index += 1
        self._prefix = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":'
        ) % self._index
        start = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
        events = [start % (self._index, _empty_block(segment))]
        if self._index == 0:
            events.append(_PING)
        return events

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        if segment.kind == "reasoning" and self._silent:
            return []
        pieces = segment.pieces
        if upto - first != len(pieces):
            pieces = pieces[first:upto]
        prefix = self._prefix + _DELTAS[segment.kind]
        return [prefix + piece + b'"}}\n\n' for piece in pieces if piece]

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        if not shown(segment):
            return []
        events = []
        if segment.kind == "reasoning":
            events.append(self._prefix + b'"signature_delta","signature":"' + signature(choice) + b'"}}\n\n')
        stop = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
        return [*events, stop % self._index]

    def close(self, choice: Choice) -> list[bytes]:
        return [
            b'event: message_delta\ndata: {"type":"message_delta","delta":{%b},"usage":{%b}}\n\n'
            % (ending(choice), usage(self._context.plan))
        ]

    def finish(self) -> list[bytes]:
        return [_STOP]


def message(context: Context, content: bytes = b"", ends: bytes = _NOT_ENDED, counts: bytes | None = None) -> bytes:
    """A message object; as it is when it begins, unless more is given.

    Args:
        context: The answer.
        content: The blocks as JSON, with commas between.
        ends: Why it ended, see `ending`.
        counts: Its usage, see `usage`.
    """
    return (
        b'{"id":"%b","type":"message","role":"assistant","model":%b,"content":[%b],%b,"usage":{%b,'
        b'"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}'
    ) % (
        context.id.encode(),
        quoted(context.request.model),
        content,
        ends,
        usage(context.plan, begun=True) if counts is None else counts,
    )


def block(choice: Choice, segment: Segment, silent: bool) -> bytes:
    """A whole content block."""
    pieces = b"".join(segment.pieces)
    if segment.call is not None:
        return _tool_use(segment.call, _input(pieces))
    if segment.kind == "reasoning":
        text = b"" if silent else pieces
        return b'{"type":"thinking","thinking":"%b","signature":"%b"}' % (text, signature(choice))
    return b'{"type":"text","text":"%b"}' % pieces


def shown(segment: Segment) -> bool:
    """Whether a segment is a block: text that was cut away to nothing is none."""
    return segment.call is not None or segment.kind == "reasoning" or any(segment.pieces)


def signature(choice: Choice) -> bytes:
    """What a thinking block is signed with: opaque, and a part of the answer like its text."""
    return b64encode(octets(derive(choice.key, b"signature"), SIGNATURE_BYTES))


def ending(choice: Choice) -> bytes:
    """Why the message ended, as the insides of an object."""
    if isinstance(choice.stop_reason, str):
        return b'"stop_reason":"stop_sequence","stop_sequence":' + quoted(choice.stop_reason)
    reason = _STOP_REASONS.get(choice.finish_reason, b'"end_turn"')
    if choice.finish_reason == "stop" and any(segment.call for segment in choice.segments):
        reason = b'"tool_use"'  # a call that the request forced by name
    elif any(segment.kind == "refusal" for segment in choice.segments):
        reason = b'"refusal"'
    details = b',"stop_details":{"type":"refusal","category":null,"explanation":null}' if b"refusal" in reason else b""
    return b'"stop_reason":%b,"stop_sequence":null%b' % (reason, details)


def usage(plan: Plan, *, begun: bool = False) -> bytes:
    """The counts of a usage object, as the insides of one.

    Args:
        plan: The answer. Tokens read from a cache are none of `input_tokens`.
        begun: Nothing is out yet.
    """
    return (
        b'"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d,'
        b'"output_tokens_details":{"thinking_tokens":%d}'
    ) % (
        plan.prompt_tokens - plan.cached_tokens,
        plan.cached_tokens,
        0 if begun else plan.completion_tokens,
        0 if begun else plan.reasoning_tokens,
    )


def _empty_block(segment: Segment) -> bytes:
    if segment.call is not None:
        return _tool_use(segment.call, b"{}")
    if segment.kind == "reasoning":
        return b'{"type":"thinking","thinking":"","signature":""}'
    return b'{"type":"text","text":""}'


def _tool_use(call: ToolCall, given: bytes) -> bytes:
    identity = "toolu_" + call.id.removeprefix("call_")
    return b'{"type":"tool_use","id":%b,"name":%b,"input":%b}' % (quoted(identity), quoted(call.name), given)


def _input(pieces: bytes) -> bytes:
    """A call's arguments as JSON; an empty object where the limit cut them off."""
    text = plain(pieces).encode()
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return b"{}"
    return text if isinstance(given, dict) else b"{}"
