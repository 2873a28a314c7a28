"""Who may use the API routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mockllm.app import App
from mockllm.app.auth import Keys, read_keys
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.errors import ConfigError, RequestError
from mockllm.exchange import Reply, Request
from mockllm.server import Server

KEY = "sk-a-key-of-some-length"
BODY = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'


def ask(app: App, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    request = Request(method, path, "", named, body, 0.0, 0.0)
    return app.handle(request, app.exchange(request))


def body_of(reply: Reply) -> Any:
    return json.loads(b"".join(reply.timeline.render(0, reply.timeline.steps)))


def app(**settings: Any) -> App:
    return App(Config(**settings), FakeClock())


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer   {KEY} "},
        {"x_api_key": KEY},
        {"authorization": "Bearer wrong", "x_api_key": KEY},
        {"authorization": "Bearer second"},
        {"authorization": "Bearer schlüssel"},
    ],
)
def test_a_right_key_opens(headers: dict[str, str]) -> None:
    served = app(api_key=(KEY, "second", "schlüssel"))
    assert ask(served, "POST", "/v1/chat/completions", BODY, **headers).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer "},
        {"authorization": KEY},
        {"authorization": f"Basic {KEY}"},
    ],
)
def test_no_key_is_told_how_to_send_one(headers: dict[str, str]) -> None:
    reply = ask(app(api_key=(KEY,)), "POST", "/v1/chat/completions", BODY, **headers)
    error = body_of(reply)["error"]
    assert reply.status == 401
    assert b"www-authenticate: Bearer\r\n" in reply.headers
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, None)
    assert "Bearer" in error["message"]


@pytest.mark.parametrize("given", ["sk-a-key-of-some-lengths", KEY.upper(), KEY[:-1], "short", "\x7f" * 40, KEY * 50])
def test_a_wrong_key_is_refused_and_not_repeated_whole(given: str) -> None:
    reply = ask(app(api_key=(KEY,)), "GET", "/v1/models", authorization=f"Bearer {given}")
    error = body_of(reply)["error"]
    assert (reply.status, error["code"], error["param"]) == (401, "invalid_api_key", None)
    assert given not in error["message"]
    assert len(error["message"]) < 100


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/completions"),
        ("POST", "/v1/responses"),
        ("GET", "/responses/resp_1"),
        ("GET", "/v1/models"),
        ("GET", "/models/m"),
        ("HEAD", "/v1/models"),
        ("PUT", "/v1/models"),
        ("POST", "/tokenize"),
        ("POST", "/v1/detokenize"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/embeddings"),
        ("POST", "/rerank"),
        ("POST", "/v1/%63ompletions"),
    ],
)
def test_api_routes_are_guarded_in_both_spellings(method: str, path: str) -> None:
    assert ask(app(api_key=(KEY,)), method, path, BODY).status == 401
    assert ask(app(), method, path, BODY).status != 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/health"),
        ("HEAD", "/health"),
        ("GET", "/metrics"),
        ("GET", "/ping"),
        ("GET", "/version"),
        ("OPTIONS", "/v1/chat/completions"),
    ],
)
def test_what_probes_and_browsers_ask_stays_open(method: str, path: str) -> None:
    assert ask(app(api_key=(KEY,)), method, path).status in (200, 204)


def test_the_keys_of_a_file_count_too() -> None:
    keys = read_keys(f"# staging\n\n  {KEY}  \r\nsecond\n#third\n")
    assert keys == [KEY, "second"]
    served = App(Config(api_key=("first",)), FakeClock(), api_keys=keys)
    for key in ("first", KEY, "second"):
        assert ask(served, "GET", "/v1/models", x_api_key=key).status == 200
    assert ask(served, "GET", "/v1/models", x_api_key="#third").status == 401


@pytest.mark.parametrize("content", [None, b"", b"\n# all commented out\n", b"\xff"])
def test_a_file_without_keys_opens_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="api_key_file"):
        Server(Config(api_key_file=str(path)))


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def equal(first: bytes, second: bytes) -> bool:
        compared.append(second)
        return first == second

    monkeypatch.setattr("mockllm.app.auth.compare_digest", equal)
    keys = Keys(["a", "b", "c"])
    keys.check({b"x-api-key": b"a"})
    with pytest.raises(RequestError):
        keys.check({b"x-api-key": b"d"})
    assert len(compared) == 6
    assert {len(digest) for digest in compared} == {32}


class TestModels:
    def test_any_model_is_served_unless_strict(self) -> None:
        body = BODY.replace(b'"m"', b'"nobody-has-this"')
        assert body_of(ask(app(), "POST", "/v1/chat/completions", body))["model"] == "nobody-has-this"
        reply = ask(app(strict_model=True), "POST", "/v1/chat/completions", body)
        error = body_of(reply)["error"]
        assert (reply.status, error["param"], error["code"]) == (404, "model", "model_not_found")
        assert "nobody-has-this" in error["message"]

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/tokenize", {"prompt": "Hi"}),
            ("/detokenize", {"tokens": [1]}),
            ("/v1/responses/input_tokens", {"input": "Hi"}),
            ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi"}]}),
        ],
    )
    def test_what_only_counts_asks_for_a_model_too(self, path: str, body: dict[str, object]) -> None:
        served = app(strict_model=True, model="one")
        for model, status in (("other", 404), ("one", 200)):
            assert ask(served, "POST", path, json.dumps({"model": model} | body).encode()).status == status

    @pytest.mark.parametrize("name", ["one", "org/two"])
    def test_several_names_are_served_alike(self, name: str) -> None:
        served = app(strict_model=True, served_model_name=("one", "org/two"), model="weights")
        reply = ask(served, "POST", "/v1/chat/completions", BODY.replace(b'"m"', json.dumps(name).encode()))
        assert body_of(reply)["model"] == name
        assert body_of(ask(served, "GET", f"/v1/models/{name}"))["id"] == name

    def test_the_list_has_the_served_names_in_their_order(self) -> None:
        served = app(strict_model=True, served_model_name=("one", "org/two"), model="weights")
        assert [card["id"] for card in body_of(ask(served, "GET", "/v1/models"))["data"]] == ["one", "org/two"]
        assert ask(served, "GET", "/v1/models/weights").status == 404
        assert [card["id"] for card in body_of(ask(app(model="weights"), "GET", "/models"))["data"]] == ["weights"]

    def test_a_request_without_a_model_gets_the_first(self) -> None:
        served = app(strict_model=True, served_model_name=("one", "org/two"))
        for field in (b"", b'"model":"",'):
            body = b"{" + field + b'"messages":[{"role":"user","content":"Hi"}]}'
            assert body_of(ask(served, "POST", "/v1/chat/completions", body))["model"] == "one"
