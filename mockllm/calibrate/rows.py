"""What one load came to: a row of the table, in text, JSON and HTML alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from mockllm.calibrate.client import Load, Measured

CLIENT_LIMIT = 0.9
"""Share of a core from which on the client's own lateness is suspected."""

CDF_POINTS = 200


class Row(Struct, frozen=True):
    """One load. Lateness in milliseconds, as the client saw it.

    Attributes:
        streams: How many at once.
        tokens_per_s: Tokens that arrived; `asked_per_s` is what the streams should have sent.
        server_cpu: Share of one core that the server used; None where the system does not tell.
        client_cpu: The same of the client.
        early: Tokens that came before their time.
        cdf_ms: Lateness at evenly spaced shares, from 0 to 1.
        verdict: `held`, `late`, `errors`, or `client` where the client was the limit.
    """

    streams: int
    tokens_per_s: float
    asked_per_s: float
    server_cpu: float | None
    client_cpu: float
    errors: int
    early: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    cdf_ms: tuple[float, ...]
    verdict: str

    @property
    def held(self) -> bool:
        """The machine holds this load."""
        return self.verdict == "held"


class Report(Struct, frozen=True):
    """A whole calibration."""

    machine: str
    versions: str
    placement: str
    ttft_ms: float
    itl_ms: float
    tokens: int
    budget_ms: float
    rows: tuple[Row, ...]
    held_streams: int


def make_row(load: Load, streams: int, measured: Measured, server_cpu: float | None, budget_ms: float) -> Row:
    """Judge a measurement.

    Args:
        load: What each stream asked for.
        streams: How many.
        measured: What the client saw.
        server_cpu: Share of a core that the server used.
        budget_ms: The p99 lateness that is allowed.
    """
    ordered = sorted([late * 1e3 for late in measured.lateness_s])
    p99_ms = _quantile(ordered, 0.99)
    if measured.errors or not ordered:
        verdict = "errors"
    elif p99_ms <= budget_ms:
        verdict = "held"
    else:
        verdict = "client" if measured.client_cpu > CLIENT_LIMIT else "late"
    return Row(
        streams=streams,
        tokens_per_s=len(ordered) / measured.seconds,
        asked_per_s=streams * load.tokens / load.request_s if load.request_s else 0.0,
        server_cpu=server_cpu,
        client_cpu=measured.client_cpu,
        errors=measured.errors,
        early=measured.early,
        p50_ms=_quantile(ordered, 0.5),
        p99_ms=p99_ms,
        p999_ms=_quantile(ordered, 0.999),
        max_ms=ordered[-1] if ordered else 0.0,
        cdf_ms=tuple([_quantile(ordered, number / CDF_POINTS) for number in range(CDF_POINTS + 1)]),
        verdict=verdict,
    )


def _quantile(ordered: Sequence[float], q: float) -> float:
    return ordered[max(0, ceil(q * len(ordered)) - 1)] if ordered else 0.0


HEADINGS = ("streams", "tokens/s", "CPU", "client CPU", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "verdict")
WIDTHS = (8, 9, 6, 11, 8, 8, 9, 8, 9)


def cells(row: Row) -> tuple[str, ...]:
    """A row as texts, one for each of `HEADINGS`."""
    cpu = "?" if row.server_cpu is None else f"{row.server_cpu:.0%}"
    verdict = {
        "held": "held",
        "late": "too late",
        "client": "client!",
        "errors": f"{row.errors} errors" if row.errors else "no tokens",
    }[row.verdict]
    late = (row.p50_ms, row.p99_ms, row.p999_ms, row.max_ms)
    return (
        f"{row.streams:,}",
        f"{row.tokens_per_s:,.0f}",
        cpu,
        f"{row.client_cpu:.0%}",
        *[f"{value:.2f}" for value in late],
        verdict,
    )


def line(texts: Sequence[str]) -> str:
    """Texts as one line of the table."""
    return " ".join([text.rjust(width) for text, width in zip(texts, WIDTHS, strict=True)]).rstrip()


def conclusion(report: Report) -> str:
    """The sentence under the table."""
    if not report.held_streams:
        return (
            f"Not even {min([row.streams for row in report.rows]):,} streams stay within {report.budget_ms:g} ms (p99)."
        )
    limit = ""
    if all(row.held for row in report.rows):
        limit = "; more were not tried"
    elif any(row.verdict == "client" for row in report.rows):
        limit = "; beyond that the client was the limit, the server may hold more"
    rate = next(row.tokens_per_s for row in reversed(report.rows) if row.streams == report.held_streams)
    return f"{report.held_streams:,} streams ({rate:,.0f} tokens/s) stay within {report.budget_ms:g} ms (p99){limit}."
