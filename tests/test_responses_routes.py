"""The Responses routes, asked through the application without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Reply, Request
from tests.responses_answers import Event, play, read_frame

TTFT_MS = 100.0
ITL_MS = 10.0


class Asked:
    """A reply, played to its end."""

    def __init__(self, reply: Reply) -> None:
        self.status = reply.status
        self.headers = dict(line.split(": ", 1) for line in reply.headers.decode("latin-1").splitlines())
        self.timeline = reply.timeline
        self.streamed = reply.length_bytes is None

    @property
    def json(self) -> dict[str, Any]:
        (body,) = self.timeline.render(0, 1)
        value = json.loads(body)
        assert isinstance(value, dict)
        return value

    @property
    def events(self) -> list[Event]:
        return play(self.timeline)


class Client:
    """Asks one application, at the times of a clock that the test moves."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self._app = App(Config(ttft_ms=TTFT_MS, itl_ms=ITL_MS, output_tokens=5, **settings), self.clock)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Asked:
        return self.send(method, path, b"" if body is None else json.dumps({"model": "m", **body}).encode())

    def send(self, method: str, path: str, content: bytes) -> Asked:
        target, _, query = path.partition("?")
        now = self.clock.now()
        request = Request(method, target, query, {}, content, now, now)
        self.exchange = self._app.exchange(request)
        return Asked(self._app.handle(request, self.exchange))

    def create(self, **body: Any) -> dict[str, Any]:
        asked = self.ask("POST", "/v1/responses", {"input": "hi", **body})
        assert asked.status == 200
        return asked.json


def test_a_background_response_is_answered_at_once_and_then_polled() -> None:
    client = Client()
    asked = client.ask("POST", "/v1/responses", {"input": "hi", "background": True})
    assert (asked.timeline.end_s, asked.json["status"]) == (0, "queued")
    seen = []
    for _ in range(5):
        seen.append(client.ask("GET", f"/v1/responses/{asked.json['id']}").json["status"])
        client.clock.advance(0.04)
    assert seen == ["queued", "queued", "queued", "in_progress", "completed"]
    done = client.ask("GET", f"/v1/responses/{asked.json['id']}").json
    assert done["output"][0]["content"] == client.create()["output"][0]["content"]
    assert done["usage"]["output_tokens"] == 5


def test_a_background_response_is_cancelled_while_it_runs() -> None:
    client = Client()
    identity = client.create(background=True)["id"]
    client.clock.advance(0.12)
    cancelled = client.ask("POST", f"/v1/responses/{identity}/cancel").json
    client.clock.advance(60)
    assert (cancelled["status"], cancelled["output"]) == ("cancelled", [])
    assert client.ask("GET", f"/v1/responses/{identity}").json == cancelled
    assert client.ask("POST", f"/v1/responses/{identity}/cancel").json == cancelled


def test_a_background_response_that_is_done_cannot_be_undone() -> None:
    client = Client()
    identity = client.create(background=True)["id"]
    client.clock.advance(60)
    assert client.ask("POST", f"/v1/responses/{identity}/cancel").json["status"] == "completed"


def test_a_stored_stream_is_read_back_as_a_stream() -> None:
    client = Client()
    asked = client.ask("POST", "/v1/responses", {"input": "hi", "background": True, "stream": True})
    assert asked.streamed
    events = asked.events
    path = f"/v1/responses/{events[0]['response']['id']}?stream=true"
    client.clock.advance(60)
    assert client.ask("GET", path).events == events
    assert client.ask("GET", f"{path}&starting_after=4").events == events[5:]
    padded = client.ask("GET", f"{path}&include_obfuscation=true").events
    assert [event for event in padded if "obfuscation" in event]


def test_tokens_are_recorded_where_they_are_sent() -> None:
    client = Client()
    identity = client.create(background=True)["id"]
    assert (client.exchange.tokens, client.exchange.finish_reason) == (0, "")
    client.ask("GET", f"/v1/responses/{identity}?stream=true")
    assert (client.exchange.tokens, client.exchange.finish_reason) == (5, "stop")
    client.ask("GET", f"/v1/responses/{identity}")
    assert client.exchange.tokens == 0


def test_store_false_is_honoured() -> None:
    client = Client()
    identity = client.create(store=False)["id"]
    assert client.ask("GET", f"/v1/responses/{identity}").status == 404
    assert client.ask("POST", "/v1/responses", {"input": "hi", "previous_response_id": identity}).status == 400


def test_a_deleted_response_is_gone() -> None:
    client = Client()
    identity = client.create()["id"]
    assert client.ask("DELETE", f"/v1/responses/{identity}").json == {
        "id": identity,
        "object": "response",
        "deleted": True,
    }
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")):
        asked = client.ask(method, f"/v1/responses/{identity}{path}")
        assert (asked.status, asked.json["error"]) == (
            404,
            {
                "message": f"Response with id '{identity}' not found.",
                "type": "invalid_request_error",
                "param": "response_id",
                "code": None,
            },
        )


def test_a_synchronous_response_cannot_be_cancelled() -> None:
    client = Client()
    asked = client.ask("POST", f"/v1/responses/{client.create()['id']}/cancel")
    assert (asked.status, asked.json["error"]["message"]) == (400, "Cannot cancel a synchronous response.")


