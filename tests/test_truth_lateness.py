"""The lateness histogram against sorted lists."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.truth.lateness import LatenessHistogram, Tally, bucket, quantile

SHARES = (0.5, 0.9, 0.99, 0.999)
values = st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=300)


def histogram(lateness_s: list[float]) -> LatenessHistogram:
    tally = Tally()
    tally.add(lateness_s, max(lateness_s))
    return tally.drain()


def exact(lateness_s: list[float], share: float) -> float:
    return sorted(lateness_s)[max(1, ceil(share * len(lateness_s))) - 1]


@given(values)
def test_quantiles_are_within_half_a_percent_of_a_sorted_list(lateness_s: list[float]) -> None:
    for found, share in zip(histogram(lateness_s).quantiles(*SHARES), SHARES, strict=True):
        assert found == pytest.approx(exact(lateness_s, share), rel=0.004, abs=1e-6)


@given(values)
def test_count_mean_and_maximum_are_exact(lateness_s: list[float]) -> None:
    summary = histogram(lateness_s).summary()
    assert summary.count == len(lateness_s)
    assert summary.max_s == max(lateness_s)
    assert summary.mean_s == pytest.approx(sum(lateness_s) / len(lateness_s))


@given(values, values)
def test_merging_is_counting_both(a: list[float], b: list[float]) -> None:
    merged = histogram(a)
    merged.merge(histogram(b))
    both = histogram(a + b)
    assert merged.quantiles(*SHARES) == both.quantiles(*SHARES)
    assert merged.count == both.count


@given(st.lists(st.tuples(st.floats(0.0, 10.0), st.integers(1, 50)), min_size=1, max_size=20))
def test_a_weight_is_as_many_values(pairs: list[tuple[float, int]]) -> None:
    weighted = Tally()
    for value, times in pairs:
        weighted.add_times(value, times)
    plain = histogram([value for value, times in pairs for _ in range(times)])
    found = weighted.drain()
    assert found.quantiles(*SHARES) == plain.quantiles(*SHARES)
    assert (found.count, found.max_s) == (plain.count, plain.max_s)


@given(st.floats(2.0**-20, 1000.0), st.floats(2.0**-20, 1000.0))
def test_buckets_ascend(a: float, b: float) -> None:
    assert (a <= b) <= (bucket(a) <= bucket(b))


def test_early_chunks_are_counted_but_rounding_is_not() -> None:
    summary = histogram([-1e-9, 0.0, 0.001, -0.002]).summary()
    assert (summary.count, summary.early) == (4, 1)


def test_counts_up_to_an_edge() -> None:
    found = histogram([0.0, 0.0009, 0.0011, 0.004, 0.006])
    assert found.upto([0.001, 0.005, 10.0]) == [2, 4, 5]


def test_nothing_counted_is_all_zeros() -> None:
    assert Tally().drain().summary().p99_s == 0.0


def test_draining_empties_the_tally() -> None:
    tally = Tally()
    tally.add([0.001], 0.001)
    assert tally.drain().count == 1
    assert tally.drain().count == 0


@given(values, st.floats(0.001, 1.0))
def test_the_quantile_of_a_list_is_by_nearest_rank(items: list[float], share: float) -> None:
    items.sort()
    found = quantile(items, share)
    assert sum(item <= found for item in items) >= share * len(items) - 1e-9
    assert sum(item < found for item in items) < share * len(items) + 1e-9
