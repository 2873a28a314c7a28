"""Rows about replies without delay: what a request or a token costs."""

from __future__ import annotations

from bench import load, targets
from bench.measure import Case, Figures, Row, Sample, Settings, compare, cpu_figures, errors_of

TOKENS = 16
STREAM_TOKENS = 128


def _row(
    work: str, samples: dict[str, list[Sample]], ours: str, reference: str, share: float, unit: str = "µs/request"
) -> Row:
    """A row whose goal is a share of a reference's CPU time; without a share it has none."""
    figures = {ours: cpu_figures(samples, unit)[ours]}
    figures |= {name: runs for name, runs in cpu_figures(samples, unit).items() if "mockllm" not in name}
    row = Row(work, f"≤ 1/{share:g} of fastapi" if share else "", figures, errors=errors_of(samples))
    mine = figures[ours].median
    row.ratio = ", ".join([_against(name, runs, mine) for name, runs in figures.items() if name != ours])
    if share and reference in figures:
        row.reached = mine * share <= figures[reference].median
    rate = sorted([sample.rate for sample in samples[ours]])[len(samples[ours]) // 2]
    row.notes.append(f"{rate:,.0f} {unit.partition('/')[2]}s a second on one core")
    return row


def _against(name: str, runs: Figures, mine: float) -> str:
    other = runs.median
    return f"1/{other / mine:.1f} of {name}" if other > mine else f"{mine / other:.2f} × {name}"


def _references(*floor_flags: str) -> list[targets.Target]:
    found = [targets.floor(*floor_flags)]
    if targets.has_fastapi():
        found.insert(0, targets.fastapi())
    if targets.has_guidellm():
        found.append(targets.guidellm())
    return found


def whole(settings: Settings) -> list[Row]:
    """Whole replies of 16 tokens over 64 keep-alive connections, in three ways."""
    plain = targets.mockllm("--no-fast-parser", name="mockllm h11")
    with targets.running([targets.mockllm(), plain, *_references(f"--tokens={TOKENS}")], settings.cores) as servers:
        ours, h11, *references = servers
        cases = [
            Case("mockllm", ours, TOKENS),
            Case("mockllm own ids", ours, TOKENS, own_ids=True),
            Case("mockllm h11", h11, TOKENS),
            Case("mockllm own prompts", ours, TOKENS, prompt=f"Say something about {load.MARK}."),
            *[Case(server.name, server, TOKENS) for server in references],
        ]
        samples = compare(cases, settings)
    return [
        _row("whole reply, 16 tokens, same head", samples, "mockllm", "fastapi", 8),
        _row("the same, own X-Request-Id each", samples, "mockllm own ids", "fastapi", 7),
        _row("the same through plain h11", samples, "mockllm h11", "fastapi", 2),
        _row("the same, own prompt each: nothing known from before", samples, "mockllm own prompts", "fastapi", 0),
    ]


def stream(settings: Settings) -> list[Row]:
    """Streams of 128 tokens without delay over 64 keep-alive connections."""
    references = _references("--stream", f"--tokens={STREAM_TOKENS}")
    with targets.running([targets.mockllm(), *references], settings.cores) as servers:
        cases = [Case(server.name, server, STREAM_TOKENS, stream=True, per_token=True) for server in servers]
        samples = compare(cases, settings)
    return [_row("stream of 128 tokens, no delay", samples, "mockllm", "fastapi", 20, "µs/token")]


def reconnect(settings: Settings) -> list[Row]:
    """Whole replies, each over a connection of its own."""
    with targets.running([targets.mockllm(), *_references("--close", f"--tokens={TOKENS}")], settings.cores) as servers:
        samples = compare([Case(server.name, server, TOKENS, reconnect=True) for server in servers], settings)
    return [_row("new connection each request", samples, "mockllm", "fastapi", 4)]
