"""Responses that are read back: their state over time, their stream, their input, the bounds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseItemList

from mockllm.dialects.responses import Responses, ResponseStore, Stored
from mockllm.dialects.responses.reading import input_items, replay, snapshot
from mockllm.errors import RequestError
from mockllm.generation.plan import Segment
from tests.responses_answers import (
    ITL_S,
    TTFT_S,
    Event,
    call,
    make_context,
    make_plan,
    play,
    reasoning,
    refusal,
    text,
)

ARRIVAL_S = 1000.0


class Server:
    """A dialect and its store, answering with segments that the test gives."""

    def __init__(self, **bounds: int) -> None:
        self.store = ResponseStore(**bounds)
        self.dialect = Responses(self.store)
        self._count = 0

    def answer(self, *segments: Segment, **body: Any) -> Stored:
        self._count += 1
        context = make_context(self.dialect, make_plan(segments), f"resp_{self._count:024x}", **body)
        return self.store.put(context, ARRIVAL_S)

    def items(self, stored: Stored, **query: str) -> dict[str, Any]:
        listed = json.loads(input_items(self.store, stored, {name: [value] for name, value in query.items()}))
        assert isinstance(listed, dict)
        return listed

    def prompt(self, **body: Any) -> list[tuple[str, str]]:
        _, request = self.dialect.decode(json.dumps({"model": "m", **body}).encode())
        return [(message.role, message.text) for message in request.prompts[0].messages]


def read(stored: Stored, after_s: float) -> dict[str, Any]:
    response = json.loads(snapshot(stored, ARRIVAL_S + after_s))
    assert isinstance(response, dict)
    assert SdkResponse.model_validate_json(json.dumps(response), strict=True).status == response["status"]
    return response


# ---- state --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_s", "background", "synchronous"),
    [
        (0.0, "queued", "in_progress"),
        (TTFT_S - 0.01, "queued", "in_progress"),
        (TTFT_S + 0.01, "in_progress", "in_progress"),
        (TTFT_S + 2 * ITL_S - 0.01, "in_progress", "in_progress"),
        (TTFT_S + 2 * ITL_S + 0.01, "completed", "completed"),
        (1e6, "completed", "completed"),
    ],
)
def test_a_response_goes_through_its_states_as_its_plan_says(after_s: float, background: str, synchronous: str) -> None:
    server = Server()
    for body, status in (({"background": True}, background), ({}, synchronous)):
        response = read(server.answer(text("a", "b", "c"), **body), after_s)
        assert response["status"] == status
        assert (response["output"] == []) == (status != "completed")
        assert (response["usage"] is None) == (status != "completed")


def test_what_is_read_back_is_what_was_answered() -> None:
    server = Server()
    stored = server.answer(reasoning("Hm"), text("a"), call("f", "{}"))
    assert read(stored, 60) == json.loads(server.dialect.whole(stored.context))


def test_a_cancelled_response_stays_cancelled() -> None:
    stored = Server().answer(text("a"), background=True)
    stored.cancelled = True
    assert [read(stored, after_s)["status"] for after_s in (0, 1, 60)] == ["cancelled"] * 3


# ---- the stream again ---------------------------------------------------------------------------


def stream_again(stored: Stored, after_s: float, after: int | None = None) -> list[Event]:
    return play(replay(stored, ARRIVAL_S + after_s, after, padded=False))


def test_a_stream_that_is_read_again_is_the_same() -> None:
    server = Server()
    stored = server.answer(reasoning("Hm"), text("a", "b"), background=True)
    events = play(server.dialect.stream(stored.context))
    assert stream_again(stored, 0) == stream_again(stored, 60) == events


@pytest.mark.parametrize("after", [-1, 0, 1, 2, 5, 8, 100])
def test_a_stream_is_resumed_after_an_event(after: int) -> None:
    stored = Server().answer(text("a", "b", "c"))
    events = stream_again(stored, 60)
    assert stream_again(stored, 60, after) == [event for event in events if event["sequence_number"] > after]


@pytest.mark.parametrize("after_s", [0.0, TTFT_S / 2, TTFT_S, TTFT_S + 1.5 * ITL_S, 60.0])
def test_a_stream_that_is_read_again_keeps_its_deadlines(after_s: float) -> None:
    timeline = replay(Server().answer(text("a", "b", "c")), ARRIVAL_S + after_s, None, padded=False)
    due_s = [after_s + timeline.offset_s + timeline.after_s[k] for k in range(timeline.steps)]
    assert due_s == pytest.approx([max(after_s, TTFT_S + k * ITL_S) for k in range(3)])
    assert timeline.offset_s >= 0
    assert timeline.after_s[0] == 0


# ---- conversations ------------------------------------------------------------------------------


def test_a_response_continues_the_one_before_it_without_its_instructions() -> None:
    server = Server()
    first = server.answer(text("Hello", "!"), input="hi", instructions="Be brief.")
    second = server.answer(
        reasoning("Hm"), call("f", "{}"), call("g", "{}"), input="go", previous_response_id=first.context.id
    )
    output = [{"type": "function_call_output", "call_id": "call_f", "output": "4"}]
    assert server.prompt(input=output, previous_response_id=second.context.id, instructions="Be kind.") == [
        ("system", "Be kind."),
        ("user", "hi"),
        ("assistant", "Hello!"),
        ("user", "go"),
        ("assistant", ""),
        ("tool", "4"),
    ]


def test_the_images_of_earlier_turns_are_seen_again() -> None:
    server = Server()
    images = [{"role": "user", "content": [{"type": "input_image", "file_id": f"file_{k}"}]} for k in range(3)]
    first = server.answer(text("Nice"), input=images[:1])
    second = server.answer(text("Yes"), input=images[1:2], previous_response_id=first.context.id)
    body = {"model": "m", "input": images[2:], "previous_response_id": second.context.id}
    _, chained = server.dialect.decode(json.dumps(body).encode())
    _, at_once = server.dialect.decode(json.dumps({"model": "m", "input": images}).encode())
    assert chained.prompts[0].media == at_once.prompts[0].media
    assert len(set(at_once.prompts[0].media)) == 3


def test_the_conversation_outlives_its_first_response() -> None:
    server = Server()
    first = server.answer(text("Hello"), input="hi")
    second = server.answer(text("Yes"), input="go", previous_response_id=first.context.id)
    server.store.remove(first.context.id)
    assert server.prompt(input="on", previous_response_id=second.context.id) == [
        ("user", "hi"),
        ("assistant", "Hello"),
        ("user", "go"),
        ("assistant", "Yes"),
        ("user", "on"),
    ]


def test_what_a_cancelled_response_would_have_said_was_never_said() -> None:
    server = Server()
    first = server.answer(text("Hello"), input="hi", background=True)
    first.cancelled = True
    assert server.prompt(input="go", previous_response_id=first.context.id) == [("user", "hi"), ("user", "go")]


def test_a_refusal_is_part_of_the_conversation() -> None:
    server = Server()
    first = server.answer(text("Well"), refusal(" no"), input="hi")
    assert server.prompt(previous_response_id=first.context.id)[-1] == ("assistant", "Well no")


def test_items_can_be_referred_to() -> None:
    server = Server()
    stored = server.answer(reasoning("Hm"), text("Hello"), call("f", "{}"), input=[{"role": "user", "content": "hi"}])
    answered = [item["id"] for item in read(stored, 60)["output"]]
    asked = server.items(stored)["data"][0]["id"]
    references = [{"type": "item_reference", "id": identity} for identity in (asked, *answered)]
    assert server.prompt(input=references) == [("user", "hi"), ("assistant", "Hello")]
    assert server.prompt(input=[{"id": asked}, {"id": answered[2]}]) == [("user", "hi"), ("assistant", "")]
    with pytest.raises(RequestError, match="not found"):
        server.prompt(input=[{"id": asked[:-1] + "7"}])


def test_an_image_can_be_referred_to() -> None:
    server = Server()
    image = {"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}
    stored = server.answer(text("Nice"), input=[image])
    for given in ([image], [{"id": server.items(stored)["data"][0]["id"]}]):
        _, request = server.dialect.decode(json.dumps({"model": "m", "input": given}).encode())
        assert [media.kind for media in request.prompts[0].media] == ["image"]


# ---- input items --------------------------------------------------------------------------------


def test_input_items_are_shown_in_full_newest_first() -> None:
    server = Server()
    items = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "4"},
        {"type": "reasoning", "id": "rs_mine", "summary": []},
    ]
    listed = server.items(server.answer(text("a"), input=items), order="asc")
    assert ResponseItemList.model_validate_json(json.dumps(listed)).has_more is False
    assert [(item["type"], item.get("status")) for item in listed["data"]] == [
        ("message", "completed"),
        ("message", "completed"),
        ("function_call", "completed"),
        ("function_call_output", "completed"),
        ("reasoning", None),
    ]
    assert listed["data"][0]["content"] == [{"type": "input_text", "text": "hi"}]
    assert listed["data"][1]["content"] == [{"type": "output_text", "text": "yes", "annotations": []}]
    assert listed["data"][4]["id"] == listed["last_id"] == "rs_mine"
    newest_first = server.items(server.answer(text("a"), input=items))["data"]
    assert [item["type"] for item in newest_first] == [item["type"] for item in reversed(listed["data"])]


def test_input_items_hold_the_turns_before() -> None:
    server = Server()
    first = server.answer(text("Hello"), input="hi")
    second = server.answer(text("Yes"), input="go", previous_response_id=first.context.id)
    listed = server.items(second, order="asc")["data"]
    assert [item["content"][0]["text"] for item in listed] == ["hi", "Hello", "go"]


def test_input_items_come_in_pages() -> None:
    server = Server()
    stored = server.answer(text("a"), input=[{"role": "user", "content": str(k)} for k in range(5)])
    seen: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = server.items(stored, limit="2", **query)
        seen += [item["content"][0]["text"] for item in page["data"]]
        if not page["has_more"]:
            break
        query = {"after": page["last_id"]}
    assert seen == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("name", "value"), [("limit", "0"), ("limit", "101"), ("limit", "few"), ("order", "up"), ("after", "msg_no")]
)
def test_a_wrong_page_is_refused(name: str, value: str) -> None:
    server = Server()
    with pytest.raises(RequestError) as caught:
        server.items(server.answer(text("a")), **{name: value})
    assert caught.value.param == name


# ---- bounds -------------------------------------------------------------------------------------


def test_the_oldest_responses_make_room() -> None:
    server = Server(max_responses=3)
    ids = [server.answer(text("a")).context.id for _ in range(5)]
    assert [server.store.get(identity) is not None for identity in ids] == [False, False, True, True, True]


def test_long_responses_make_more_room() -> None:
    server = Server(max_bytes=100_000)
    small = [server.answer(text("a")).context.id for _ in range(5)]
    server.answer(text("a"), input="x" * 30_000)
    assert server.store.size_bytes <= 100_000
    assert server.store.get(small[0]) is None
    server.answer(text("a"), input="x" * 200_000)
    assert (len(server.store), server.store.size_bytes) == (0, 0)


def test_a_growing_conversation_counts_in_whole() -> None:
    """Each turn keeps all turns before it alive, and is charged for them."""
    server = Server()
    sizes = []
    previous = None
    for _ in range(4):
        stored = server.answer(text("a"), input="x" * 1000, previous_response_id=previous)
        previous = stored.context.id
        sizes.append(stored.size_bytes)
    assert all(later - earlier >= 1000 for earlier, later in pairwise(sizes))


def test_removing_gives_the_room_back() -> None:
    server = Server()
    identity = server.answer(text("a")).context.id
    assert server.store.remove(identity) is not None
    assert server.store.remove(identity) is None
    assert server.store.size_bytes == 0
