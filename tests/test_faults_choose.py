"""Whom faults strike: draws that repeat in any order, counts of arrivals, matchers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.app.chooser import Chooser, Seen
from mockllm.faults import AnyFault, Fault

CHAT = "/v1/chat/completions"


def fault(**fields: Any) -> Fault:
    made: Fault = msgspec.convert({"kind": "reset", **fields}, AnyFault)
    return made


def request(content: bytes = b"{}", **fields: Any) -> Seen:
    given: dict[str, Any] = {"paths": (CHAT, CHAT), "generates": True, "model": "m", "headers": {}, "content": content}
    return Seen(**(given | fields))


def struck(faults: Sequence[Fault], requests: Sequence[Seen], seed: int = 0) -> list[tuple[Fault, ...]]:
    chooser = Chooser(faults, seed)
    return [tuple(chooser.choose(seen)) for seen in requests]


TENTH = fault(probability=0.1)


@pytest.mark.parametrize(
    "contents", [[b"same"] * 10_000, [b"%d" % number for number in range(10_000)]], ids=["all alike", "all different"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_probability_is_one(contents: list[bytes], seed: int) -> None:
    hits = sum(map(bool, struck([TENTH], [request(content) for content in contents], seed)))
    assert abs(hits - 1000) < 4 * (10_000 * 0.1 * 0.9) ** 0.5  # a fair draw is outside once in 16,000 seeds


@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=60), st.randoms(use_true_random=False))
def test_the_same_requests_meet_the_same_faults_in_any_order(contents: list[bytes], random: Any) -> None:
    faults = [fault(probability=0.3), fault(probability=0.5, at="after-head"), fault(first=2, at_byte=1)]
    shuffled = random.sample(contents, len(contents))

    def outcome(order: list[bytes]) -> Counter[tuple[bytes, tuple[Fault, ...]]]:
        return Counter(zip(order, struck(faults, [request(content) for content in order]), strict=True))

    assert outcome(contents) == outcome(shuffled)


@given(st.lists(st.integers(0, 50), unique=True))
def test_a_key_header_makes_a_draw_the_same_on_any_worker(keys: list[int]) -> None:
    requests = [request(key=b"%d" % key) for key in keys]
    one = struck([TENTH], requests)
    each_on_its_own = [struck([TENTH], [seen])[0] for seen in requests]
    assert one == each_on_its_own == struck([TENTH], requests[::-1])[::-1]


def test_a_retry_is_a_new_draw() -> None:
    patterns = {tuple(map(bool, struck([fault(probability=0.5)], [request(b"%d" % n)] * 8))) for n in range(40)}
    assert len(patterns) > 20


def test_the_seed_changes_draws_and_another_fault_does_not() -> None:
    requests = [request(b"%d" % number) for number in range(100)]
    alone = struck([TENTH], requests)
    assert alone != struck([TENTH], requests, seed=1)
    other = fault(probability=0.5, at="after-head", also=True)
    assert [TENTH in found for found in struck([other, TENTH], requests)] == [bool(found) for found in alone]


def test_never_and_always() -> None:
    requests = [request(b"%d" % number) for number in range(100)]
    assert not any(struck([fault(probability=0)], requests))
    assert all(struck([fault(probability=1)], requests))


def test_nth_counts_the_requests_that_it_concerns() -> None:
    requests = [request(b"%d" % number, model="ab"[number % 2]) for number in range(12)]
    hits = [number for number, found in enumerate(struck([fault(nth=3, model="a")], requests)) if found]
    assert hits == [4, 10]


def test_first_counts_each_request_or_all() -> None:
    requests = [request(content) for content in (b"a", b"b", b"a", b"a", b"b", b"c")]
    assert list(map(bool, struck([fault(first=1)], requests))) == [True, True, False, False, False, True]
    assert list(map(bool, struck([fault(first=2, of="all")], requests))) == [True, True] + [False] * 4


def test_a_list_is_a_script() -> None:
    script = [fault(first=2), fault(first=1, at="after-head")]
    kinds = [[script.index(one) for one in found] for found in struck(script, [request()] * 5)]
    assert kinds == [[0], [0], [1], [], []]


def test_the_next_is_looked_at_only_after_also() -> None:
    first, second = fault(also=True), fault(at="after-head")
    assert struck([first, second, first], [request()]) == [(first, second)]


@pytest.mark.parametrize(
    ("matcher", "seen", "hit"),
    [
        ({"model": "gpt-*"}, {"model": "gpt-4o"}, True),
        ({"model": "gpt-*"}, {"model": "my-gpt-4o"}, False),
        ({"path": "/v1/chat/*"}, {}, True),
        ({"path": CHAT}, {"paths": ("/chat/completions", CHAT)}, True),
        ({"path": "/chat/completions"}, {"paths": ("/chat/completions", CHAT)}, True),
        ({"path": "/v1/embeddings"}, {}, False),
        ({"path": "/health"}, {"paths": ("/health", "/health"), "generates": False}, True),
        ({}, {"paths": ("/health", "/health"), "generates": False}, False),
        ({"header": "X-User"}, {"headers": {b"x-user": b""}}, True),
        ({"header": "x-user"}, {}, False),
        ({"header": "x-user: ann"}, {"headers": {b"x-user": b"ann"}}, True),
        ({"header": "x-user:ann"}, {"headers": {b"x-user": b"bob"}}, False),
        ({"header": "x-user:ann", "model": "n"}, {"headers": {b"x-user": b"ann"}}, False),
    ],
)
def test_matchers(matcher: dict[str, Any], seen: dict[str, Any], hit: bool) -> None:
    assert bool(struck([fault(**matcher)], [request(**seen)])[0]) is hit
