"""The report as one HTML page: a table and two plots, drawn as SVG, with nothing to load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import floor, log10

from mockllm.calibrate.rows import HEADINGS, Report, Row, cells, conclusion

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 340, 64, 48, 16, 96
_COLOURS = {"p50": "#2a78b5", "p99": "#d1495b", "p99.9": "#8d5a97"}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p.facts { color: #555; }
table { border-collapse: collapse; } th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
tr.held td:last-child { color: #1a7f37; } tr:not(.held) td:last-child { color: #b42318; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #444; }
"""


def to_html(report: Report) -> str:
    """The whole page."""
    rows = sorted(report.rows, key=lambda row: row.streams)
    facts = (
        f"TTFT {report.ttft_ms:g} ms, ITL {report.itl_ms:g} ms, {report.tokens} tokens a reply; "
        f"budget {report.budget_ms:g} ms at p99. {report.machine}; {report.versions}; {report.placement}."
    )
    head = "".join([f"<th>{escape(text)}</th>" for text in HEADINGS])
    body = "".join(
        [
            f'<tr class="{row.verdict}">' + "".join([f"<td>{escape(text)}</td>" for text in cells(row)]) + "</tr>"
            for row in rows
        ]
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>mockllm: calibration</title>'
        f"<style>{_STYLE}</style><h1>What this machine can hold</h1><p><b>{escape(conclusion(report))}</b></p>"
        f'<p class="facts">{escape(facts)}</p><table><tr>{head}</tr>{body}</table>'
        f"<h2>Lateness against streams</h2>{_against_streams(rows, report.budget_ms)}"
        f"<h2>Distribution at the knee</h2>{_distribution(rows, report)}</html>\n"
    )


class _Axis:
    """A logarithmic axis over positive values."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self._low, self._high = log10(low), log10(max(high, low * 1.01))
        self._start, self._stop = start, stop

    def at(self, value: float) -> float:
        share = (log10(max(value, 10**self._low)) - self._low) / (self._high - self._low)
        return self._start + share * (self._stop - self._start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times the powers of ten that lie on the axis."""
        decades = range(floor(self._low), floor(self._high) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
        return [value for value in values if self._low <= log10(value) <= self._high]


def _against_streams(rows: Sequence[Row], budget_ms: float) -> str:
    most = max([row.p999_ms for row in rows] + [budget_ms])
    least = max(0.01, min([row.p50_ms for row in rows]))
    x = _Axis(rows[0].streams, rows[-1].streams, _LEFT, _WIDTH - _RIGHT)
    y = _Axis(least, most, _HEIGHT - _BOTTOM, _TOP)
    parts = [_frame(x, y, "streams", "lateness, ms")]
    limit = y.at(budget_ms)
    parts.append(f'<path d="M{_LEFT} {limit:.1f}H{_WIDTH - _RIGHT}" stroke="#999" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{_LEFT + 6}" y="{limit - 5:.1f}">budget</text>')
    values: dict[str, Callable[[Row], float]] = {
        "p50": lambda row: row.p50_ms,
        "p99": lambda row: row.p99_ms,
        "p99.9": lambda row: row.p999_ms,
    }
    for name, value in values.items():
        points = [(x.at(row.streams), y.at(value(row))) for row in rows]
        parts.append(_line(points, _COLOURS[name]))
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{_COLOURS[name]}"/>' for a, b in points]
        parts.append(f'<text x="{points[-1][0] + 6:.1f}" y="{points[-1][1] + 4:.1f}">{name}</text>')
    return _svg(parts)


def _distribution(rows: Sequence[Row], report: Report) -> str:
    """CDFs of the last load that was held and the first that was not."""
    held = [row for row in rows if row.streams == report.held_streams]
    shown = held[-1:] + [row for row in rows if row.streams > report.held_streams][:1]
    shown = [row for row in shown or rows[:1] if row.cdf_ms[-1] > 0]
    if not shown:
        return "<p>No token arrived.</p>"
    x = _Axis(
        max(0.01, min([row.cdf_ms[1] for row in shown])), max([row.cdf_ms[-1] for row in shown]), _LEFT, _WIDTH - _RIGHT
    )
    parts = [_frame(x, None, "lateness, ms", "share of tokens")]
    for row, colour in zip(shown, ("#1a7f37", "#b42318"), strict=False):
        last = len(row.cdf_ms) - 1
        points = [
            (x.at(value), _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * number / last)
            for number, value in enumerate(row.cdf_ms)
        ]
        parts.append(_line(points, colour))
        place = f'x="{_WIDTH - _RIGHT + 8}" y="{_TOP + 4 + 16 * shown.index(row)}"'
        parts.append(f'<text {place} style="fill:{colour}">{row.streams:,} streams</text>')
    return _svg(parts)


def _frame(x: _Axis, y: _Axis | None, x_name: str, y_name: str) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#444"/>']
    for value in x.ticks():
        at = x.at(value)
        parts.append(f'<path d="M{at:.1f} {bottom}v5" stroke="#444"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>')
    if y is None:
        marks = [(f"{share:g}", bottom - (bottom - _TOP) * share) for share in (0, 0.25, 0.5, 0.75, 1)]
    else:
        marks = [(f"{value:g}", y.at(value)) for value in y.ticks()]
    for text, at in marks:
        parts.append(f'<path d="M{_LEFT - 5} {at:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 9}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{x_name}</text>')
    middle = (_TOP + bottom) / 2
    turned = f'transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" text-anchor="middle" {turned}>{y_name}</text>')
    return "".join(parts)


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = "L".join([f"{a:.1f} {b:.1f}" for a, b in points])
    return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'
