"""What is written, read back by h11's client side and by the standard library."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.http.framing import LAST_CHUNK, Date, chunked, chunked_any, status_line


def read_back(raw: bytes) -> tuple[h11.Response, list[bytes]]:
    """The response in `raw` and its chunks, as h11's client side reads them."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[(b"Host", b"x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(raw)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    chunks: list[bytes] = []
    while isinstance(event := client.next_event(), h11.Data):
        assert event.chunk_start
        assert event.chunk_end
        chunks.append(bytes(event.data))
    assert isinstance(event, h11.EndOfMessage)
    assert client.trailing_data == (b"", False)
    return response, chunks


@pytest.mark.parametrize("status", [200, 204, 301, 400, 404, 413, 417, 429, 431, 500, 503, 505, 529, 599])
def test_a_status_line_is_read_back(status: int) -> None:
    response, _ = read_back(status_line(status) + b"content-length: 0\r\n\r\n")
    assert response.status_code == status
    assert response.http_version == b"1.1"


def test_every_status_that_python_knows_from_200_on_has_a_phrase() -> None:
    exotic = {207, 208, 226, 300, 305, 418, 506, 508, 510, 511}
    for status in set(HTTPStatus) - exotic:
        if status >= 200:
            assert status_line(status).rstrip() != b"HTTP/1.1 %d" % status


@given(st.lists(st.binary(max_size=40) | st.sampled_from([2046, 2047, 2048, 2049, 5000]).map(lambda n: b"x" * n)))
def test_every_event_is_one_chunk(events: list[bytes]) -> None:
    head = status_line(200) + b"transfer-encoding: chunked\r\n\r\n"
    _, chunks = read_back(head + chunked(events) + LAST_CHUNK)
    assert chunks == [event for event in events if event]
    assert chunked_any(events) == chunked(events)


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_the_date_is_what_the_standard_library_formats(first_s: float, second_s: float) -> None:
    date = Date()
    for wall_s in (first_s, second_s, second_s):
        assert date.header(wall_s) == f"date: {formatdate(int(wall_s), usegmt=True)}\r\n".encode()
