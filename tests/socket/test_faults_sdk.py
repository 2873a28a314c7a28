"""What the official SDK makes of every fault, and what the server's ledger says of its retries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import msgspec
import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from mockllm import Config, ServerThread
from mockllm.faults import KINDS
from tests.flag_table import README

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
QUICK = Config(port=0, ttft_ms=1, itl_ms=1, output_tokens=6)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(QUICK) as server:
        yield server


def client(server: ServerThread, retries: int = 0, timeout_s: float = 10) -> OpenAI:
    return OpenAI(base_url=server.url + "/v1", api_key="sk-x", max_retries=retries, timeout=timeout_s)


def whole(sdk: OpenAI, fault: str) -> str:
    reply = sdk.chat.completions.create(model="m", messages=MESSAGES, extra_headers={"x-mockllm-fault": fault})
    return reply.choices[0].message.content or ""


def stream(sdk: OpenAI, fault: str) -> list[str]:
    """The texts that came; the finish reason and the end are marked."""
    came: list[str] = []
    with sdk.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, extra_headers={"x-mockllm-fault": fault}
    ) as chunks:
        for chunk in chunks:
            choice = chunk.choices[0]
            came += filter(None, [choice.delta.content, choice.finish_reason and f"<{choice.finish_reason}>"])
    return came


@pytest.fixture(scope="module")
def good(server: ServerThread) -> list[str]:
    with client(server) as sdk:
        return stream(sdk, "none")


# ---- errors that it raises ---------------------------------------------------------------------

STATUSES = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    408: openai.APIStatusError,
    409: openai.ConflictError,
    413: openai.APIStatusError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    502: openai.InternalServerError,
    503: openai.InternalServerError,
    529: openai.InternalServerError,
}


@pytest.mark.parametrize("ask", [whole, stream])
@pytest.mark.parametrize(("status", "error"), STATUSES.items())
def test_a_status_is_its_exception(
    server: ServerThread, status: int, error: type[openai.APIStatusError], ask: Callable[[OpenAI, str], object]
) -> None:
    with client(server) as sdk, pytest.raises(error) as caught:
        ask(sdk, f"kind=status,status={status},message=Made up,code=made_up")
    assert caught.value.status_code == status
    assert (caught.value.code, caught.value.type is not None) == ("made_up", True)
    assert "Made up" in caught.value.message


@pytest.mark.parametrize("body", ["html", "text", "empty"])
def test_a_proxys_body_is_an_error_without_a_code(server: ServerThread, body: str) -> None:
    with client(server) as sdk, pytest.raises(openai.InternalServerError) as caught:
        whole(sdk, f"kind=status,status=502,body={body}")
    assert caught.value.code is None


RAISES: dict[str, tuple[Callable[[OpenAI, str], object], type[Exception]]] = {
    "kind=stall": (whole, openai.APITimeoutError),
    "kind=stall,after_tokens=2": (stream, openai.APIConnectionError),
    "kind=error,after_tokens=2": (stream, openai.APIError),
    "kind=malformed": (stream, json.JSONDecodeError),
    "kind=half-event,then=next": (stream, json.JSONDecodeError),
    "kind=cut-utf8,then=next": (stream, ValueError),
    "kind=close": (whole, openai.APIConnectionError),
    "kind=close,at=after-head": (whole, openai.APIConnectionError),
    "kind=close,after_tokens=2": (stream, openai.APIConnectionError),
    "kind=close,at_byte=900": (stream, openai.APIConnectionError),
    "kind=reset": (whole, openai.APIConnectionError),
    "kind=reset,at=after-head": (stream, openai.APIConnectionError),
    "kind=reset,after_tokens=2": (stream, openai.APIConnectionError),
    "kind=reset,at_byte=900": (stream, openai.APIConnectionError),
    "kind=length,off_bytes=10": (whole, openai.APIConnectionError),
    "kind=length,off_bytes=-10": (whole, json.JSONDecodeError),
}


@pytest.mark.parametrize("fault", RAISES)
def test_what_it_raises(server: ServerThread, fault: str) -> None:
    ask, error = RAISES[fault]
    with client(server, timeout_s=0.3) as sdk, pytest.raises(error):
        ask(sdk, fault)


# ---- what it takes -----------------------------------------------------------------------------

WHOLE_TEXT = [
    *("kind=ttft,seconds=0.01", "kind=stall,seconds=0.01", "kind=slow-head,seconds=0.01", "kind=trickle,gap_ms=0.1"),
    *("kind=comments", "kind=pack", "kind=split,gap_ms=0.1", "kind=crlf", "kind=content-type", "kind=no-done"),
]


@pytest.mark.parametrize("fault", WHOLE_TEXT)
def test_what_it_does_not_mind(server: ServerThread, fault: str, good: list[str]) -> None:
    with client(server) as sdk:
        assert stream(sdk, fault) == good


def test_what_it_does_not_notice(server: ServerThread, good: list[str]) -> None:
    with client(server) as sdk:
        assert stream(sdk, "kind=no-finish") == good[:-1]
        assert stream(sdk, "kind=duplicate,after_tokens=2") == [*good[:3], good[2], *good[3:]]
        assert stream(sdk, "kind=reorder,after_tokens=2") == [*good[:2], good[3], good[2], *good[4:]]
        assert stream(sdk, "kind=no-last-chunk") == good  # it has seen [DONE], and reads no further
        assert stream(sdk, "kind=half-event,after_tokens=2") == good[:2]
        assert stream(sdk, "kind=cut-utf8,after_tokens=2") == [*good[:2], "🌊" + good[2], *good[3:]]


def test_every_kind_is_here() -> None:
    asked = " ".join(
        [*RAISES, *WHOLE_TEXT, "kind=status, kind=no-finish, kind=duplicate, kind=reorder, kind=cut-utf8,"]
    )
    assert [kind for kind in KINDS if f"kind={kind}" not in asked] == ["no-last-chunk"]


def test_an_error_event_of_a_responses_stream(server: ServerThread) -> None:
    with client(server) as sdk:
        events = list(
            sdk.responses.create(
                model="m", input="hi", stream=True, extra_headers={"x-mockllm-fault": "kind=error,message=Broken"}
            )
        )
    assert events[-1].type == "error"
    assert events[-1].message == "Broken"


def test_an_error_event_of_a_chat_stream_has_the_message(server: ServerThread) -> None:
    with client(server) as sdk, pytest.raises(openai.APIError, match="Broken") as caught:
        stream(sdk, "kind=error,message=Broken,code=broken")
    assert caught.value.code == "broken"


# ---- retries, as the server saw them -----------------------------------------------------------


def seen(server: ServerThread) -> list[tuple[str, str]]:
    """(outcome, fault) of each request."""
    return [(record.outcome, record.fault) for record in server.ledger]


def faulty(*faults: dict[str, object], **settings: object) -> ServerThread:
    return ServerThread(msgspec.convert({"port": 0, "ttft_ms": 0, "faults": faults, **settings}, Config))


def test_the_client_retried_twice_after_the_429_and_once_after_the_reset() -> None:
    with faulty(
        {"kind": "status", "status": 429, "retry_after_s": 0.01, "first": 2}, {"kind": "reset", "first": 1}
    ) as server:
        with client(server, retries=3) as sdk:
            assert sdk.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content
        records = list(server.ledger)
    assert [record.fault for record in records] == ["answered 429", "answered 429", "reset before the head", ""]
    assert [record.outcome for record in records] == ["faulted"] * 3 + ["completed"]


def test_the_client_waits_as_long_as_it_is_told() -> None:
    with faulty({"kind": "status", "status": 429, "retry_after_s": 0.8, "first": 1}) as server:
        with client(server, retries=1) as sdk:
            sdk.chat.completions.create(model="m", messages=MESSAGES)
        refused, served = server.ledger
    assert served.arrival_s - refused.arrival_s > 0.6  # untold, it waits 0.5 s at most


@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        ("kind=status,status=500,retry_after_s=0.01", 3),
        ("kind=status,status=408,retry_after_s=0.01", 3),
        ("kind=status,status=409,retry_after_s=0.01", 3),
        ("kind=status,status=400,retry_after_s=0.01", 1),
        ("kind=status,status=413", 1),
        ("kind=status,status=500,send=x-should-retry:false", 1),
    ],
)
def test_what_is_retried(fault: str, tries: int) -> None:
    with ServerThread(QUICK) as server:
        with client(server, retries=2) as sdk, pytest.raises(openai.APIStatusError):
            whole(sdk, fault)
        assert len(seen(server)) == tries


def test_a_request_s_own_fault_counts_its_retries(server: ServerThread) -> None:
    before = len(server.ledger)
    with client(server, retries=2) as sdk:
        assert whole(sdk, "kind=status,status=503,retry_after_s=0.01,first=2")
    assert [outcome for outcome, _ in seen(server)[before:]] == ["faulted", "faulted", "completed"]


def test_a_cut_stream_is_not_retried() -> None:
    with ServerThread(QUICK) as server:
        with client(server, retries=2) as sdk, pytest.raises(openai.APIConnectionError):
            stream(sdk, "kind=reset,after_tokens=2")
        (record,) = server.ledger
        assert (record.tokens, record.outcome) == (2, "faulted")


# ---- rate limits -------------------------------------------------------------------------------


def test_a_real_rate_limit_per_key() -> None:
    with ServerThread(Config(port=0, ttft_ms=0, itl_ms=0, rpm=2)) as server:
        with client(server) as sdk:
            raw = sdk.chat.completions.with_raw_response
            lefts = [
                raw.create(model="m", messages=MESSAGES).headers["x-ratelimit-remaining-requests"] for _ in range(2)
            ]
            assert lefts == ["1", "0"]
            with pytest.raises(openai.RateLimitError) as caught:
                sdk.chat.completions.create(model="m", messages=MESSAGES)
            headers = caught.value.response.headers
            assert caught.value.code == "rate_limit_exceeded"
            assert 0 < int(headers["retry-after-ms"]) <= 60_000
            assert headers["x-ratelimit-limit-requests"] == "2"
            other = sdk.with_options(api_key="sk-other")
            other.chat.completions.create(model="m", messages=MESSAGES)
        assert [outcome for outcome, _ in seen(server)].count("refused") == 1


def test_limits_stand_on_replies_that_are_not_counted(server: ServerThread) -> None:
    with ServerThread(Config(port=0, rpm=2, tpm=50)) as limited:
        headers = httpx.get(limited.url + "/v1/models").headers
        assert (headers["x-ratelimit-remaining-requests"], headers["x-ratelimit-remaining-tokens"]) == ("2", "50")
        assert headers["x-ratelimit-reset-requests"] == "0s"
        assert "x-ratelimit-limit-requests" not in httpx.get(limited.url + "/health").headers
    assert "x-ratelimit-limit-requests" not in httpx.get(server.url + "/v1/models").headers


def test_the_readmes_recipe_passes() -> None:
    recipe = README.read_text(encoding="utf-8").split("### Test your retry logic\n\n```python\n")[1].split("```")[0]
    assert len([line for line in recipe.splitlines() if line]) <= 12
    exec(compile(recipe, "README.md", "exec"), {})
