"""What holds on every route: paths, methods, CORS, request ids, errors."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm import Config, VirtualServer
from mockllm.virtual import VirtualReply

FAST = Config(ttft_ms=0.0, itl_ms=0.0, output_tokens=3)
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi"},
    "/tokenize": {"prompt": "Hi"},
    "/detokenize": {"tokens": [104]},
}


def send(method: str, target: str, body: object = None, config: Config = FAST, **headers: str) -> VirtualReply:
    server = VirtualServer(config)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = server.connect().request(method, target, body, named)
    server.run()
    return reply


@pytest.mark.parametrize("path", BODIES)
def test_api_routes_are_served_with_and_without_v1(path: str) -> None:
    bare = path.removeprefix("/v1")
    for spelling in (bare, "/v1" + bare):
        assert send("POST", spelling, {"model": "m"} | BODIES[path]).status == 200


def test_a_path_may_be_percent_encoded_and_have_a_query() -> None:
    assert send("GET", "/v1/%6dodels").status == 200
    assert send("GET", "/v1/models?limit=5").status == 200


def test_models() -> None:
    config = Config(model="org/llama/8b")
    listed = send("GET", "/v1/models", config=config).json()
    assert [model["id"] for model in listed["data"]] == ["org/llama/8b"]
    for spelling in ("org/llama/8b", "org%2Fllama%2F8b"):
        assert send("GET", f"/v1/models/{spelling}", config=config).json() == listed["data"][0]
    unknown = send("GET", "/v1/models/nope", config=config)
    assert unknown.status == 404
    assert unknown.json()["error"]["code"] == "model_not_found"


def test_the_index_names_the_endpoints() -> None:
    endpoints = send("GET", "/").json()["endpoints"]
    assert {"/health", "/v1/models", "/v1/models/{id}", *BODIES} <= set(endpoints)


@pytest.mark.parametrize("target", ["/nope", "/v1/nope", "/v1/chat/completions/more", "/v1/models/", "//", "/%zz"])
def test_an_unknown_path_is_a_404_in_the_apis_shape(target: str) -> None:
    reply = send("GET", target)
    assert reply.status == 404
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("method", "target", "allow"), [
    ("GET", "/v1/chat/completions", "POST, OPTIONS"),
    ("PUT", "/v1/completions", "POST, OPTIONS"),
    ("POST", "/v1/models", "GET, HEAD, OPTIONS"),
    ("DELETE", "/health", "GET, HEAD, OPTIONS"),
])  # fmt: skip
def test_a_wrong_method_is_a_405_with_allow(method: str, target: str, allow: str) -> None:
    reply = send(method, target)
    assert reply.status == 405
    assert reply.headers["allow"] == allow
    assert reply.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("target", ["/health", "/v1/models", "/"])
def test_head_is_get_without_the_body(target: str) -> None:
    got, head = send("GET", target), send("HEAD", target)
    assert head.status == got.status == 200
    assert head.body == b""
    assert head.headers["content-length"] == got.headers["content-length"]


def test_cors_is_on_every_reply_and_answers_the_preflight() -> None:
    for method, target in (("GET", "/health"), ("POST", "/v1/chat/completions"), ("GET", "/nope")):
        headers = send(method, target, b"{").headers
        assert headers["access-control-allow-origin"] == "*"
        assert headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert headers["access-control-allow-headers"] == "Content-Type, Authorization"
    for target in BODIES:
        preflight = send("OPTIONS", target, Origin="http://x", Access_Control_Request_Headers="x-stainless-os, x-foo")
        assert preflight.status == 204
        assert preflight.body == b""
        assert "content-length" not in preflight.headers, "RFC 9110 8.6"
        allowed = preflight.headers["access-control-allow-headers"]
        assert allowed == "Content-Type, Authorization, x-stainless-os, x-foo"


def test_without_cors_there_are_no_cors_headers() -> None:
    config = Config(cors=False)
    for method, status in (("GET", 200), ("OPTIONS", 204)):
        reply = send(method, "/v1/models", config=config)
        assert reply.status == status
        assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_the_request_id_is_echoed_or_made() -> None:
    assert send("GET", "/health", X_Request_Id="mine-1").headers["x-request-id"] == "mine-1"
    made = send("POST", "/v1/chat/completions", b"{").headers["x-request-id"]
    assert made.startswith("req-")


def test_streams_have_the_headers_of_an_event_stream() -> None:
    for target in ("/v1/chat/completions", "/v1/completions", "/v1/responses"):
        headers = send("POST", target, {"model": "m", "stream": True} | BODIES[target]).headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert headers["cache-control"] == "no-cache"
        assert headers["x-accel-buffering"] == "no"
        assert headers["transfer-encoding"] == "chunked"


def test_health_tells_the_state() -> None:
    server = VirtualServer(Config(startup_delay_s=5.0))
    starting = server.get("/health")
    server.advance(5.0)
    healthy = server.get("/health")
    server.advance(0.0)
    assert (starting.status, starting.json()["status"]) == (503, "starting")
    assert (healthy.status, healthy.json()["status"]) == (200, "healthy")
    assert healthy.json()["timestamp"] == server.clock.wall()


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json; charset=utf-8", "nonsense"])
def test_a_json_body_is_read_whatever_its_content_type(content_type: str) -> None:
    assert send("POST", "/v1/completions", {"model": "m", "prompt": "Hi"}, Content_Type=content_type).status == 200
