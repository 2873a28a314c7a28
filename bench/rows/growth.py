"""Rows about cost as work grows: longer replies, longer prompts."""

from __future__ import annotations

import random

from bench import targets
from bench.measure import Case, Figures, Row, Settings, compare, cpu_figures, errors_of

LENGTHS = (10, 100, 1000, 10_000)
FLAT = 1.2
PROMPT_BYTES = (1_000, 100_000, 1_000_000, 4_000_000)
MS_PER_MB = 60.0


def tokens(settings: Settings) -> list[Row]:
    """CPU time per token of streams without delay, by their length."""
    with targets.running([targets.mockllm()], settings.cores) as (server,):
        cases = [
            Case(f"{length:,} tokens", server, length, stream=True, per_token=True, connections=16)
            for length in LENGTHS
        ]
        samples = compare(cases, settings, repeats=5)
    figures = cpu_figures(samples, "µs/token")
    # What a request costs apart from its tokens is not a cost per token: of two lengths, the
    # difference tells what the tokens between them cost.
    totals = [figures[case.name].median * case.tokens for case in cases]
    slopes = [(totals[k + 1] - totals[k]) / (LENGTHS[k + 1] - LENGTHS[k]) for k in range(len(LENGTHS) - 1)]
    row = Row("CPU per token, replies of 10 to 10,000 tokens", f"flat within {FLAT - 1:.0%}", figures)
    row.errors = errors_of(samples)
    row.reached = max(slopes) <= FLAT * min(slopes)
    each = ", ".join([f"{slope:.2f} µs from {LENGTHS[k]:,} to {LENGTHS[k + 1]:,}" for k, slope in enumerate(slopes)])
    request_us = totals[0] - slopes[0] * LENGTHS[0]
    row.notes.append(f"a further token costs {each}; a request without its tokens {request_us:.0f} µs")
    row.ratio = f"dearest / cheapest further token {max(slopes) / min(slopes):.2f}"
    return [row]


def prompt(settings: Settings) -> list[Row]:
    """CPU time per MB of prompt."""
    with targets.running([targets.mockllm("--max-model-len=100000000")], settings.cores) as (server,):
        text = _text(max(PROMPT_BYTES))
        cases = [
            Case(f"{size / 1e6:g} MB", server, 1, connections=4, prompt=text[:size].ljust(size, "."))
            for size in PROMPT_BYTES
        ]
        samples = compare(cases, settings, repeats=5)
    medians = [cpu_figures(samples, "")[case.name].median for case in cases]
    figures = {
        case.name: Figures(
            "ms/MB", [(sample.cpu_us - medians[0]) / (size - PROMPT_BYTES[0]) * 1e3 for sample in samples[case.name]]
        )
        for case, size in zip(cases[1:], PROMPT_BYTES[1:], strict=True)
    }
    row = Row("prompt of 0.1 to 4 MB", f"linear, ≤ {MS_PER_MB:g} ms of CPU a MB", figures, errors=errors_of(samples))
    per_mb = [runs.median for runs in figures.values()]
    row.reached = max(per_mb) <= MS_PER_MB and max(per_mb) <= FLAT * min(per_mb)
    row.ratio = f"dearest / cheapest MB {max(per_mb) / min(per_mb):.2f}"
    row.notes.append("what a prompt of 1 kB costs is taken off")
    return [row]


# How long English words are, in percent of running text, for 1 to 12 letters.
# Source: Norvig, "English Letter Frequency Counts: Mayzner Revisited", 2012.
_LENGTHS = (3.0, 17.7, 20.5, 14.8, 10.7, 8.4, 7.9, 5.9, 4.4, 3.1, 1.8, 1.8)


def _text(size: int) -> str:
    """Words of random letters, as long as English ones, the same every time."""
    draws = random.Random(20)
    lengths = draws.choices(range(1, len(_LENGTHS) + 1), weights=_LENGTHS, k=5000)
    words = ["".join(draws.choices("etaoinshrdlucmfwypvbgkqjxz", k=length)) for length in lengths]
    return " ".join(draws.choices(words, k=size // 3))[:size]
