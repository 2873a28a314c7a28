"""The decoder against the standard's own examples and against itself on bytes cut everywhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder as SDKDecoder

from mockllm.http.sse import ServerSentEvent, SSEDecoder, encode

CASES = [
    # The four examples of §9.2.6.
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [ServerSentEvent(b"YHOO\n+2\n10")]),
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
        [ServerSentEvent(b"first event", id="1", line=3), ServerSentEvent(b"second event", line=6)],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [ServerSentEvent(b""), ServerSentEvent(b"\n", line=3)]),
    (b"data:test\n\ndata: test\n\n", [ServerSentEvent(b"test"), ServerSentEvent(b"test", line=3)]),
    # Line ends.
    (
        b"data: a\r\n\r\ndata: b\r\rdata: c\n\n",
        [ServerSentEvent(x, line=n) for x, n in ((b"a", 1), (b"b", 3), (b"c", 5))],
    ),
    (b"data: a\r\ndata: b\n\r\n", [ServerSentEvent(b"a\nb")]),
    # Types belong to one event, also if it is never sent for want of data; ids stay.
    (b"event: x\n\ndata: a\n\n", [ServerSentEvent(b"a", line=3)]),
    (b"event: x\ndata: a\n\ndata: b\n\n", [ServerSentEvent(b"a", "x", line=2), ServerSentEvent(b"b", line=4)]),
    (b"id: 7\ndata: a\n\ndata: b\n\n", [ServerSentEvent(b"a", id="7", line=2), ServerSentEvent(b"b", id="7", line=4)]),
    (b"id: 7\nid: 8\0\ndata: a\n\n", [ServerSentEvent(b"a", id="7", line=3)]),
    # One BOM, at the very beginning.
    (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent(b"a")]),
    (b"\n\xef\xbb\xbfdata: a\n\n", []),
    # What is no field is ignored.
    (b"dat: a\ndata : b\n{}\nDATA: c\n:data: d\n\n", []),
    ("data: é日😀\n\n".encode(), [ServerSentEvent("é日😀".encode())]),
    (b"", []),
]


def decode(pieces: list[bytes]) -> list[ServerSentEvent]:
    decoder = SSEDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_whole(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert decode([stream]) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_byte_by_byte(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_cut_in_two_anywhere(stream: bytes, events: list[ServerSentEvent]) -> None:
    for cut in range(len(stream) + 1):
        assert decode([stream[:cut], b"", stream[cut:]]) == events, cut


def test_an_event_is_out_as_soon_as_its_empty_line_is() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\n") == []
    assert decoder.feed(b"\r") == [ServerSentEvent(b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [ServerSentEvent(b"b", line=3)]


def test_the_end_hands_out_what_was_cut() -> None:
    decoder = SSEDecoder()
    decoder.feed(b"data: a\n\nevent: x\ndata: b\nda")
    decoder.feed(b"ta: c")
    assert decoder.finish() == ServerSentEvent(b"b\nc", "x", line=4)
    assert decoder.finish() is None


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert [event.text for event in decode([b"data: a\xff\xe6b\n\n"])] == ["a\ufffd\ufffdb"]


def test_reconnection_time_and_unknown_lines_are_noted() -> None:
    decoder = SSEDecoder()
    decoder.feed(b"retry: 250\nretry: x\n: comment\n\nfoo: bar\nbar\n")
    assert (decoder.retry_ms, decoder.unknown_line, decoder.line) == (250, 5, 6)


lines = st.sampled_from(
    ["data: a", "data:b", "data:  c: d", "event: x", "event", ": hi", "id: 1", "id", "foo: 1", "data: é日😀", "", ""]
)


@given(st.lists(lines), st.sampled_from(["\n", "\r\n"]))
def test_agrees_with_the_decoder_of_the_openai_sdk(drawn: list[str], end: str) -> None:
    foreign = SDKDecoder()
    theirs = [event for line in drawn if (event := foreign.decode(line)) is not None]
    stream = "".join(line + end for line in drawn).encode()
    ours = [(event.text, event.event, event.id) for event in decode([stream])]
    # Unlike the standard, the SDK also hands out events without data.
    assert ours == [(event.data, event.event or "message", event.id or "") for event in theirs if event.data]


@given(
    st.lists(st.sampled_from([b"data: a", b"event: x", b":", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"id: 1"])),
    st.data(),
)
def test_cuts_make_no_difference(drawn: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(drawn)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(pieces) == decode([stream])


@given(st.text(), st.sampled_from(["", "response.created"]))
def test_what_is_encoded_comes_back(text: str, event: str) -> None:
    json_text = json.dumps(text, ensure_ascii=False)
    assert decode([encode(json_text.encode(), event)]) == [
        ServerSentEvent(json_text.encode(), event or "message", line=2 if event else 1)
    ]


@given(st.text(st.sampled_from("ab\r\n"), min_size=1))
def test_line_breaks_come_back_as_lf(text: str) -> None:
    (event,) = decode([encode(text.encode())])
    assert event.text == text.replace("\r\n", "\n").replace("\r", "\n")