def test_input_is_listed_and_counted() -> None:
    client = Client()
    created = client.create(instructions="Be brief.", input="one two three")
    listed = client.ask("GET", f"/responses/{created['id']}/input_items?limit=1").json
    assert listed["data"][0]["content"] == [{"type": "input_text", "text": "one two three"}]
    counted = client.ask(
        "POST", "/v1/responses/input_tokens", {"instructions": "Be brief.", "input": "one two three"}
    ).json
    assert counted == {"object": "response.input_tokens", "input_tokens": created["usage"]["input_tokens"]}


@pytest.mark.parametrize(
    ("method", "tail", "status", "allow"),
    [
        ("GET", "/cancel", 405, "POST"),
        ("DELETE", "/cancel", 405, "POST"),
        ("DELETE", "/input_items", 405, "GET"),
        ("POST", "/input_items", 405, "GET"),
        ("POST", "", 405, "GET, DELETE"),
        ("PUT", "", 405, "GET, HEAD, POST, DELETE, OPTIONS"),
        ("GET", "/output", 404, None),
        ("POST", "/output", 404, None),
    ],
)
def test_what_a_response_does_not_have_is_refused(method: str, tail: str, status: int, allow: str | None) -> None:
    client = Client()
    asked = client.ask(method, f"/v1/responses/{client.create()['id']}{tail}")
    assert (asked.status, asked.headers.get("allow")) == (status, allow)


def test_a_wrong_query_is_refused() -> None:
    client = Client()
    asked = client.ask("GET", f"/v1/responses/{client.create()['id']}?stream=true&starting_after=soon")
    assert (asked.status, asked.json["error"]["param"]) == (400, "starting_after")


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("field", ["tools", "text", "prompt", "input"])
def test_what_can_be_read_can_be_sent_back_however_deep_it_is(field: str) -> None:
    """Near the limit of the interpreter's stack a reply may be written where it is fuller than the request found it."""
    client = Client()
    shapes = {
        "tools": '"input":"hi","tools":[{"type":"function","name":"f","parameters":%s}]',
        "text": '"input":"hi","text":{"format":{"type":"json_schema","name":"n","schema":%s}}',
        "prompt": '"input":"hi","prompt":{"id":"p","variables":%s}',
        "input": '"input":[{"type":"mcp_call","output":%s},{"role":"user","content":"hi"}]',
    }
    statuses = set()
    for depth in (*range(700, 1100, 3), 100_000):
        asked = client.send(
            "POST", "/v1/responses", f'{{"model":"m","stream":true,{shapes[field] % nested(depth)}}}'.encode()
        )
        statuses.add(asked.status)
        if asked.status == 200:
            identity = read_frame(at_depth(60, asked))["response"]["id"]
            items = client.ask("GET", f"/v1/responses/{identity}/input_items")
            assert items.status in (200, 400)
    assert statuses == {200, 400}


def at_depth(depth: int, asked: Asked) -> bytes:
    """The stream's last event, written with so many frames more on the stack."""
    return at_depth(depth - 1, asked) if depth else asked.timeline.render(0, asked.timeline.steps)[-1]


@pytest.mark.parametrize("limit", [0, -1, 10**9])
def test_a_limit_out_of_bounds_is_refused(limit: int) -> None:
    asked = Client().ask("POST", "/v1/responses", {"input": "hi", "max_output_tokens": limit})
    assert (asked.status, asked.json["error"]["param"]) == (400, "max_output_tokens")


def test_a_request_without_a_model_gets_the_served_one() -> None:
    asked = Client(model="served").send("POST", "/v1/responses", b'{"input":"hi"}')
    assert (asked.status, asked.json["model"]) == (200, "served")


def test_truncation_drops_the_oldest_turns_but_never_the_instructions_or_the_last() -> None:
    client = Client(max_model_len=20)
    turns = [{"role": "user", "content": "one two three four"} for _ in range(6)]
    body = {"instructions": "Be brief", "input": turns, "max_output_tokens": 5}
    assert client.ask("POST", "/v1/responses", body).status == 400
    kept = client.create(**body, truncation="auto")
    assert kept["usage"]["input_tokens"] == 2 + 3 * 4
    last_alone = {**body, "input": [*turns[:2], {"role": "user", "content": "one two three four " * 10}]}
    assert client.ask("POST", "/v1/responses", {**last_alone, "truncation": "auto"}).status == 400


def test_a_limit_cuts_and_says_so() -> None:
    response = Client().create(max_output_tokens=2)
    assert (response["status"], response["usage"]["output_tokens"]) == ("incomplete", 2)
    exact = Client().create(max_output_tokens=9, ignore_eos=True)
    assert (exact["status"], exact["usage"]["output_tokens"]) == ("incomplete", 9)


@pytest.mark.parametrize(
    ("responses", "chat"),
    [
        ({}, {}),
        ({"seed": 4, "max_output_tokens": 3}, {"seed": 4, "max_completion_tokens": 3}),
    ],
)
def test_the_answer_is_that_of_chat(responses: dict[str, Any], chat: dict[str, Any]) -> None:
    client = Client()
    ours = client.create(instructions="Be brief.", **responses)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    theirs = client.ask("POST", "/v1/chat/completions", {"messages": messages, **chat}).json
    assert ours["output"][0]["content"][0]["text"] == theirs["choices"][0]["message"]["content"]
    assert ours["usage"]["input_tokens"] == theirs["usage"]["prompt_tokens"]
    assert ours["usage"]["output_tokens"] == theirs["usage"]["completion_tokens"]
