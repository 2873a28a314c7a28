"""What is read back of a stored response: its state, its stream, its input items.

Source: https://platform.openai.com/docs/api-reference/responses/get and …/input-items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from mockllm.dialects.decode import decoder
from mockllm.dialects.dialect import StepStream
from mockllm.dialects.responses.assembly import input_item_id, opening, whole_response
from mockllm.dialects.responses.store import ResponseStore, Stored
from mockllm.dialects.responses.writer import ResponsesWriter
from mockllm.errors import RequestError
from mockllm.exchange import Timeline

_encode = msgspec.json.Encoder().encode
_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}
_MOST_DIGITS = 18
_STATUS_ITEMS = ("message", "function_call", "function_call_output")

Query = Mapping[str, Sequence[str]]


def snapshot(stored: Stored, now: float) -> bytes:
    """The response as it stands at `now`."""
    status = stored.status_at(now)
    if status is None:
        return _encode(whole_response(stored.context))
    return _encode(replace(opening(stored.context), status=status))


def replay(stored: Stored, now: float, after: int | None, padded: bool) -> Timeline:
    """The response's stream, on its own timeline: what is overdue at `now` comes at once.

    Args:
        stored: The response.
        now: When the stream was asked for, in the clock's seconds.
        after: Only events with a higher sequence number are sent.
        padded: Deltas carry `obfuscation`.
    """
    plan = stored.context.plan
    gone_s = now - stored.arrival_s - plan.offset_s
    offset_s = max(0.0, -gone_s)
    after_s = [max(0.0, due - gone_s) - offset_s for due in plan.after_s[: plan.steps]]
    writer = ResponsesWriter(stored.context, True, padded)
    render = StepStream(plan, writer).render
    skip = 0 if after is None else after + 1
    preamble = writer.opening()
    if not skip:
        return Timeline(plan.steps, render, offset_s, after_s, preamble)
    left = max(0, skip - len(preamble))

    def render_rest(first: int, upto: int) -> list[bytes]:
        nonlocal left
        events = render(first, upto)
        skipped = min(left, len(events))
        left -= skipped
        return events[skipped:]

    return Timeline(plan.steps, render_rest, offset_s, after_s, preamble[skip:])


def input_items(store: ResponseStore, stored: Stored, query: Query) -> bytes:
    """The items that a response was made from, its earlier turns included as far as they are kept.

    Raises:
        RequestError: `limit` or `order` is out of range, or `after` names no item.
    """
    limit = query.get("limit", ["20"])[-1]
    if not (limit.isascii() and limit.isdigit() and len(limit) <= _MOST_DIGITS and 1 <= int(limit) <= 100):
        raise RequestError(f"limit must be a whole number from 1 to 100, got {limit[:40]!r}.", param="limit")
    order = query.get("order", ["desc"])[-1]
    if order not in ("asc", "desc"):
        raise RequestError(f"order must be asc or desc, got {order[:40]!r}.", param="order")
    items = _all_items(store, stored)
    if order == "desc":
        items.reverse()
    after = query.get("after")
    if after is not None:
        places = [number for number, item in enumerate(items) if item["id"] == after[-1]]
        if not places:
            raise RequestError(f"There is no item with id {after[-1][:100]!r}.", param="after")
        items = items[places[0] + 1 :]
    page = items[: int(limit)]
    return _encode(
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(items) > len(page),
        }
    )


def _all_items(store: ResponseStore, stored: Stored) -> list[dict[str, Any]]:
    """Oldest first."""
    turns = [_own_items(stored)]
    previous = stored.context.body.asked.previous_response_id
    while previous is not None:
        earlier = store.get(previous)
        if earlier is None:
            break
        output = msgspec.to_builtins(whole_response(earlier.context).output)
        turns.append([*_own_items(earlier), *output])
        previous = earlier.context.body.asked.previous_response_id
    return [item for turn in reversed(turns) for item in turn]


class _Given(Struct):
    """The input alone; what is in its items stays as it was sent."""

    input: str | list[dict[str, Raw]] | None = None


_decode = decoder(_Given)


def _own_items(stored: Stored) -> list[dict[str, Any]]:
    """The items of a response's own request, in the full form, each with an id."""
    given = _decode(stored.context.body.raw).input
    response_id = stored.context.id
    if isinstance(given, str):
        return [_message(input_item_id(response_id, "msg_", 0), "user", given)]
    return [_full(item, response_id, number) for number, item in enumerate(given or ())]


def _full(item: dict[str, Raw], response_id: str, number: int) -> dict[str, Any]:
    known = {name: msgspec.json.decode(item[name]) for name in ("type", "role", "id", "status") if name in item}
    kind = known.get("type") or ("message" if "role" in item else "item_reference")
    full: dict[str, Any] = {**item, "type": kind}
    full["id"] = known.get("id") or input_item_id(response_id, _PREFIXES.get(kind, "item_"), number)
    if kind in _STATUS_ITEMS:
        full["status"] = known.get("status") or "completed"
    if kind == "message" and bytes(item["content"]).startswith(b'"'):
        full["content"] = _message("", known["role"], msgspec.json.decode(item["content"]))["content"]
    return full


def _message(identity: str, role: str, text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": identity, "role": role, "status": "completed", "content": [part]}
