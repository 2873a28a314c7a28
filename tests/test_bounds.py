"""What one request may cost: bounded work, in pieces that leave others their turn, and bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.app.base import ID_BYTES, PATH_CHARACTERS
from mockllm.app.known import Known
from mockllm.app.ratelimits import RateLimits
from mockllm.app.script import MOST_REPLIES
from mockllm.config import Config
from mockllm.dialects.chat import Chat
from mockllm.dialects.models import MOST_CHARACTERS
from mockllm.dialects.overrides import to_script
from mockllm.errors import RequestError
from mockllm.exchange import MAX_STEPS, Exchange, Request
from mockllm.generation.memo import Memo
from mockllm.generation.planner import MOST_CHOICES, MOST_TOKENS
from mockllm.virtual import VirtualServer
from tests.asking import Asker

CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def asker() -> Asker:
    return Asker()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": ["a"] * 2048, "n": 3}, "n"),
        ({"prompt": ["a"] * 2048, "n": 128, "max_tokens": 131_000, "ignore_eos": True}, "n"),
        ({"prompt": "a", "n": 128, "max_tokens": 131_000, "ignore_eos": True}, "n"),
        ({"prompt": ["a"] * 20, "max_tokens": 131_000, "ignore_eos": True}, "prompt"),
        ({"prompt": [[1] * 100_000] * 2, "n": 6, "echo": True, "max_tokens": 1}, "n"),
    ],
)
def test_the_work_of_one_request_is_bounded(asker: Asker, body: dict[str, Any], param: str) -> None:
    assert asker.post("/v1/completions", **body).error == (400, param)


def test_up_to_the_bounds_everything_is_answered(asker: Asker) -> None:
    many = asker.post("/v1/completions", prompt=["a"] * (MOST_CHOICES // 2), n=2, max_tokens=1)
    assert len(many.json["choices"]) == MOST_CHOICES
    long = asker.post("/v1/completions", prompt="a", n=16, max_tokens=MOST_TOKENS // 16, ignore_eos=True)
    assert long.json["usage"]["completion_tokens"] == MOST_TOKENS


@pytest.mark.parametrize(
    ("more", "burst"),
    [({}, MAX_STEPS), ({"n": 8}, MAX_STEPS // 8), ({"n": 128, "logprobs": True}, 1), ({"logprobs": True}, 4)],
)
def test_a_stream_with_much_in_each_step_is_written_in_fewer_steps_at_once(
    asker: Asker, more: dict[str, Any], burst: int
) -> None:
    assert asker.post("/v1/chat/completions", stream=True, **CHAT, **more).timeline.burst == burst


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT | {"logprobs": True, "top_logprobs": 3}),
        ("/v1/chat/completions", CHAT | {"logprobs": True, "return_tokens_as_token_ids": True, "n": 2}),
        ("/v1/chat/completions", CHAT | {"logprobs": True, "stop": "e", "min_tokens": 80}),
        ("/v1/completions", {"prompt": ["a b c " * 40, "d"], "logprobs": 2, "echo": True, "n": 2}),
        ("/v1/completions", {"prompt": "x " * 90, "prompt_logprobs": 2, "logprobs": 0}),
    ],
)
def test_logprobs_that_are_prepared_bit_by_bit_are_those_that_are_written_at_once(
    path: str, body: dict[str, Any]
) -> None:
    asked = body | {"max_tokens": 200, "ignore_eos": True}
    at_once = Asker().post(path, **asked)
    prepared = Asker()
    request = Request("POST", path, "", {}, json.dumps({"model": "m"} | asked).encode(), 1000.0, 1000.0)
    timeline = prepared.app.handle(request, prepared.app.exchange(request)).timeline
    assert timeline.prepare is not None
    assert len(list(timeline.prepare)) > 4
    found = json.loads(b"".join(timeline.render(0, 1)))
    assert found["choices"] == at_once.json["choices"]


def test_a_reply_that_is_prepared_is_in_time() -> None:
    server = VirtualServer(Config(ttft_ms=100, itl_ms=1))
    body = CHAT | {"model": "m", "logprobs": True, "top_logprobs": 20, "max_tokens": 101, "ignore_eos": True}
    reply = server.post("/v1/chat/completions", body)
    other = server.post("/v1/chat/completions", CHAT | {"model": "m", "stream": True})
    server.run()
    assert reply.chunks[0][0] == pytest.approx(0.2)
    assert len(reply.json()["choices"][0]["logprobs"]["content"]) == 101
    assert other.complete


def test_a_models_name_that_would_fill_the_records_is_refused(asker: Asker) -> None:
    assert asker.ask("/v1/chat/completions", CHAT | {"model": "m" * (MOST_CHARACTERS + 1)}).error == (400, "model")
    assert asker.ask("/v1/embeddings", {"input": "a", "model": "m" * (MOST_CHARACTERS + 1)}).error == (400, "model")
    assert asker.ask("/v1/chat/completions", CHAT | {"model": "m" * MOST_CHARACTERS}).status == 200


def test_what_a_record_holds_is_bounded(asker: Asker) -> None:
    def exchange(method: str, path: str, identity: bytes) -> Exchange:
        return asker.app.exchange(Request(method, path, "", {b"x-request-id": identity}, b"", 0.0, 0.0))

    kept = exchange("POST", "/" + "a" * 100, b"i" * ID_BYTES)
    assert (kept.path, kept.request_id) == ("/" + "a" * 100, "i" * ID_BYTES)
    cut = exchange("M" * 5000, "/" + "a" * 8000, b"i" * (ID_BYTES + 1))
    assert len(cut.path) == PATH_CHARACTERS
    assert len(cut.method) < 100
    assert cut.request_id.startswith("req-")


def test_long_keys_are_told_apart_and_not_kept() -> None:
    limits = RateLimits(5, None)
    keys = [b"Bearer " + b"k" * 50_000 + b"%d" % number for number in range(3)]
    accounts = [limits.account({b"authorization": key}) for key in keys]
    assert len(set(map(id, accounts))) == 3
    assert limits.account({b"authorization": keys[0]}) is accounts[0]
    assert all(len(key) <= 256 for key in limits._accounts)


@pytest.mark.parametrize("more", [{"logprobs": True}, {"prompt_logprobs": 1}, {"return_token_ids": True}])
def test_replies_whose_tokens_are_large_are_not_kept(asker: Asker, more: dict[str, Any]) -> None:
    known = Known()
    for asked, kept in ((CHAT, 1), (CHAT | more, 1)):
        body = json.dumps({"model": "m"} | asked).encode()
        request = Request("POST", "/v1/chat/completions", "", {}, body, 0.0, 0.0)
        context = asker.app._generator.prepare(Chat(), request, asker.app.exchange(request))
        known.keep(body, context)  # once is not enough
        known.keep(body, context)
        assert len(known._bodies) == kept


@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000, "\u0663" * 19, "-1", "1e3"])
def test_numbers_that_python_does_not_read_are_no_numbers(number: str) -> None:
    server = VirtualServer(Config(ttft_ms=0, itl_ms=0))
    created = server.post("/v1/responses", {"model": "m", "input": "a"})
    server.run()
    items = f"/v1/responses/{created.json()['id']}/input_items?limit="
    for path, status in (("/mockllm/requests/", 404), ("/mockllm/requests?after=", 400), (items, 400)):
        reply = server.get(path + quote(number))
        server.run()
        assert reply.status == status, path


class TestMemo:
    def test_the_one_used_longest_ago_makes_room(self) -> None:
        memo: Memo[int] = Memo(2, 100)
        memo.keep(b"a", 1)
        memo.keep(b"b", 2)
        assert memo.get(b"a") == 1
        assert memo.keep(b"c", 3) == 3
        assert [memo.get(key) for key in (b"a", b"b", b"c")] == [1, None, 3]

    @given(st.lists(st.binary(min_size=1, max_size=60), max_size=30, unique=True))
    def test_its_keys_are_bounded_in_number_and_length_and_the_last_one_is_kept(self, keys: list[bytes]) -> None:
        memo: Memo[bytes] = Memo(5, 50)
        for key in keys:
            memo.keep(key, key)
            assert memo.get(key) == key
            kept = [known for known in keys if memo.get(known) is not None]
            assert len(kept) == len(memo) <= 5
            assert len(kept) == 1 or sum(map(len, kept)) <= 50


@pytest.mark.parametrize(
    ("size", "more"),
    [
        (
            1_200_000,
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"title": "X"}}}},
        ),
        (1_200_000, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"title": "X"}}}]}),
        (1_200_000, {"mockllm": {"fault": {"kind": "status", "status": 503, "message": "X", "probability": 0.0}}}),
        (150_000, {"mockllm": {"text": "X"}}),
        (1_200_000, {"user": "X"}),
    ],
)
def test_large_requests_that_all_differ_leave_nothing_behind(size: int, more: dict[str, Any]) -> None:
    asker = Asker(keep_bodies=0)
    tracemalloc.start()
    for number in range(16):
        large = json.dumps({"model": "m"} | CHAT | more).replace('"X"', f'"{number}{"x" * size}"')
        assert asker.ask("/v1/chat/completions", large.encode()).status == 200
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 8 * size  # the last one and what was made of it may stay


@pytest.mark.parametrize("field", ["model", "path"])
def test_a_requests_own_pattern_has_an_end(asker: Asker, field: str) -> None:
    for length, status in ((1024, 200), (1025, 400)):
        fault = {"kind": "status", "status": 503, field: "x" * length}
        assert asker.post("/v1/chat/completions", **CHAT, mockllm={"fault": fault}).status == status


def test_a_script_cannot_grow_for_ever(asker: Asker) -> None:
    half = [{"text": "a"}] * (MOST_REPLIES // 2)
    script = Asker().app.script
    script.add(to_script(half), strict=False)
    script.add(to_script(half), strict=False)
    with pytest.raises(RequestError, match="at most 10000"):
        script.add(to_script(half[:1]), strict=True)
    state = script.state()
    assert len(state.left) == MOST_REPLIES
    assert not state.strict
