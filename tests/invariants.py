"""What holds for every Responses stream, whoever made it.

`violations(events)` takes the events as decoded JSON and names every rule that they break;
`sdk_violations(events)` asks the official SDK. Both return an empty list for a good stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pydantic
from openai import OpenAI
from openai.types.responses import ResponseStreamEvent

Event = dict[str, Any]

ENDINGS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}

# Of each kind of part: the events that carry its text, and where the text stands in them and in the part.
TEXTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}
PARTS = {"response.content_part": "content_index", "response.reasoning_summary_part": "summary_index"}
ARGUMENTS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}


def violations(events: Sequence[Event]) -> list[str]:
    """Every rule of a Responses stream that the events break, in words."""
    if not events:
        return ["there are no events"]
    check = _Check()
    found = [*_order(events), *_lifecycle(events)]
    for event in events:
        found += [f"#{event.get('sequence_number')} {event['type']}: {text}" for text in check.event(event)]
    return [*found, *check.end(events[-1])]


def _order(events: Sequence[Event]) -> Iterator[str]:
    types = [event["type"] for event in events]
    if types[:2] != ["response.created", "response.in_progress"]:
        yield f"the stream begins with {types[:2]}"
    for kind in ("response.created", "response.in_progress"):
        if types.count(kind) > 1:
            yield f"{kind} comes {types.count(kind)} times"
    endings = [index for index, kind in enumerate(types) if kind in ENDINGS]
    if endings != [len(types) - 1]:
        yield f"endings stand at {endings} of {len(types)} events"
    numbers = [event.get("sequence_number") for event in events]
    if numbers != list(range(len(events))) or any(type(number) is not int for number in numbers):
        yield f"sequence numbers are {numbers}"


def _lifecycle(events: Sequence[Event]) -> Iterator[str]:
    responses = [event["response"] for event in events if "response" in event]
    if len({(response["id"], response["created_at"], response["model"]) for response in responses}) != 1:
        yield "id, creation time or model of the response change"
    for response in responses[:-1]:
        if (response["status"], response["output"], response["usage"]) != ("in_progress", [], None):
            yield "a response is not empty and in progress before its end"
    last = responses[-1]
    if last["status"] != ENDINGS.get(events[-1]["type"]):
        yield f"{events[-1]['type']} carries the status {last['status']}"
    if (last["error"] is not None) != (last["status"] == "failed"):
        yield f"the error of a response that {last['status']} is {last['error']}"
    if (last["incomplete_details"] is not None) != (last["status"] == "incomplete"):
        yield f"the incomplete_details of a response that {last['status']} are {last['incomplete_details']}"
    statuses = [item.get("status") for item in last["output"]]
    if last["status"] == "completed" and set(statuses) - {"completed"}:
        yield f"a completed response has items that are {statuses}"
    if last["status"] == "incomplete" and statuses and "incomplete" not in statuses:
        yield "an incomplete response has only completed items"
    if last["usage"] is not None:
        usage = last["usage"]
        if usage["total_tokens"] != usage["input_tokens"] + usage["output_tokens"]:
            yield f"usage does not add up: {usage}"
        if not {"cached_tokens", "cache_write_tokens"} <= usage["input_tokens_details"].keys():
            yield "usage lacks input token details"
        if "reasoning_tokens" not in usage["output_tokens_details"]:
            yield "usage lacks output token details"


class _Part:
    def __init__(self, part: Event) -> None:
        self.kind: str = part["type"]
        self.deltas: list[str] = []
        self.logprobs: list[Any] = []
        self.text: str | None = None
        self.done: Event | None = None


class _Item:
    def __init__(self, item: Event) -> None:
        self.added = item
        self.done: Event | None = None
        self.parts: dict[str, list[_Part]] = {field: [] for field in PARTS.values()}
        self.deltas: list[str] = []
        self.arguments: str | None = None


class _Check:
    """Follows a stream, item by item and part by part."""

    def __init__(self) -> None:
        self._items: list[_Item] = []

    def event(self, event: Event) -> Iterator[str]:
        kind: str = event["type"]
        if "output_index" not in event:
            return
        index = event["output_index"]
        if type(index) is not int:
            yield f"output_index is {index!r}"
        elif kind == "response.output_item.added":
            yield from self._added(index, event["item"])
        elif not 0 <= index < len(self._items):
            yield f"item {index} was not announced"
        elif self._items[index].done is not None:
            yield f"item {index} is done"
        elif kind == "response.output_item.done":
            yield from self._done(self._items[index], event["item"])
        else:
            item = self._items[index]
            if event["item_id"] != item.added["id"]:
                yield f"item_id is {event['item_id']}, the item's is {item.added['id']}"
            yield from self._inside(item, kind, event)

    def end(self, last: Event) -> Iterator[str]:
        for index, item in enumerate(self._items):
            if item.done is None:
                yield f"item {index} has no .done"
        if "response" in last and last["response"]["output"] != [item.done for item in self._items]:
            yield "the final output differs from the items as they were done"

    def _added(self, index: int, item: Event) -> Iterator[str]:
        if index != len(self._items):
            yield f"item {index} is announced as number {len(self._items)}"
        if item["id"] in {other.added["id"] for other in self._items}:
            yield f"the id {item['id']} is used twice"
        if "call_id" in item and item["call_id"] in {other.added.get("call_id") for other in self._items}:
            yield f"the call id {item['call_id']} is used twice"
        if item.get("status") != "in_progress":
            yield f"an item is announced with status {item.get('status')}"
        for field in ("content", "summary", "arguments", "input"):
            if item.get(field):
                yield f"an item is announced with {field}"
        for other in self._items:
            if other.done is None and other.added["type"] in ("message", "reasoning"):
                yield f"an item is announced while a {other.added['type']} item is open"
        self._items.append(_Item(item))

    def _inside(self, item: _Item, kind: str, event: Event) -> Iterator[str]:
        stem, _, step = kind.rpartition(".")
        if stem in PARTS:
            yield from self._part(item.parts[PARTS[stem]], step, event[PARTS[stem]], event["part"])
            return
        if kind == "response.output_text.annotation.added":
            return
        for part_kind, (name, field) in TEXTS.items():
            if stem == name:
                where = "summary_index" if "summary_index" in event else "content_index"
                parts = item.parts[where]
                if event[where] != len(parts) - 1 or parts[-1].done is not None or parts[-1].kind != part_kind:
                    yield f"there is no open {part_kind} part {event[where]}"
                else:
                    yield from self._text(parts[-1], step, event, field)
                return
        name, field = ARGUMENTS.get(item.added["type"], ("", ""))
        if stem != name:
            yield f"it does not belong into a {item.added['type']} item"
        elif item.arguments is not None:
            yield "the arguments are done"
        elif step == "delta":
            item.deltas.append(event["delta"])
            if not event["delta"]:
                yield "the delta is empty"
        else:
            item.arguments = event[field]
            if item.arguments != "".join(item.deltas):
                yield "the arguments differ from their deltas"
            if name == "response.function_call_arguments" and event["name"] != item.added["name"]:
                yield "the function's name changes"

    def _part(self, parts: list[_Part], step: str, index: int, part: Event) -> Iterator[str]:
        if step == "added":
            if index != len(parts):
                yield f"part {index} is announced as number {len(parts)}"
            if parts and parts[-1].done is None:
                yield "a part is announced while another is open"
            if part.get("text") or part.get("refusal"):
                yield "a part is announced with text"
            parts.append(_Part(part))
        elif index != len(parts) - 1 or parts[-1].done is not None:
            yield f"part {index} is not open"
        else:
            parts[-1].done = part
            if part["type"] != parts[-1].kind:
                yield "the part's type changes"
            if parts[-1].text is None:
                yield "the part is done before its text"
            if part[TEXTS[part["type"]][1]] != parts[-1].text:
                yield "the part differs from its text"
            if len(part.get("logprobs", [])) != len(parts[-1].logprobs):
                yield "the part has not the log probabilities of its deltas"

    def _text(self, part: _Part, step: str, event: Event, field: str) -> Iterator[str]:
        if part.text is not None:
            yield "the text is done"
        elif step == "delta":
            part.deltas.append(event["delta"])
            part.logprobs += event.get("logprobs", [])
            if part.kind == "output_text" and "logprobs" not in event:
                yield "logprobs is missing"
            if not event["delta"]:
                yield "the delta is empty"
        else:
            part.text = event[field]
            if part.text != "".join(part.deltas):
                yield "the text differs from its deltas"
            if event.get("logprobs", []) != part.logprobs:
                yield "the log probabilities differ from those of the deltas"

    def _done(self, item: _Item, done: Event) -> Iterator[str]:
        item.done = done
        for field in ("id", "type", "call_id", "name", "role"):
            if done.get(field) != item.added.get(field):
                yield f"the item's {field} changes"
        if done.get("status") not in ("completed", "incomplete"):
            yield f"the item is done with status {done.get('status')}"
        for field, parts in (
            ("content", item.parts["content_index"]),
            ("summary", item.parts["summary_index"]),
        ):
            if done.get(field, []) != [part.done for part in parts]:
                yield f"the item's {field} differs from its parts as they were done"
        if done["type"] in ARGUMENTS and (item.arguments is None or done[ARGUMENTS[done["type"]][1]] != item.arguments):
            yield "the item's arguments differ from their .done"


def sdk_violations(events: Sequence[Event]) -> list[str]:
    """What the official SDK has against the events: its types, validated strictly, and its stream helper."""
    found = []
    for event in events:
        try:
            _adapter().validate_json(json.dumps(event), strict=True)
        except pydantic.ValidationError as error:
            found.append(f"{event['type']}: {error}")
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    try:
        with _client().responses.stream(model="m", input="", extra_headers={"x-answer": quote(body)}) as stream:
            seen = [event.type for event in stream]
            if events[-1]["type"] == "response.completed":
                stream.get_final_response()
    except (RuntimeError, AssertionError, IndexError, KeyError, AttributeError) as error:
        found.append(f"responses.stream: {error!r}")
    else:
        if seen != [event["type"] for event in events]:
            found.append(f"responses.stream saw {seen}")
    return found


class _Answering(httpx.BaseTransport):
    """Answers every request with the stream that the request itself brings."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = unquote(request.headers["x-answer"])
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=body)


@cache
def _adapter() -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(ResponseStreamEvent)


@cache
def _client() -> OpenAI:
    http = httpx.Client(transport=_Answering())
    return OpenAI(api_key="none", base_url="http://sdk", http_client=http)  # type: ignore[arg-type]  # 3.x means httpx2
