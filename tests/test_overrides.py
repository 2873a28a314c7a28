"""What one request changes about its own answer, key by key, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm import Config, VirtualServer
from mockllm.dialects.overrides import HEADERS, OverrideReader
from mockllm.generation.overrides import KEYS
from mockllm.generation.pieces import PieceMemo, pieces_of
from mockllm.generation.tokens import BuiltinTokenizer
from tests.answers import assemble
from tests.flag_table import README
from tests.override_rows import ROWS, SEEDED, USUAL_ITL_S, USUAL_TOKENS, USUAL_TTFT_S, Row
from tests.override_table import with_table
from tests.said import CHAT, COMPLETIONS, MESSAGES, PATHS, RESPONSES, body_of, said, send

TOKENIZER = BuiltinTokenizer()
USUAL: dict[str, Any] = {
    "ttft_ms": USUAL_TTFT_S * 1e3,
    "itl_ms": USUAL_ITL_S * 1e3,
    "output_tokens": USUAL_TOKENS,
    "log_level": "error",
}


def make_server(**more: Any) -> VirtualServer:
    return VirtualServer(Config(**(USUAL | more)))


@pytest.fixture
def server() -> VirtualServer:
    return make_server()


def refusal(server: VirtualServer, path: str, body: object, headers: dict[str, str] | None = None) -> Any:
    reply = send(server, path, body, headers)
    assert reply.status == 400, reply.body
    return reply.json()["error"]


class TestTable:
    def test_there_is_a_row_for_each_key(self) -> None:
        assert list(dict.fromkeys(row.key for row in ROWS)) == list(KEYS)
        assert {row.key for row in ROWS if row.header_value is not None} == set(HEADERS)
        assert {row.key for row in ROWS if row.wrong} == set(KEYS)

    def test_the_readmes_table_is_current(self) -> None:
        text = README.read_text(encoding="utf-8")
        assert with_table(text) == text, "run `python -m tests.override_table`"


def cases() -> list[Any]:
    """Each row on each of its paths."""
    return [
        pytest.param(row, path, id=f"{row.key}-{number}{path}") for number, row in enumerate(ROWS) for path in row.paths
    ]


class TestEachKey:
    @pytest.mark.parametrize("path", PATHS)
    def test_a_fault_takes_the_replys_place(self, server: VirtualServer, path: str) -> None:
        for fault in ({"kind": "status", "status": 429}, [{"kind": "status", "status": 429}], "kind=status,status=429"):
            assert send(server, path, body_of(path, mockllm={"fault": fault, "text": "a"})).status == 429
        assert send(server, path, body_of(path), {"x-mockllm-fault": "kind=status,status=429"}).status == 429
        assert said(server, path, body_of(path)).tokens == USUAL_TOKENS

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(("row", "path"), [case for case in cases() if "fault" not in str(case.id)])
    def test_it_does_what_it_says(self, server: VirtualServer, row: Row, path: str, stream: bool) -> None:
        body = body_of(path, stream=stream)
        if row.key == "seed":
            own = body | {"seed": row.value}
            SEEDED[path] = said(server, path, own).text
        usual = said(server, path, body)
        assert not row.holds(usual, path, stream), "the usual reply is so too"
        for _ in range(2):
            assert row.holds(said(server, path, body | {"mockllm": {row.key: row.value}}), path, stream)
        if row.header_value is not None:
            headers = {HEADERS[row.key].title(): row.header_value}
            assert row.holds(said(server, path, body, headers), path, stream)
        after = said(server, path, body)
        assert (after.text, after.finish, after.last_s) == (usual.text, usual.finish, usual.last_s)

    @pytest.mark.parametrize(("row", "path"), cases())
    def test_wrong_values_are_refused_by_name(self, server: VirtualServer, row: Row, path: str) -> None:
        for value in row.wrong:
            error = refusal(server, path, body_of(path, mockllm={row.key: value}))
            assert f"mockllm.{row.key}" in error["message"]
            if path != MESSAGES:  # its errors have no param
                assert error["param"].startswith(f"mockllm.{row.key}")
        for text in row.wrong_headers:
            error = refusal(server, path, body_of(path), {HEADERS[row.key]: text})
            assert HEADERS[row.key] in error["message"]
            assert path == MESSAGES or error["param"] == HEADERS[row.key]

    @pytest.mark.parametrize("key", KEYS)
    def test_null_is_nothing(self, server: VirtualServer, key: str) -> None:
        plain = said(server, CHAT, body_of(CHAT))
        assert said(server, CHAT, body_of(CHAT, mockllm={key: None})) == plain
        assert said(server, CHAT, body_of(CHAT, mockllm=None)) == plain
        assert said(server, CHAT, body_of(CHAT, mockllm={})) == plain


class TestNames:
    @pytest.mark.parametrize("path", PATHS)
    def test_a_typo_is_refused_with_the_name_that_was_meant(self, server: VirtualServer, path: str) -> None:
        error = refusal(server, path, body_of(path, mockllm={"tftt_ms": 5}))
        assert "`tftt_ms`; did you mean 'ttft_ms'?" in error["message"]
        assert path == MESSAGES or error["param"] == "mockllm.tftt_ms"
        error = refusal(server, path, body_of(path), {"X-Mockllm-Ttft": "5"})
        assert "'x-mockllm-ttft'; did you mean 'x-mockllm-ttft-ms'?" in error["message"]

    def test_inside_a_value_too(self, server: VirtualServer) -> None:
        error = refusal(server, CHAT, body_of(CHAT, mockllm={"tool_calls": [{"nmae": "f"}]}))
        assert (error["param"], "did you mean 'name'?" in error["message"]) == ("mockllm.tool_calls[0].nmae", True)
        error = refusal(server, CHAT, body_of(CHAT, mockllm={"ttft_ms": {"type": "normal", "meen": 5, "std": 1}}))
        assert (error["param"], "did you mean 'mean'?" in error["message"]) == ("mockllm.ttft_ms.meen", True)

    def test_one_that_is_like_none_is_told_all(self, server: VirtualServer) -> None:
        error = refusal(server, CHAT, body_of(CHAT, mockllm={"qqq": 1}))
        assert all(key in error["message"] for key in KEYS)
        error = refusal(server, CHAT, body_of(CHAT), {"x-mockllm-qqq": "1"})
        assert all(header in error["message"] for header in HEADERS.values())

    @pytest.mark.parametrize("value", [[], "text", 5, True])
    def test_the_key_holds_an_object(self, server: VirtualServer, value: Any) -> None:
        assert refusal(server, CHAT, body_of(CHAT, mockllm=value))["param"] == "mockllm"

    def test_leniency_passes_over_no_typo(self) -> None:
        assert refusal(make_server(lenient=True), CHAT, body_of(CHAT, mockllm={"txt": "a"}))["param"] == "mockllm.txt"

    def test_the_operators_key_header_is_no_override(self) -> None:
        server = make_server(key_header="X-Mockllm-Trial")
        assert said(server, CHAT, body_of(CHAT), {"x-mockllm-trial": "5"}).tokens == USUAL_TOKENS

    def test_many_header_sets_are_told_apart(self) -> None:
        reader = OverrideReader()
        for number in range(1200):
            assert reader.read(None, {b"x-%d" % number: b"a"}) is None
        many = {b"x-%d" % number: b"a" for number in range(100)}
        for text in ("Hi", "Ho"):
            for others in ({b"x-1": b"a"}, many):
                override = reader.read(None, others | {b"x-mockllm-text": text.encode()})
                assert override is not None
                assert override.text == text


class TestTogether:
    def test_the_body_wins_over_headers_key_by_key(self, server: VirtualServer) -> None:
        body = body_of(CHAT, mockllm={"text": "Body", "itl_ms": 0})
        reply = said(server, CHAT, body, {"x-mockllm-text": "Header", "x-mockllm-ttft-ms": "7"})
        assert (reply.text, reply.last_s) == ("Body", 0.007)

    def test_reasoning_text_and_calls(self, server: VirtualServer) -> None:
        override = {"reasoning": "Hm.", "text": "I call.", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}
        for path in (CHAT, RESPONSES, MESSAGES):
            for stream in (False, True):
                reply = said(server, path, body_of(path, mockllm=override, stream=stream))
                assert (reply.reasoning, reply.text, reply.calls[0][0]) == ("Hm.", "I call.", "f")
                assert reply.tokens == 1 + sum(map(TOKENIZER.count, ["Hm.", "I call.", '{"a":1}']))

    @pytest.mark.parametrize(
        ("override", "key"),
        [
            ({"refusal": "No.", "text": "Yes."}, "refusal"),
            ({"refusal": "No.", "tool_calls": [{"name": "f"}]}, "refusal"),
            ({"output_tokens": 5, "text": "Yes."}, "output_tokens"),
            ({"output_tokens": 5, "tool_calls": [{"name": "f"}]}, "output_tokens"),
        ],
    )
    def test_keys_that_contradict_each_other(self, server: VirtualServer, override: Any, key: str) -> None:
        assert refusal(server, CHAT, body_of(CHAT, mockllm=override))["param"] == f"mockllm.{key}"
        headers = {"x-mockllm-refusal": "No."}
        assert refusal(server, CHAT, body_of(CHAT, mockllm={"text": "a"}), headers)["param"] == "mockllm.refusal"

    def test_all_choices_have_it(self, server: VirtualServer) -> None:
        reply = send(server, CHAT, body_of(CHAT, n=3, mockllm={"text": "Same."})).json()
        assert [choice["message"]["content"] for choice in reply["choices"]] == ["Same."] * 3
        assert reply["usage"]["completion_tokens"] == 3 * TOKENIZER.count("Same.")

    def test_the_ledger_tells_what_was_planned(self, server: VirtualServer) -> None:
        override = {"text": "One two three", "seed": 9, "finish_reason": "content_filter"}
        said(server, CHAT, body_of(CHAT, seed=1, mockllm=override))
        record = server.ledger[-1]
        assert (record.planned_tokens, record.seed, record.finish_reason) == (3, 9, "content_filter")


class TestGivenText:
    @given(text=st.text(max_size=60), limit=st.integers(1, 20), stop=st.sampled_from([None, "e", " ", "zz"]))
    @settings(max_examples=150, deadline=None)
    def test_a_limit_cuts_it_between_tokens(self, text: str, limit: int, stop: str | None) -> None:
        server = make_server()
        pieces = TOKENIZER.pieces(text)
        body = body_of(CHAT, mockllm={"text": text}, max_tokens=limit, stream=True, stop=stop)
        reply = send(server, CHAT, body)
        chunks = [json.loads(data) for _, data in reply.events if data != "[DONE]"]
        deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks[1:-2]]
        whole = assemble(chunks)
        kept = "".join(pieces[:limit])
        if stop is None or stop not in kept:
            assert deltas == pieces[:limit]
            assert whole["usage"]["completion_tokens"] == len(deltas)
            assert whole["choices"][0]["finish_reason"] == ("length" if len(pieces) > limit else "stop")
        else:
            assert whole["choices"][0]["message"]["content"] == kept[: kept.index(stop)]
            assert whole["choices"][0]["finish_reason"] == "stop"

    def test_only_a_limit_of_the_request_cuts_it(self) -> None:
        server = make_server(max_model_len=20)
        text = "word " * 100
        for path in (CHAT, COMPLETIONS, RESPONSES):
            body = body_of(path, mockllm={"text": text})
            body.pop("max_tokens", None)  # a completion's is 16 where it has none
            reply = said(server, path, body)
            assert (reply.text, reply.tokens) == (text, TOKENIZER.count(text))

    def test_a_completions_usual_limit_stays_for_other_texts(self, server: VirtualServer) -> None:
        body = {"model": "m", "prompt": "Hello"}
        long = make_server(output_tokens=40)
        assert said(long, COMPLETIONS, body | {"mockllm": {"ttft_ms": 0}}).tokens == 16
        assert said(long, COMPLETIONS, body | {"mockllm": {"output_tokens": 30}}).tokens == 30

    def test_logprobs_are_of_its_tokens(self, server: VirtualServer) -> None:
        body = body_of(CHAT, mockllm={"text": "Hello, world"}, logprobs=True, top_logprobs=2)
        (choice,) = send(server, CHAT, body).json()["choices"]
        assert [entry["token"] for entry in choice["logprobs"]["content"]] == TOKENIZER.pieces("Hello, world")

    def test_it_needs_no_format(self, server: VirtualServer) -> None:
        body = body_of(CHAT, mockllm={"text": "no JSON"}, response_format={"type": "json_object"})
        assert said(server, CHAT, body).text == "no JSON"

    def test_output_tokens_win_over_the_requests_wishes_but_not_its_limit(self, server: VirtualServer) -> None:
        for more in ({"min_tokens": 20}, {"ignore_eos": True}):
            body = body_of(CHAT, mockllm={"output_tokens": 7}, **more)
            assert said(server, CHAT, body | {"max_tokens": 30}).tokens == 7
        reply = said(server, CHAT, body_of(CHAT, mockllm={"output_tokens": 7}) | {"max_tokens": 5})
        assert (reply.tokens, reply.finish) == (5, "length")

    def test_a_finish_reason_is_as_given_even_where_the_limit_cut(self, server: VirtualServer) -> None:
        body = body_of(CHAT, mockllm={"text": "One two three", "finish_reason": "stop"}) | {"max_tokens": 1}
        reply = said(server, CHAT, body)
        assert (reply.text, reply.finish) == ("One", "stop")


class TestGivenCalls:
    TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

    def test_an_argument_text_is_sent_as_it_is(self, server: VirtualServer) -> None:
        calls = [{"name": "f", "arguments": '{"broken": '}]
        assert said(server, CHAT, body_of(CHAT, mockllm={"tool_calls": calls})).calls == [("f", '{"broken": ')]

    def test_ids_are_new_or_given(self, server: VirtualServer) -> None:
        calls = [{"name": "f", "id": "call_7"}, {"name": "f"}, {"name": "f"}]
        message = send(server, CHAT, body_of(CHAT, mockllm={"tool_calls": calls})).json()["choices"][0]["message"]
        ids = [call["id"] for call in message["tool_calls"]]
        assert ids[0] == "call_7"
        assert len(set(ids)) == 3

    def test_a_forced_tool_is_not_called_against_the_override(self, server: VirtualServer) -> None:
        body = body_of(CHAT, tools=self.TOOLS, tool_choice="required")
        assert said(server, CHAT, body).calls
        overrides: list[dict[str, Any]] = [{"text": "No call."}, {"tool_calls": []}]
        for override in overrides:
            reply = said(server, CHAT, body | {"mockllm": override})
            assert (reply.calls, reply.finish) == ([], "stop")
            assert reply.text

    def test_a_custom_tools_call_is_a_custom_call(self, server: VirtualServer) -> None:
        tools = [{"type": "custom", "custom": {"name": "run"}}]
        override = {"tool_calls": [{"name": "run", "arguments": "ls -l"}]}
        reply = send(server, CHAT, body_of(CHAT, tools=tools, mockllm=override)).json()
        (call,) = reply["choices"][0]["message"]["tool_calls"]
        assert (call["type"], call["custom"]) == ("custom", {"name": "run", "input": "ls -l"})

    def test_functions_take_one_call(self, server: VirtualServer) -> None:
        body = body_of(CHAT, functions=[{"name": "f"}])
        reply = send(server, CHAT, body | {"mockllm": {"tool_calls": [{"name": "f"}]}}).json()["choices"][0]
        assert reply["message"]["function_call"] == {"name": "f", "arguments": "{}"}
        assert reply["finish_reason"] == "function_call"
        two = body | {"mockllm": {"tool_calls": [{"name": "f"}, {"name": "f"}]}}
        assert refusal(server, CHAT, two)["param"] == "mockllm.tool_calls"

    @pytest.mark.parametrize("key", ["reasoning", "tool_calls"])
    def test_completions_have_no_place_for_it(self, server: VirtualServer, key: str) -> None:
        value: Any = "Hm." if key == "reasoning" else [{"name": "f"}]
        assert refusal(server, COMPLETIONS, body_of(COMPLETIONS, mockllm={key: value}))["param"] == f"mockllm.{key}"


class TestTimings:
    def test_they_take_the_place_of_the_latency_of_whole_replies(self) -> None:
        server = make_server(request_latency=3.0)
        assert said(server, CHAT, body_of(CHAT)).last_s == 3.0
        override = {"ttft_ms": 10, "itl_ms": 1, "text": "One two three"}
        assert said(server, CHAT, body_of(CHAT, mockllm=override)).last_s == 0.012
        assert said(server, CHAT, body_of(CHAT, mockllm={"text": "One"})).last_s == 3.0

    def test_equal_requests_draw_anew_and_servers_draw_alike(self) -> None:
        normal = {"type": "normal", "mean": 50, "std": 10}
        body = body_of(CHAT, mockllm={"ttft_ms": normal, "itl_ms": normal})
        first, second = make_server(), make_server()
        seen = [said(first, CHAT, body).last_s for _ in range(20)]
        assert len(set(seen)) == 20
        assert seen == [said(second, CHAT, body).last_s for _ in range(20)]

    def test_the_key_header_keys_them(self) -> None:
        server = make_server(key_header="X-Request-Id")
        body = body_of(CHAT, mockllm={"ttft_ms": {"type": "exponential", "mean": 50}})
        a, b, again = (said(server, CHAT, body, {"x-request-id": name}).last_s for name in "aba")
        assert a == again != b

    def test_the_head_says_what_was_planned(self, server: VirtualServer) -> None:
        reply = send(server, CHAT, body_of(CHAT, mockllm={"ttft_ms": 12.5, "itl_ms": [4, 6], "text": "One two three"}))
        planned = [reply.headers[f"x-mockllm-{name}"] for name in ("ttft-ms", "itl-ms", "output-tokens")]
        assert planned == ["12.500", "5.000", "3"]


class TestSettings:
    def test_no_overrides(self) -> None:
        server = make_server(overrides=False)
        plain = said(server, CHAT, body_of(CHAT))
        for value in ({"text": "Hi"}, {"no such key": 1}, 5):
            assert said(server, CHAT, body_of(CHAT, mockllm=value)) == plain
        assert said(server, CHAT, body_of(CHAT), {"x-mockllm-text": "Hi", "x-mockllm-typo": "1"}) == plain

    @pytest.mark.parametrize("path", PATHS)
    def test_echo(self, path: str) -> None:
        server = make_server(content="echo")
        reply = said(server, path, body_of(path, "How are you?\nFine, I hope."))
        text = "How are you?\nFine, I hope."
        assert (reply.text, reply.tokens) == (text, TOKENIZER.count(text))
        assert said(server, path, body_of(path, "Hi", mockllm={"text": "Ho"})).text == "Ho"
        assert said(server, path, body_of(path, "Hi", mockllm={"output_tokens": 30})).tokens == 30

    def test_echo_is_the_users_last_turn(self) -> None:
        server = make_server(content="echo")
        turns = [("system", "S"), ("user", "first"), ("assistant", "A"), ("user", "last"), ("assistant", "B")]
        body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in turns]}
        assert said(server, CHAT, body).text == "last"
        only = {"model": "m", "messages": [{"role": "system", "content": "S"}]}
        assert said(server, CHAT, only).text == "S"

    def test_echo_of_token_ids_and_of_many_tokens_without_a_limit(self) -> None:
        server = make_server(content="echo")
        text = "word " * 50
        body: dict[str, Any] = {"model": "m", "prompt": TOKENIZER.encode(text)}
        assert said(server, COMPLETIONS, body).text == text
        assert said(server, COMPLETIONS, {"model": "m", "prompt": text}).text == text
        assert said(server, COMPLETIONS, {"model": "m", "prompt": text, "max_tokens": 3}).tokens == 3

    def test_echo_leaves_documents_and_calls(self) -> None:
        server = make_server(content="echo")
        document = said(server, CHAT, body_of(CHAT, response_format={"type": "json_object"}))
        assert isinstance(json.loads(document.text), dict)
        forced = body_of(CHAT, tools=TestGivenCalls.TOOLS, tool_choice="required")
        assert said(server, CHAT, forced).calls


class TestOtherEndpoints:
    FORM = (
        b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n'
        b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--x--\r\n'
    )

    def test_transcriptions_obey_headers(self, server: VirtualServer) -> None:
        headers = {"content-type": "multipart/form-data; boundary=x", "x-mockllm-text": "What was said."}
        reply = send(server, "/v1/audio/transcriptions", self.FORM, headers)
        assert reply.json()["text"] == "What was said."
        wrong = {"content-type": "multipart/form-data; boundary=x", "x-mockllm-reasoning": "Hm."}
        assert refusal(server, "/v1/audio/transcriptions", self.FORM, wrong)["param"] == "mockllm.reasoning"

    def test_what_generates_nothing_takes_its_time_alone(self, server: VirtualServer) -> None:
        body = {"model": "m", "input": "Hello", "mockllm": {"ttft_ms": 5}}
        assert send(server, "/v1/embeddings", body).chunks[0][0] == 0.005


class TestPieceMemo:
    @given(st.lists(st.text("ab c", max_size=8), max_size=30))
    def test_it_gives_what_the_tokenizer_gives_and_stays_small(self, texts: list[str]) -> None:
        memo = PieceMemo(TOKENIZER, characters=10)
        for text in texts:
            assert memo(text) == pieces_of(TOKENIZER, text)
            assert sum(map(len, memo._kept)) <= 10 or len(memo._kept) == 1
            assert memo(text) is memo(text)

    def test_many_small_texts(self) -> None:
        memo = PieceMemo(TOKENIZER)
        for number in range(1000):
            memo(str(number))
        assert len(memo._kept) == 256

    @pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
    def test_arguments_of_any_depth_are_written_or_refused(self, server: VirtualServer, path: str) -> None:
        base = json.dumps(body_of(path)).encode()[:-1]
        statuses = []
        for depth in (1, 300, *range(880, 1010, 8)):
            arguments = b'{"a":' * depth + b"1" + b"}" * depth
            raw = base + b',"mockllm":{"tool_calls":[{"name":"f","arguments":' + arguments + b"}]}}"
            statuses.append(send(server, path, raw).status)
        assert statuses[0] == 200
        assert set(statuses) <= {200, 400}
