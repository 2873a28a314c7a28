"""Forms as httpx writes them, and forms that nobody should."""

from __future__ import annotations

import contextlib

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.errors import RequestError
from mockllm.http.multipart import Part, parse_multipart

B = b"multipart/form-data; boundary=B"
DISPOSITION = b'Content-Disposition: form-data; name="a"'


def encoded(data: dict[str, str | list[str]], files: dict[str, tuple[str, bytes, str]]) -> tuple[bytes, bytes]:
    """Content-Type and body, as httpx makes them."""
    request = httpx.Request("POST", "http://x/", data=data, files=files)
    return request.headers["content-type"].encode(), request.read()


def facts(parts: list[Part]) -> list[tuple[str, str | None, str | None, bytes]]:
    return [(p.name, p.filename, p.content_type, bytes(p.body)) for p in parts]


def test_a_transcription_request_of_httpx() -> None:
    content_type, body = encoded(
        {"model": "whisper-1", "timestamp_granularities[]": ["word", "segment"]},
        {"file": ("grüße.wav", b"RIFF\r\n\r\n--\x00\xff", "audio/wav")},
    )
    assert facts(parse_multipart(content_type, body)) == [
        ("model", None, None, b"whisper-1"),
        ("timestamp_granularities[]", None, None, b"word"),
        ("timestamp_granularities[]", None, None, b"segment"),
        ("file", "grüße.wav", "audio/wav", b"RIFF\r\n\r\n--\x00\xff"),
    ]


@given(st.dictionaries(st.text("abc[]é", min_size=1), st.binary(max_size=60) | st.just(b"\r\n--"), max_size=4))
def test_any_content_comes_back(files: dict[str, bytes]) -> None:
    sent = {name: ("f.bin", content, "audio/mpeg") for name, content in files.items()}
    sent["last"] = ("l", b"", "audio/mpeg")
    content_type, body = encoded({}, sent)
    expected = [(name, filename, kind, content) for name, (filename, content, kind) in sent.items()]
    assert facts(parse_multipart(content_type, body)) == expected


def test_the_contents_are_views_of_the_body() -> None:
    body = b"--B\r\n" + DISPOSITION + b"\r\n\r\nhello\r\n--B--\r\n"
    (part,) = parse_multipart(B, body)
    assert part.body.obj is body
    assert part.text() == "hello"


@pytest.mark.parametrize(
    "body",
    [
        b"preamble\r\n--B\r\n" + DISPOSITION + b"\r\n\r\nx\r\n--B--\r\nepilogue",
        b"--B \t\r\n" + DISPOSITION + b"\r\n\r\nx\r\n--B--",
        b"--B\r\ncontent-disposition:form-data;name=a\r\n\r\nx\r\n--B--",
        b"--B\r\nX: y\r\n" + DISPOSITION + b"\r\nContent-Transfer-Encoding: binary\r\n\r\nx\r\n--B--",
    ],
)
@pytest.mark.parametrize("content_type", [B, b'Multipart/Form-Data; charset=x; boundary="B"'])
def test_legal_oddities(content_type: bytes, body: bytes) -> None:
    assert facts(parse_multipart(content_type, body)) == [("a", None, None, b"x")]


def test_an_empty_form_has_no_parts() -> None:
    assert parse_multipart(B, b"--B--\r\n") == []


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (b"application/json", b"{}", "must be multipart"),
        (b"", b"", "must be multipart"),
        (b"multipart/form-data", b"--B--", "boundary"),
        (b"multipart/form-data; boundary=" + b"b" * 71, b"", "boundary"),
        (B + b";" * 65, b"--B--", "malformed"),
        (B, b"", "does not contain"),
        (B, b"x--B\r\n", "does not contain"),
        (B, b"--BX\r\n", "boundary line"),
        (B, b"--B", "boundary line"),
        (B, b"--B\r\n" + DISPOSITION, "cut off"),
        (B, b"--B\r\n" + DISPOSITION + b"\r\n\r\nx", "cut off"),
        (B, b"--B\r\n" + DISPOSITION + b"\r\n\r\nx--B--", "cut off"),
        (B, b"--B\r\n\r\nx\r\n--B--", "lacks its headers"),
        (B, b"--B\r\n" + DISPOSITION + b"\r\n--B--", "lacks its headers"),
        (B, b"--B\r\n" + DISPOSITION + b"; x=" + b"y" * 9000 + b"\r\n\r\nx\r\n--B--", "lacks its headers"),
        (B, b"--B\r\nContent-Type: a/b\r\n\r\nx\r\n--B--", "form-data"),
        (B, b"--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--", "form-data"),
        (B, b"--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--", "no name"),
        (B, b"--B\r\nContent-Disposition: form-data; name*=utf-8''a\r\n\r\nx\r\n--B--", "no name"),
        (B, b"--B\r\n" + DISPOSITION + b"; x*" + b"1" * 5000 + b"=y\r\n\r\nx\r\n--B--", "malformed"),
        (B, (b"--B\r\n" + DISPOSITION + b"\r\n\r\nx\r\n") * 129 + b"--B--", "more than 128"),
    ],
)
def test_bad_forms_are_refused(content_type: bytes, body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message) as refused:
        parse_multipart(content_type, body)
    assert refused.value.status == 400


def test_a_field_that_is_no_text_names_itself() -> None:
    (part,) = parse_multipart(B, b"--B\r\n" + DISPOSITION + b"\r\n\r\n\xff\r\n--B--")
    with pytest.raises(RequestError) as refused:
        part.text()
    assert refused.value.param == "a"


PIECES = [
    b"--B",
    b"--",
    b"\r\n",
    DISPOSITION,
    b"; filename*=x'y'%z",
    b"; filename*0*=zip''a",
    b"; name*0=q",
    b'"',
    b"\0",
    b"x",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=14).map(b"".join))
def test_no_body_breaks_it(body: bytes) -> None:
    for raw in (body, b"--B\r\n" + DISPOSITION + body + b"\r\n\r\nx\r\n--B--"):
        with contextlib.suppress(RequestError):
            assert all(isinstance(part.name, str) for part in parse_multipart(B, raw))


@given(st.binary(max_size=40))
def test_no_content_type_breaks_it(tail: bytes) -> None:
    with pytest.raises(RequestError):
        parse_multipart(B + b"; boundary=" + tail + b"\0", b"")
