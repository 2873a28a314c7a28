"""Embeddings: what a vector is a function of, and its two encodings."""

from __future__ import annotations

import json
from base64 import b64decode
from itertools import combinations
from math import hypot
from statistics import mean, pstdev
from struct import unpack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import CreateEmbeddingResponse

from mockllm.dialects.embeddings import as_numbers
from tests.asking import Asker

asker = Asker()


def vectors(given: Any, **more: Any) -> list[Any]:
    answer = asker.post("/v1/embeddings", input=given, **more)
    assert answer.status == 200
    return [row["embedding"] for row in answer.json["data"]]


def test_the_reply_is_what_the_sdk_takes() -> None:
    answer = asker.post("/v1/embeddings", input=["one two", "three"])
    reply = CreateEmbeddingResponse.model_validate_json(answer.body, strict=True)
    assert [row.index for row in reply.data] == [0, 1]
    assert [len(row.embedding) for row in reply.data] == [1536, 1536]
    assert (reply.model, reply.usage.prompt_tokens, reply.usage.total_tokens) == ("m", 3, 3)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4), st.integers(1, 64))
def test_base64_holds_the_same_single_precision_values(texts: list[str], dimensions: int) -> None:
    floats = vectors(texts, dimensions=dimensions)
    packed = [
        b64decode(text, validate=True) for text in vectors(texts, dimensions=dimensions, encoding_format="base64")
    ]
    assert [list(unpack(f"<{dimensions}f", raw)) for raw in packed] == floats


def vector(key: bytes, dimensions: int) -> list[float]:
    found: list[float] = json.loads(as_numbers(key, dimensions))
    assert len(found) == dimensions
    return found


@given(st.binary(min_size=16, max_size=16), st.integers(1, 3000))
def test_vectors_have_unit_length(key: bytes, dimensions: int) -> None:
    assert hypot(*vector(key, dimensions)) == pytest.approx(1, abs=1e-6)


@given(st.binary(min_size=16, max_size=16), st.integers(1, 150))
def test_fewer_dimensions_are_the_beginning_of_more_scaled_anew(key: bytes, half: int) -> None:
    beginning = vector(key, 2 * half + 21)[: 2 * half]
    scale = hypot(*beginning)
    assert [value / scale for value in beginning] == pytest.approx(vector(key, 2 * half), abs=1e-6)


def test_the_cosines_of_different_inputs_spread_as_those_of_random_directions_do() -> None:
    dimensions = 64
    found = vectors([f"text {k}" for k in range(60)], dimensions=dimensions)
    cosines = [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in combinations(found, 2)]
    assert mean(cosines) == pytest.approx(0, abs=0.01)
    assert pstdev(cosines) == pytest.approx(dimensions**-0.5, rel=0.1)


def test_equal_inputs_are_equal_and_different_ones_nearly_orthogonal() -> None:
    texts = [f"text {k}" for k in range(40)]
    found = vectors(texts)
    assert vectors(texts[7]) == [found[7]]
    assert max(abs(sum(a * b for a, b in zip(x, y, strict=True))) for x, y in combinations(found, 2)) < 0.15


def test_token_ids_have_the_vector_of_their_text() -> None:
    ids = asker.post("/tokenize", prompt="The quick brown fox").json["tokens"]
    assert vectors(ids) == vectors([ids]) == vectors("The quick brown fox")
    assert vectors([ids, "other"])[0] == vectors(ids)[0]


def test_ids_of_another_tokenizer_are_taken_and_counted() -> None:
    answer = asker.post("/v1/embeddings", input=[[2_000_000_000, 5, 6], [2_000_000_000, 5, 7]], dimensions=8)
    assert answer.json["usage"]["prompt_tokens"] == 6
    assert answer.json["data"][0]["embedding"] != answer.json["data"][1]["embedding"]


def test_messages_are_read_as_chat_reads_them() -> None:
    answer = asker.post("/v1/embeddings", messages=[{"role": "user", "content": "one two"}], dimensions=4)
    assert (len(answer.json["data"]), answer.json["usage"]["prompt_tokens"]) == (1, 2)


def test_the_seed_changes_the_vectors_and_the_model_does_not() -> None:
    other = Asker(seed=1).post("/v1/embeddings", input="x", dimensions=4).json["data"][0]["embedding"]
    assert [other] != vectors("x", dimensions=4) == vectors("x", dimensions=4, model="another")


def test_the_length_is_a_setting() -> None:
    (row,) = Asker(embedding_dimensions=768).post("/v1/embeddings", input="x").json["data"]
    assert len(row["embedding"]) == 768


def test_a_long_answer_is_made_in_steps_and_is_the_same() -> None:
    texts = [f"text {k}" for k in range(37)]
    answer = asker.post("/v1/embeddings", input=texts, dimensions=2000)
    assert (answer.timeline.steps, answer.length) == (5, None)
    assert answer.timeline.offset_s == pytest.approx(0.15)
    assert list(answer.timeline.after_s) == pytest.approx([0, 0.001, 0.002, 0.003, 0.004])
    rows = answer.json["data"]
    assert [row["index"] for row in rows] == list(range(37))
    assert [row["embedding"] for row in rows[:3]] == vectors(texts[:3], dimensions=2000)
    one_by_one = b"".join(part for k in range(5) for part in answer.timeline.render(k, k + 1))
    assert one_by_one == answer.body


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input[0]"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": ["a", []]}, "input[1]"),
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": [1, "a"]}, "input"),
        ({"input": [-1]}, "input[...]"),
        ({"input": {"a": 1}}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": 65_537}, "dimensions"),
    ],
)
def test_what_cannot_be_embedded_is_refused(body: dict[str, Any], param: str) -> None:
    status, found = asker.post("/v1/embeddings", **body).error
    assert status == 400
    assert str(found).startswith(param.removesuffix("[...]"))


def test_an_input_longer_than_the_context_is_refused() -> None:
    answer = Asker(max_model_len=3).post("/v1/embeddings", input=["one", "one two three four"])
    assert answer.error == (400, "input")
    assert answer.json["error"]["code"] == "context_length_exceeded"
