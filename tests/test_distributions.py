"""Drawn latencies: their moments, their bounds, and that a key says all of them."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.generation.distributions import Distribution, Exponential, Lognormal, Normal, Uniform, draws_ms
from mockllm.generation.overrides import Override
from mockllm.generation.overriding import own_timing

KEY = bytes(range(16))
COUNT = 20_000

MOMENTS: list[tuple[Distribution, float, float]] = [
    (Normal(50, 5), 50, 5),
    (Normal(0.25, 0.01), 0.25, 0.01),
    (Uniform(10, 30), 20, 20 / 12**0.5),
    (Lognormal(20, 15), 20, 15),
    (Lognormal(20, 0), 20, 0),
    (Exponential(40), 40, 40),
]


@pytest.mark.parametrize(("distribution", "mean", "std"), MOMENTS)
def test_mean_and_deviation_are_those_of_the_latency(distribution: Distribution, mean: float, std: float) -> None:
    draws = draws_ms(distribution, KEY, COUNT)
    assert fmean(draws) == pytest.approx(mean, rel=0.03)
    assert pstdev(draws) == pytest.approx(std, rel=0.05, abs=1e-9)


distributions = st.one_of(
    st.builds(Normal, st.floats(0, 1e9), st.floats(0, 1e9)),
    st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)).map(lambda pair: Uniform(min(pair), max(pair))),
    st.builds(Lognormal, st.floats(1e-6, 1e9), st.floats(0, 1e9)),
    st.builds(Exponential, st.floats(0, 1e9)),
)


@given(distributions, st.binary(min_size=16, max_size=16), st.integers(0, 50))
def test_draws_are_finite_never_negative_and_a_function_of_the_key(
    distribution: Distribution, key: bytes, count: int
) -> None:
    draws = draws_ms(distribution, key, count)
    assert len(draws) == count
    assert all(0 <= draw < float("inf") for draw in draws)
    assert draws == draws_ms(distribution, key, count + 7)[:count]


def test_uniform_stays_inside_its_bounds() -> None:
    draws = draws_ms(Uniform(10, 30), KEY, COUNT)
    assert 10 < min(draws) < 10.1
    assert 29.9 < max(draws) < 30


class TestOwnTiming:
    def test_what_is_not_named_stays(self) -> None:
        usual = (0.1, [0.0, 0.01, 0.02])
        assert own_timing(Override(), KEY, 3, *usual) == usual
        assert own_timing(Override(ttft_ms=5), KEY, 3, *usual) == (0.005, usual[1])

    def test_numbers_lists_and_draws(self) -> None:
        for itl, expected in ((2.5, [0, 0.0025, 0.005, 0.0075]), ((400.0, 100.0), [0, 0.4, 0.5, 0.9])):
            offset_s, after_s = own_timing(Override(itl_ms=itl), KEY, 4, 0.1, [0.0])
            assert (offset_s, list(after_s)) == (0.1, expected)
        drawn = Override(ttft_ms=Exponential(50), itl_ms=Exponential(50))
        offset_s, after_s = own_timing(drawn, KEY, 4, 0.1, [0.0])
        gaps = [b - a for a, b in pairwise(after_s)]
        assert len({offset_s, *gaps}) == 4  # each a draw of its own

    def test_a_single_token_has_no_gap(self) -> None:
        for itl in (5.0, (5.0,), Exponential(5)):
            assert list(own_timing(Override(itl_ms=itl), KEY, 1, 0.1, [0.0])[1]) == [0.0]
