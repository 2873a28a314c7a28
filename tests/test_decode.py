"""Bodies that cannot be decoded: the API's error, with the place."""

from __future__ import annotations

import contextlib
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from mockllm.dialects.decode import decoder
from mockllm.dialects.messages import ChatMessage
from mockllm.errors import RequestError


class Body(Struct):
    messages: list[ChatMessage]
    n: Annotated[int, Meta(ge=1)] = 1
    metadata: dict[str, str] | None = None
    logit_bias: dict[int, float] | None = None


decode = decoder(Body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"{",
        b'{"messages":[]',
        b"{'messages':[]}",
        b'{"messages":[]} trailing',
        b'{"n":NaN}',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"messages":[{"role":"\xff"}]}',
        b'{"messages":[{"role":"\xed\xa0\x80"}]}',
        b'{"messages":[{"role":"\\ud83d"}]}',
        b'{"unknown":' + b"[" * 100_000,
        b'{"unknown":' + b'{"a":' * 100_000,
    ],
)
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(RequestError, match="not valid JSON: ") as caught:
        decode(body)
    assert (caught.value.code, caught.value.status, caught.value.param) == ("invalid_json", 400, None)
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "path", "param"),
    [
        (b"[]", "$", None),
        (b"null", "$", None),
        (b"{}", "$.messages", "messages"),
        (b'{"messages":null}', "$.messages", "messages"),
        (b'{"messages":[{}]}', "$.messages[0].role", "messages[0].role"),
        (b'{"messages":[{"role":"user"},{"role":5}]}', "$.messages[1].role", "messages[1].role"),
        (b'{"messages":[{"role":"user","content":5}]}', "$.messages[0].content", "messages[0].content"),
        (
            b'{"messages":[{"role":"user","content":[{"type":"text","text":1}]}]}',
            "$.messages[0].content[0].text",
            "messages[0].content[0].text",
        ),
        (
            b'{"messages":[{"role":"user","content":[{"type":"text"}]}]}',
            "$.messages[0].content[0]",
            "messages[0].content[0]",
        ),
        (b'{"messages":[],"n":0}', "$.n", "n"),
        (b'{"messages":[],"n":"1"}', "$.n", "n"),
        (b'{"messages":[],"n":1.5}', "$.n", "n"),
        (b'{"messages":[],"metadata":{"k":1}}', "$.metadata[...]", "metadata"),
        (b'{"messages":[],"logit_bias":{"x":1}}', "$.logit_bias", "logit_bias"),
    ],
)
def test_what_is_json_of_another_shape(body: bytes, path: str, param: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        decode(body)
    assert f"at {path}: " in caught.value.message
    assert (caught.value.code, caught.value.status, caught.value.param) == ("invalid_request", 400, param)


def test_what_is_right_is_decoded_and_unknown_fields_are_accepted() -> None:
    body = decode(b'{"messages":[{"role":"developer","content":"x","name":"y"}],"n":2,"surprise":[1,{}]}')
    assert body == Body([ChatMessage("developer", "x")], 2)


@given(st.binary() | st.text().map(str.encode) | st.from_regex(rb'\{"(messages|n|metadata)":[\[\]{}",:a0-9\\u]*\}?'))
def test_no_body_raises_anything_else(body: bytes) -> None:
    with contextlib.suppress(RequestError):
        assert isinstance(decode(body), Body)
