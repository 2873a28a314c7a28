"""What would have been allowed where msgspec complains."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from mockllm.allowed import wanted
from mockllm.dialects.decode import decoder
from mockllm.errors import RequestError


class Pet(Struct, tag_field="kind", forbid_unknown_fields=True, kw_only=True):
    name: str | None = None


class Cat(Pet, tag="cat", kw_only=True):
    lives: Annotated[int, Meta(ge=1, le=9)] = 9


class Dog(Pet, tag="dog", kw_only=True):
    size: Literal["small", "big"]
    tags: dict[str, Annotated[Literal["good", "bad"] | None, Meta(description="a verdict")]] = {}
    code: Annotated[str, Meta(pattern="^[a-z]$")] = "a"


class Owner(Struct, rename={"pets": "animals"}):
    pets: list[Cat | Dog] | None = None


CASES = [
    ({"kind": "cow"}, ("kind", "cat or dog")),
    ({}, ("kind", "cat or dog; it has to be given")),
    ({"kind": "cat", "lives": 10}, ("lives", "a whole number from 1 to 9")),
    ({"kind": "cat", "size": "big"}, ("", "lives, name")),
    ({"kind": "dog"}, ("size", "small or big; it has to be given")),
    ({"kind": "dog", "size": "large"}, ("size", "small or big")),
    ({"kind": "dog", "size": "big", "code": "AB"}, ("code", "a text that matches ^[a-z]$")),
    ({"kind": "cat", "name": 1}, ("name", "a text")),
    ({"kind": "dog", "size": "big", "tags": 1}, None),  # the complaint says as much
    (1, None),
]


@pytest.mark.parametrize(("pet", "expected"), CASES)
def test_says_what_would_have_been_allowed(pet: Any, expected: Any) -> None:
    value = {"animals": [{"kind": "cat"}, pet]}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Owner)
    assert wanted(Owner, value, str(caught.value)) == expected
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(pet, Cat | Dog)
    assert wanted(Cat | Dog, pet, str(caught.value)) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"animals": [{"kind": "cow"}]}', "at $.animals[0].kind: must be cat or dog, got 'cow'"),
        (b'{"animals": [{"kind": "dog", "size": "x"}]}', "at $.animals[0].size: must be small or big, got 'x'"),
        (b'{"animals": [{"kind": "cat", "x": 1}]}', "at $.animals[0]: there is no key `x`; there are lives, name"),
        (b'{"animals": [{"kind": "cow"}], nonsense', "at $.animals[0].kind: Invalid value 'cow'"),
        (
            b'{"animals": [{"kind": "dog", "size": "big", "tags": {"a": "x"}}]}',
            "at $.animals[0].tags[...]: Invalid enum value 'x'",
        ),
    ],
)
def test_a_refusal_names_the_choices(body: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        decoder(Owner)(body)
    assert caught.value.message == f"Invalid request, {message}"
