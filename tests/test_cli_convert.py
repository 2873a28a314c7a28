"""The pipe filter, with byte streams in place of the pipes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.cli.convert import main
from mockllm.http.sse import SSEDecoder
from tests.chat_streams import call, chunk, usage_chunk
from tests.invariants import sdk_violations, violations

HERE = Path(__file__).parent
VLLM = (HERE / "data" / "chat_vllm.sse").read_bytes()
CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Grüße 😀"}),
    chunk(call(0, "call_a", "f", "{}"), "tool_calls"),
    usage_chunk(),
]
STREAM = b": hello\n\n" + b"".join(b"data: %b\n\n" % json.dumps(each, ensure_ascii=False).encode() for each in CHUNKS)


class Pipe(io.RawIOBase):
    """Hands out one piece a read, and notes what had been written by then."""

    def __init__(self, pieces: list[bytes], target: io.BytesIO) -> None:
        self.pieces = list(pieces)
        self.target = target
        self.written: list[int] = []

    def read1(self, size: int = -1) -> bytes:
        self.written.append(len(self.target.getvalue()))
        return self.pieces.pop(0) if self.pieces else b""


def run(pieces: list[bytes], *flags: str) -> tuple[int, bytes, str, list[int]]:
    target, errors = io.BytesIO(), io.StringIO()
    pipe = Pipe(pieces, target)
    code = main(flags, pipe, target, errors)
    return code, target.getvalue(), errors.getvalue(), pipe.written


def events(output: bytes) -> list[dict[str, Any]]:
    found = SSEDecoder().feed(output)
    decoded = [json.loads(event.data) for event in found]
    assert [event.event for event in found] == [event["type"] for event in decoded]
    return decoded


def shape(output: bytes) -> list[tuple[str, Any]]:
    """All that is not random: types, deltas, and whole texts."""
    return [(event["type"], event.get("delta", event.get("text", event.get("arguments")))) for event in events(output)]


WHOLE = shape(run([STREAM])[1])


def test_a_stream_as_vllm_sends_it() -> None:
    code, output, errors, _ = run([VLLM])
    assert (code, errors) == (0, "")
    converted = events(output)
    assert violations(converted) == sdk_violations(converted) == []
    assert converted[-1]["type"] == "response.completed"
    assert [item["type"] for item in converted[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]


def test_events_are_written_as_the_input_comes() -> None:
    code, _, _, written = run([b"data: ", json.dumps(CHUNKS[1]).encode(), b"\n", b"\n", b"data:"])
    assert code == 0
    assert written[:4] == [0, 0, 0, 0]
    assert written[4] > 0


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_the_input_may_be_cut_anywhere(data: st.DataObject, end: bytes) -> None:
    stream = STREAM.replace(b"\n", end) + b"data: [DONE]" + end + end
    cuts = sorted(data.draw(st.lists(st.integers(1, len(stream) - 1), unique=True, max_size=8)))
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    code, output, errors, _ = run(pieces)
    assert (code, errors, shape(output)) == (0, "", WHOLE)


def test_data_may_stand_on_several_lines() -> None:
    lines = b"data: " + json.dumps(CHUNKS[1], indent=1).replace("\n", "\ndata: ").encode() + b"\n\n"
    assert shape(run([lines])[1])[4] == ("response.output_text.delta", "Grüße 😀")


def test_the_last_empty_line_may_be_missing() -> None:
    assert shape(run([STREAM.rstrip()])[1]) == WHOLE
    assert shape(run([STREAM + b"data: [DONE]"])[1]) == WHOLE


def test_what_follows_done_is_not_read() -> None:
    code, output, _, _ = run([STREAM + b"data: [DONE]\n\ndata: {\n\n"])
    assert (code, shape(output)) == (0, WHOLE)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"data: {\n\n", "mockllm convert: line 11: Input data was truncated\n"),
        (b": c\n\ndata: {}\n\n", "mockllm convert: line 13: Object missing required field `choices`\n"),
        (
            b'data: {"choices":[{"delta":{"content":1}}]}\n\n',
            "mockllm convert: line 11: Expected `str | null`, got `int` (at $.choices[0].delta.content)\n",
        ),
        (
            b'data: {"choices"',
            "mockllm convert: line 11: Input data was truncated; the input ends here, in the middle of an event\n",
        ),
    ],
)
def test_a_broken_line_is_named_and_what_came_before_it_is_written(broken: bytes, message: str) -> None:
    code, output, errors, _ = run([STREAM + broken])
    assert (code, errors) == (1, message)
    # Everything but the ending, which only comes at the end.
    assert shape(output) == WHOLE[:-1]


def test_an_error_in_the_stream_is_an_event_and_no_failure_of_the_filter() -> None:
    code, output, errors, _ = run([b'data: {"error":{"message":"overloaded"}}\n\n'])
    assert (code, errors) == (0, "")
    assert events(output)[-1]["response"]["error"]["message"] == "overloaded"


def test_an_input_that_is_no_event_stream_is_named() -> None:
    code, output, errors, _ = run([b'{"id": "chatcmpl-1"}\n'])
    assert (code, output) == (1, b"")
    assert errors.startswith("mockllm convert: line 1: this is no stream of server-sent events")


def test_an_empty_input_is_a_failed_response() -> None:
    code, output, _, _ = run([])
    assert (code, [kind for kind, _ in shape(output)][-1]) == (0, "response.failed")


def test_flags() -> None:
    agents = [kind for kind, _ in shape(run([STREAM], "--profile", "agents", "--model", "m")[1])]
    assert "response.in_progress" not in agents
    other = b'data: {"choices":[{"index":1,"delta":{}}]}\n\n'
    assert run([other], "--strict")[0] == 1
    code, output, errors, _ = run([STREAM], "--profile", "x")
    assert (code, output) == (2, b"")
    assert errors.count("\n") == 1
    assert "--profile" in errors
    assert b"--profile" in run([], "--help")[1]


def test_text_streams_are_read_and_written_beneath(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    code = main([], io.TextIOWrapper(io.BytesIO(STREAM), encoding="ascii"), target, sys.stderr)
    assert isinstance(target.buffer, io.BytesIO)
    assert (code, shape(target.buffer.getvalue())) == (0, WHOLE)


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    errors = io.StringIO()
    assert main([], io.BytesIO(STREAM), Closed(), errors) == 0
    assert errors.getvalue() == ""


def test_as_a_process_between_two_pipes() -> None:
    command = [sys.executable, "-m", "mockllm", "convert"]
    with subprocess.Popen(command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # Only if the filter waits for the end of its input does this come to bear.
        guard = threading.Timer(30, process.kill)
        guard.start()
        process.stdin.write(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
        process.stdin.flush()
        first = process.stdout.readline()
        output, _ = process.communicate(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n')
        guard.cancel()
    assert (first, process.returncode) == (b"event: response.created\n", 0)
    assert shape(first + output)[-1][0] == "response.completed"


def test_the_converter_needs_nothing_of_the_server() -> None:
    code = "import sys; from mockllm.dialects.convert import ChatToResponses; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE.parent, capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
