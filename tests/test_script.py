"""Scripts: queued replies, which requests they are for, and what became of them."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm import Config, GivenCall, Match, RequestError, ScriptedReply, VirtualServer
from tests.said import CHAT, COMPLETIONS, MESSAGES, PATHS, RESPONSES, body_of, said, send

SCRIPT = "/mockllm/script"
SETTINGS: dict[str, Any] = {"ttft_ms": 100, "itl_ms": 10, "output_tokens": 12, "log_level": "error"}


@pytest.fixture
def server() -> VirtualServer:
    return VirtualServer(Config(**SETTINGS))


def texts(server: VirtualServer, *bodies: dict[str, Any]) -> list[str]:
    return [said(server, CHAT, body).text for body in bodies]


def hello(text: str = "Hello", model: str = "m") -> dict[str, Any]:
    return body_of(CHAT, text) | {"model": model}


class TestOrder:
    def test_replies_are_given_in_turn_and_then_the_usual_one(self, server: VirtualServer) -> None:
        usual = said(server, CHAT, hello())
        server.script([{"text": "one"}, {"text": "two"}])
        server.script([ScriptedReply(text="three")])
        assert texts(server, *[hello()] * 4) == ["one", "two", "three", usual.text]

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("path", PATHS)
    def test_on_every_api(self, server: VirtualServer, path: str, stream: bool) -> None:
        server.script([{"text": "one", "ttft_ms": 7, "itl_ms": 0}])
        reply = said(server, path, body_of(path, stream=stream))
        assert (reply.text, reply.last_s) == ("one", 0.007)

    def test_a_turn_with_calls_and_its_answer(self, server: VirtualServer) -> None:
        call = GivenCall("weather", {"city": "Oslo"})
        for path in (CHAT, RESPONSES, MESSAGES):
            server.script([ScriptedReply(reasoning="Hm.", tool_calls=(call,)), {"text": "Cold."}])
            first, second = said(server, path, body_of(path)), said(server, path, body_of(path))
            assert (first.reasoning, [name for name, _ in first.calls], second.text) == ("Hm.", ["weather"], "Cold.")

    def test_the_requests_own_keys_win(self, server: VirtualServer) -> None:
        server.script([{"text": "script", "ttft_ms": 7, "itl_ms": 0}])
        reply = said(server, CHAT, hello() | {"mockllm": {"text": "own"}})
        assert (reply.text, reply.last_s, server.script_state().used) == ("own", 0.007, 1)

    def test_it_works_without_overrides(self) -> None:
        server = VirtualServer(Config(overrides=False, **SETTINGS))
        server.script([{"text": "one"}])
        assert texts(server, hello()) == ["one"]

    def test_a_refused_request_takes_none(self, server: VirtualServer) -> None:
        server.script([{"text": "one"}])
        assert send(server, CHAT, hello() | {"temperature": 9}).status == 400
        assert send(server, CHAT, hello() | {"max_tokens": 10**9}).status == 400
        assert (server.script_state().used, server.script_state().missed) == (0, 0)
        assert texts(server, hello()) == ["one"]

    def test_a_reply_that_an_api_has_no_place_for_stays(self, server: VirtualServer) -> None:
        server.script([{"tool_calls": [{"name": "f"}]}])
        reply = send(server, COMPLETIONS, body_of(COMPLETIONS))
        assert (reply.status, reply.json()["error"]["param"]) == (400, "mockllm.tool_calls")
        assert len(server.script_state().left) == 1

    def test_requests_that_generate_nothing_take_none(self, server: VirtualServer) -> None:
        server.script([{"text": "one"}])
        send(server, "/v1/embeddings", {"model": "m", "input": "Hello"})
        assert (len(server.script_state().left), server.script_state().missed) == (1, 0)


class TestFaults:
    FAULTS: Any = [{"kind": "status", "status": 503}, [{"kind": "status", "status": 503}], "kind=status,status=503"]

    @pytest.mark.parametrize("overrides", [False, True])
    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_reply_goes_wrong_and_the_next_one_is_good(self, fault: Any, overrides: bool) -> None:
        server = VirtualServer(Config(overrides=overrides, **SETTINGS))
        server.script([{"fault": fault}, {"text": "one"}])
        for path in (CHAT, MESSAGES):
            server.script([{"fault": fault}, {"text": "one"}])
            assert send(server, path, body_of(path)).status == 503
            assert said(server, path, body_of(path)).text == "one"

    def test_a_stream_is_cut_within_its_text(self, server: VirtualServer) -> None:
        server.script([{"text": "one two three four", "fault": "kind=close,after_tokens=2"}])
        reply = server.post(CHAT, hello() | {"stream": True})
        server.run()
        assert (reply.status, reply.complete) == (200, False)
        assert server.ledger[-1].tokens == 2

    def test_the_requests_own_fault_wins_and_the_scripts_is_gone(self, server: VirtualServer) -> None:
        server.script([{"fault": "kind=status,status=503"}, {"text": "one"}])
        assert send(server, CHAT, hello(), {"x-mockllm-fault": "kind=status,status=429"}).status == 429
        assert texts(server, hello()) == ["one"]

    @pytest.mark.parametrize("fault", ["kind=nothing", {"kind": "nothing"}, {"kind": "status", "stattus": 5}, 5])
    def test_a_fault_that_does_not_exist_is_refused_when_it_is_queued(self, server: VirtualServer, fault: Any) -> None:
        with pytest.raises(RequestError) as caught:
            server.script([{"text": "a"}, {"fault": fault}])
        assert str(caught.value.param).startswith("script[1].fault")
        assert not server.script_state().left


class TestMatch:
    def test_by_model(self, server: VirtualServer) -> None:
        server.script([{"text": "b", "match": {"model": "b"}}, {"text": "any"}, {"text": "a", "match": {"model": "a"}}])
        assert texts(server, hello(model="a"), hello(model="a"), hello(model="b")) == ["any", "a", "b"]

    def test_by_a_part_of_the_last_message(self, server: VirtualServer) -> None:
        server.script([ScriptedReply(text="It rains.", match=Match(message="weather")), {"text": "any"}])
        turns = [{"role": "user", "content": "the weather?"}, {"role": "tool", "tool_call_id": "a", "content": "fog"}]
        assert texts(server, hello() | {"messages": turns}, hello("How is the weather?")) == ["any", "It rains."]

    @pytest.mark.parametrize("path", [RESPONSES, "/responses"])
    def test_by_path_with_and_without_v1(self, server: VirtualServer, path: str) -> None:
        server.script([{"text": "responses", "match": {"path": path}}, {"text": "chat"}])
        assert texts(server, hello()) == ["chat"]
        assert said(server, RESPONSES, body_of(RESPONSES)).text == "responses"

    def test_all_parts_have_to_match(self, server: VirtualServer) -> None:
        server.script([{"text": "one", "match": {"model": "a", "message": "x", "path": CHAT}}])
        usual = texts(server, hello("y", "a"), hello("x", "b"))
        assert "one" not in usual
        assert texts(server, hello("xx", "a")) == ["one"]

    def test_a_prompt_of_token_ids_has_no_message(self, server: VirtualServer) -> None:
        server.script([{"text": "one", "match": {"message": "a"}}])
        assert said(server, COMPLETIONS, {"model": "m", "prompt": [97, 98], "max_tokens": 5}).text != "one"


class TestState:
    def test_what_is_left_used_and_missed(self, server: VirtualServer) -> None:
        assert send(server, CHAT, hello()).status == 200  # no script, nothing missed
        server.script([{"text": "one"}, {"text": "two", "match": {"model": "b"}}])
        send(server, CHAT, hello())
        reply = send(server, CHAT, hello("And now?"), {"x-request-id": "r3"})
        state = server.script_state()
        assert state.left == (ScriptedReply(text="two", match=Match(model="b")),)
        assert (state.used, state.missed, state.strict) == (1, 1, False)
        (miss,) = state.misses
        assert (miss.seq, miss.request_id, miss.path) == (int(reply.headers["x-mockllm-seq"]), "r3", CHAT)
        assert (miss.model, miss.message) == ("m", "And now?")

    def test_equal_replies_are_told_apart(self, server: VirtualServer) -> None:
        server.script([{"text": "one"}] * 3)
        assert texts(server, hello(), hello()) == ["one", "one"]
        assert len(server.script_state().left) == 1

    def test_the_last_hundred_misses_are_listed(self, server: VirtualServer) -> None:
        server.script([])
        for number in range(103):
            send(server, CHAT, hello(str(number)) | {"max_tokens": 1})
        state = server.script_state()
        assert (state.missed, len(state.misses), state.misses[-1].message) == (103, 100, "102")

    def test_clearing_ends_it(self, server: VirtualServer) -> None:
        server.script([{"text": "one"}], strict=True)
        assert server.clear_script().left == (ScriptedReply(text="one"),)
        assert send(server, CHAT, hello()).status == 200
        state = server.script_state()
        assert (state.left, state.used, state.missed, state.strict) == ((), 0, 0, False)

    def test_a_strict_script_refuses_what_it_has_no_reply_for(self, server: VirtualServer) -> None:
        server.script([{"text": "one"}], strict=True)
        assert texts(server, hello()) == ["one"]
        reply = send(server, CHAT, hello())
        assert (reply.status, reply.json()["error"]["code"]) == (404, "no_scripted_reply")
        assert server.script_state().missed == 1
        assert send(server, MESSAGES, body_of(MESSAGES)).json()["error"]["type"] == "not_found_error"

    @pytest.mark.parametrize(
        ("reply", "param"),
        [
            ({"txt": "a"}, "script[1].txt"),
            ({"ttft_ms": -1}, "script[1].ttft_ms"),
            ({"match": {"modle": "a"}}, "script[1].match.modle"),
            ({"refusal": "No.", "text": "a"}, "script[1].refusal"),
            (ScriptedReply(ttft_ms=-1), "script[1].ttft_ms"),
            (5, "script[1]"),
        ],
    )
    def test_wrong_replies_are_refused_by_place_and_none_is_queued(
        self, server: VirtualServer, reply: Any, param: str
    ) -> None:
        with pytest.raises(RequestError) as caught:
            server.script([{"text": "a"}, reply])
        assert caught.value.param == param
        assert not server.script_state().left
        with pytest.raises(RequestError, match="JSON"):
            server.script([{"text": object()}])


class TestRoutes:
    def test_post_get_and_delete(self, server: VirtualServer) -> None:
        replies = [{"text": "one"}, {"tool_calls": [{"name": "f"}], "match": {"path": CHAT}}]
        state = send(server, SCRIPT, replies).json()
        assert state == {"left": replies, "used": 0, "missed": 0, "misses": [], "strict": False}
        assert texts(server, hello()) == ["one"]
        reply = server.get(SCRIPT)
        assert (reply.json()["left"], reply.json()["used"]) == (replies[1:], 1)
        client = server.connect()
        assert client.request("DELETE", SCRIPT).json()["left"] == replies[1:]
        assert server.get(SCRIPT).json()["left"] == []

    def test_strict(self, server: VirtualServer) -> None:
        assert send(server, SCRIPT + "?strict=true", []).json()["strict"]
        assert send(server, CHAT, hello()).status == 404
        error = send(server, SCRIPT + "?strict=maybe", []).json()["error"]
        assert error["param"] == "strict"

    @pytest.mark.parametrize(
        ("body", "param"), [(b"{}", "script"), (b"[{]", "script"), (b'[{"text":5}]', "script[0].text")]
    )
    def test_wrong_bodies(self, server: VirtualServer, body: bytes, param: str) -> None:
        reply = server.post(SCRIPT, body)
        assert (reply.status, reply.json()["error"]["param"]) == (400, param)

    def test_several_workers_have_no_script(self) -> None:
        server = VirtualServer(Config(workers=4, **SETTINGS))
        for method, body in (("GET", None), ("POST", []), ("DELETE", None)):
            reply = server.connect().request(method, SCRIPT, body)
            assert (reply.status, reply.json()["error"]["code"]) == (409, "several_workers")

    def test_questions_about_it_are_no_load(self, server: VirtualServer) -> None:
        send(server, SCRIPT, [{"text": "one"}])
        server.get(SCRIPT)
        assert (len(server.ledger), server.requests) == (0, ())
        assert send(server, CHAT, hello()).headers["x-mockllm-seq"] == "1"

    def test_it_goes_with_the_other_records(self) -> None:
        server = VirtualServer(Config(admin=False, **SETTINGS))
        assert server.get(SCRIPT).status == 404
        locked = VirtualServer(Config(api_key=("k",), admin_auth=True, **SETTINGS))
        assert locked.get(SCRIPT).status == 401
        assert locked.get(SCRIPT, {"authorization": "Bearer k"}).status == 200
