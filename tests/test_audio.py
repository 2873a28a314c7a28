"""The audio endpoints: forms in, text out, and nothing of the file is looked at."""

from __future__ import annotations

import json

import httpx
import msgspec
import pytest
from openai.types.audio import Transcription, TranscriptionTextDoneEvent, TranscriptionVerbose, TranslationVerbose

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Reply, Request

FILES = {"file": ("speech.mp3", b"\x00\xffnot audio", "audio/mpeg")}


def post(path: str, data: dict[str, str], files: dict[str, tuple[str, bytes, str]] | None = None) -> Reply:
    form = httpx.Request("POST", "http://x" + path, data=data, files=FILES if files is None else files)
    headers = {b"content-type": form.headers.get("content-type", "").encode()}
    request = Request("POST", path, "", headers, form.read(), 1000.0, 1000.0)
    app = App(Config(output_tokens=12), FakeClock())
    return app.handle(request, app.exchange(request))


def body(reply: Reply) -> bytes:
    return b"".join(reply.timeline.render(0, reply.timeline.steps))


def text(path: str, data: dict[str, str], files: dict[str, tuple[str, bytes, str]] | None = None) -> str:
    found: str = json.loads(body(post(path, {"model": "whisper-1"} | data, files)))["text"]
    return found


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/audio/transcriptions", "/v1/audio/translations"])
def test_the_same_file_gives_the_same_text_and_another_gives_another(path: str) -> None:
    other = {"file": ("speech.mp3", b"\x00\xffother audio", "audio/mpeg")}
    assert text(path, {}) == text(path, {})
    assert text(path, {}) != text(path, {}, other)
    assert text(path, {}) != text(path, {"prompt": "ZyntriQix"})


def test_json_has_usage_whose_sum_is_right() -> None:
    reply = Transcription.model_validate_json(body(post("/v1/audio/transcriptions", {"model": "m"})), strict=True)
    assert reply.usage is not None
    assert reply.usage.type == "tokens"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (1, 12, 13)


def test_plain_text_is_plain_text() -> None:
    reply = post("/v1/audio/transcriptions", {"model": "m", "response_format": "text"})
    assert b"content-type: text/plain; charset=utf-8\r\n" in reply.headers
    assert body(reply).decode() == text("/v1/audio/transcriptions", {}) + "\n"


def test_verbose_json() -> None:
    data = {"model": "m", "response_format": "verbose_json", "language": "de"}
    transcription = TranscriptionVerbose.model_validate_json(body(post("/v1/audio/transcriptions", data)))
    assert transcription.language == "de"
    assert transcription.segments
    assert transcription.segments[0].text == transcription.text
    translation = TranslationVerbose.model_validate_json(body(post("/v1/audio/translations", data)))
    assert translation.language == "english"


def test_a_stream_has_the_text_of_the_whole_reply() -> None:
    reply = post("/v1/audio/transcriptions", {"model": "m", "stream": "true"})
    assert b"content-type: text/event-stream; charset=utf-8\r\n" in reply.headers
    events = [event.removeprefix(b"data: ").strip() for event in reply.timeline.render(0, reply.timeline.steps)]
    assert events.pop() == b"[DONE]"
    done = TranscriptionTextDoneEvent.model_validate_json(events.pop())
    deltas = [msgspec.json.decode(event) for event in events]
    assert {delta["type"] for delta in deltas} == {"transcript.text.delta"}
    assert len(deltas) == 12
    assert "".join(delta["delta"] for delta in deltas) == done.text == text("/v1/audio/transcriptions", {})


@pytest.mark.parametrize(
    ("data", "files", "param"),
    [
        ({}, FILES, "model"),
        ({"model": ""}, FILES, "model"),
        ({"model": "m"}, {"other": ("a", b"b", "text/plain")}, "file"),
        ({"model": "m", "response_format": "srt"}, FILES, "response_format"),
        ({"model": "m", "seed": "x"}, FILES, "seed"),
    ],
)
def test_a_bad_form_is_a_400_that_names_the_field(
    data: dict[str, str], files: dict[str, tuple[str, bytes, str]], param: str
) -> None:
    reply = post("/v1/audio/transcriptions", data, files)
    assert reply.status == 400
    assert json.loads(body(reply))["error"]["param"] == param


def test_no_form_at_all_is_a_400() -> None:
    request = Request("POST", "/v1/audio/transcriptions", "", {}, b"{}", 1000.0, 1000.0)
    app = App(Config(), FakeClock())
    assert app.handle(request, app.exchange(request)).status == 400
