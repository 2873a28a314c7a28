"""Any bytes, cut anywhere: the fast path, plain h11 and every way of cutting agree."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fuzz_http import SEEDS, SPLICES, check, main, mutate

CUTS = st.lists(st.integers(0, 2000), max_size=6)
FRAGMENTS = st.lists(st.sampled_from(SEEDS) | st.sampled_from(SPLICES) | st.binary(max_size=5), max_size=6).map(
    b"".join
)


@given(st.randoms(use_true_random=False), CUTS)
@settings(max_examples=400, deadline=None)
def test_mutated_requests(rng: random.Random, cuts: list[int]) -> None:
    check(mutate(rng), cuts)


@given(FRAGMENTS, CUTS)
@settings(max_examples=400, deadline=None)
def test_fragments_in_any_order(raw: bytes, cuts: list[int]) -> None:
    check(raw, cuts)


@given(st.binary(max_size=300), CUTS)
@settings(deadline=None)
def test_random_bytes(raw: bytes, cuts: list[int]) -> None:
    check(raw, cuts)


def test_the_seeds_are_read_as_requests_so_that_fuzzing_begins_with_good_ones() -> None:
    assert [len(check(seed, [])) for seed in SEEDS] == [1] * len(SEEDS)
    assert all(not isinstance(check(seed, [])[0], int) for seed in SEEDS)


def test_the_long_fuzzer_runs() -> None:
    assert main(["--seconds", "0"]) == 0
