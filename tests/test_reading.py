"""The endpoints that read and generate nothing: when they answer, and rerank, score, moderations."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types import ModerationCreateResponse

from mockllm.dialects.moderations import CATEGORIES
from mockllm.generation.planner import MOST_READINGS
from mockllm.version import VERSION
from tests.asking import Asker

asker = Asker()

BODIES: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": "one two"},
    "/v1/rerank": {"query": "one", "documents": ["two"]},
    "/v2/rerank": {"query": "one", "documents": ["two"]},
    "/v1/score": {"text_1": "one", "text_2": "two"},
    "/v1/moderations": {"input": "one two"},
}


@pytest.mark.parametrize("path", BODIES)
def test_an_answer_takes_one_prefill(path: str) -> None:
    answer = Asker(ttft_ms=70, itl_ms=9).post(path, **BODIES[path])
    assert answer.timeline.end_s == pytest.approx(0.07)
    assert (answer.headers["x-mockllm-ttft-ms"], answer.headers["x-mockllm-output-tokens"]) == ("70.000", "0")
    assert answer.exchange.in_flight
    assert (answer.exchange.prompt_tokens, answer.exchange.tokens, answer.exchange.model) == (2, 0, "m")


@pytest.mark.parametrize("path", BODIES)
def test_a_latency_of_whole_replies_holds_here_too(path: str) -> None:
    assert Asker(request_latency=3.5).post(path, **BODIES[path]).timeline.end_s == 3.5


def test_the_time_is_drawn_anew_for_each_occurrence() -> None:
    one, other = Asker(ttft_ms_std=20), Asker(ttft_ms_std=20)
    due = [one.post("/v1/score", **BODIES["/v1/score"]).timeline.end_s for _ in range(20)]
    assert len(set(due)) == 20
    assert due == [other.post("/v1/score", **BODIES["/v1/score"]).timeline.end_s for _ in range(20)]


@pytest.mark.parametrize("path", BODIES)
def test_a_request_may_have_a_time_and_a_seed_of_its_own(path: str) -> None:
    server = Asker(ttft_ms=70, request_latency=3.5)
    answer = server.post(path, **BODIES[path], mockllm={"ttft_ms": 20, "itl_ms": 5, "seed": 8})
    assert answer.timeline.end_s == pytest.approx(0.02)
    assert server.ask(path, BODIES[path], {b"x-mockllm-ttft-ms": b"30"}).timeline.end_s == pytest.approx(0.03)
    kept = {"id", "created"}
    seeded = {k: v for k, v in Asker(seed=8).post(path, **BODIES[path]).json.items() if k not in kept}
    assert {k: v for k, v in answer.json.items() if k not in kept} == seeded
    assert {k: v for k, v in server.post(path, **BODIES[path]).json.items() if k not in kept} != seeded
    assert server.post(path, **BODIES[path], mockllm={"ttft_ms": -1}).error == (400, "mockllm.ttft_ms")


@pytest.mark.parametrize("path", ["/embeddings", "/rerank", "/v2/rerank", "/score", "/moderations"])
def test_each_is_served_without_the_version_too(path: str) -> None:
    body = BODIES.get(path) or BODIES["/v1" + path]
    assert asker.post(path, **body).status == 200


@pytest.mark.parametrize("path", BODIES)
def test_the_model_is_looked_up(path: str) -> None:
    assert Asker(strict_model=True).post(path, **BODIES[path]).status == 404
    assert Asker(model="z").ask(path, BODIES[path]).json["model"] == "z"


# ---- rerank and score --------------------------------------------------------------------------


def test_documents_come_best_first_with_their_places() -> None:
    documents = [f"paper {k}" for k in range(30)]
    answer = asker.post("/v1/rerank", query="q", documents=documents).json
    scores = [result["relevance_score"] for result in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(scores)) == 30
    assert sorted(result["index"] for result in answer["results"]) == list(range(30))
    assert all(result["document"]["text"] == documents[result["index"]] for result in answer["results"])
    assert answer["usage"] == {"prompt_tokens": 120, "total_tokens": 120}
    assert answer["id"].startswith("rerank-")
    best = asker.post("/v1/rerank", query="q", documents=documents, top_n=3, return_documents=False).json
    expected = [{"index": r["index"], "relevance_score": r["relevance_score"]} for r in answer["results"][:3]]
    assert best["results"] == expected


def test_documents_may_be_objects() -> None:
    shapes = ["same", {"text": "same"}, {"content": [{"type": "text", "text": "sa"}, {"type": "text", "text": "me"}]}]
    query = {"content": [{"type": "text", "text": "q"}]}
    results = asker.post("/v1/rerank", query=query, documents=shapes).json["results"]
    assert [result["index"] for result in results] == [0, 1, 2]
    assert len({result["relevance_score"] for result in results}) == 1


def test_a_pair_has_one_score_whatever_it_is_asked_by() -> None:
    ranked = asker.post("/v1/rerank", query="q", documents=["a", "b"]).json["results"]
    by_index = {result["index"]: result["relevance_score"] for result in ranked}
    for names in (("text_1", "text_2"), ("data_1", "data_2"), ("queries", "documents"), ("queries", "items")):
        reply = asker.post("/v1/score", **{names[0]: "q", names[1]: ["a", "b"]}).json
        assert [row["score"] for row in reply["data"]] == [by_index[0], by_index[1]]
    assert asker.post("/v1/score", text_1=["q", "q"], text_2=["a", "b"]).json["data"] == reply["data"]
    assert asker.post("/v1/score", text_1="qa", text_2="").json["data"][0]["score"] != by_index[0]
    assert (reply["object"], reply["usage"]["completion_tokens"]) == ("list", 0)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/rerank", {"documents": ["a"]}, "query"),
        ("/v1/rerank", {"query": "q"}, "documents"),
        ("/v1/rerank", {"query": "q", "documents": []}, "documents"),
        ("/v1/rerank", {"query": "q", "documents": ["a", {}]}, "documents[1]"),
        ("/v1/rerank", {"query": "q", "documents": ["a"], "top_n": -1}, "top_n"),
        ("/v1/score", {"text_2": "a"}, "text_1"),
        ("/v1/score", {"text_1": "a"}, "text_2"),
        ("/v1/score", {"text_1": [], "text_2": "a"}, "text_1"),
        ("/v1/score", {"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}, "text_1"),
        ("/v1/moderations", {}, "input"),
        ("/v1/moderations", {"input": []}, "input"),
        ("/v1/moderations", {"input": ["a", {"type": "text", "text": "b"}]}, "input"),
    ],
)
def test_what_cannot_be_read_is_refused(path: str, body: dict[str, Any], param: str) -> None:
    assert asker.post(path, **body).error == (400, param)


# ---- moderations -------------------------------------------------------------------------------


def test_a_text_is_flagged_in_the_categories_that_it_names() -> None:
    texts = ["a nice day", *CATEGORIES, "Violence, then self-harm/intent!", "whatever sexuality"]
    answer = asker.post("/v1/moderations", input=texts)
    reply = ModerationCreateResponse.model_validate_json(answer.body)
    named = [[name for name, is_one in row["categories"].items() if is_one] for row in answer.json["results"]]
    assert named == [[], *[[name] for name in CATEGORIES], ["self-harm/intent", "violence"], []]
    assert [result.flagged for result in reply.results] == [bool(names) for names in named]
    for row, names in zip(answer.json["results"], named, strict=True):
        assert all((score >= 0.9) == (name in names) for name, score in row["category_scores"].items())


def test_parts_are_one_input_and_images_are_judged_where_the_api_judges_them() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    (both,) = asker.post("/v1/moderations", input=[{"type": "text", "text": "sexual"}, image]).json["results"]
    assert both["flagged"]
    assert both["category_applied_input_types"]["sexual"] == ["text", "image"]
    assert both["category_applied_input_types"]["hate"] == ["text"]
    (alone,) = asker.post("/v1/moderations", input=[image]).json["results"]
    assert alone["category_applied_input_types"]["violence"] == ["image"]
    assert alone["category_applied_input_types"]["hate"] == []


# ---- version and ping --------------------------------------------------------------------------


def test_version_and_ping() -> None:
    locked = Asker(api_key=("k",))
    assert locked.ask("/version").json == {"version": VERSION}
    for body in (None, b""):
        answer = locked.ask("/ping", body)
        assert (answer.status, answer.body) == (200, b"")
    locked.app.lifecycle.drain()
    assert locked.ask("/ping").status == 503


@pytest.mark.parametrize(
    ("path", "field", "others"),
    [
        ("/v1/moderations", "input", {}),
        ("/v1/rerank", "documents", {"query": "one"}),
        ("/v1/score", "text_2", {"text_1": "one"}),
    ],
)
def test_more_inputs_than_one_turn_of_the_loop_bears_are_refused(path: str, field: str, others: dict[str, str]) -> None:
    answer = asker.post(path, **others, **{field: ["two"] * (MOST_READINGS + 1)})
    assert answer.error == (400, field)
    assert asker.post(path, **others, **{field: ["two"] * 100}).status == 200
