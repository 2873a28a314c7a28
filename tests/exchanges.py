"""Makes exchanges by hand, as the protocol leaves them behind."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from mockllm.clock import FakeClock
from mockllm.exchange import End, Exchange, Timeline
from mockllm.truth import Truth

ARRIVAL_S = 1000.0


def make_truth(clock: FakeClock | None = None, **options: object) -> Truth:
    """A `Truth` on a fake clock, with small defaults."""
    given: dict[str, object] = {
        "model": "m",
        "max_model_len": 1000,
        "ledger_size": 100,
        "ledger_tokens": False,
        "budget_s": 0.005,
    }
    return Truth(clock or FakeClock(ARRIVAL_S), **(given | options))  # type: ignore[arg-type] # tests pass what they mean


def stream(
    seq: int,
    writes: Sequence[tuple[float, int]],
    *,
    after_s: Sequence[float] = (0.0, 0.25, 0.5, 0.75),
    offset_s: float = 1.0,
    arrival_s: float = ARRIVAL_S,
    outcome: End = End.COMPLETED,
    waits: list[float] | None = None,
) -> Exchange:
    """A streamed reply of `len(after_s)` tokens.

    Args:
        writes: (seconds after the arrival, steps out by then) of each write.
        waits: Starts and ends of waits for the peer, in seconds after the arrival.
    """
    exchange = Exchange(seq, "POST", "/v1/chat/completions", arrival_s - 0.001, arrival_s)
    exchange.request_id = f"id-{seq}"
    exchange.endpoint = "/v1/chat/completions"
    exchange.model = "m"
    exchange.stream = True
    exchange.status = 200
    exchange.prompt_tokens = 7
    exchange.tokens = len(after_s)
    exchange.finish_reason = "stop"
    exchange.timeline = Timeline(len(after_s), lambda first, upto: [], offset_s, after_s)
    exchange.writes_s = array("d", [arrival_s + at for at, _ in writes])
    exchange.writes_upto = array("L", [upto for _, upto in writes])
    exchange.steps_sent = writes[-1][1] if writes else 0
    exchange.chunks_sent = exchange.steps_sent
    exchange.bytes_sent = 100 * exchange.steps_sent
    exchange.end_s = exchange.writes_s[-1] if writes else arrival_s + 0.5
    exchange.head_s = arrival_s
    exchange.outcome = outcome
    exchange.peer_waits = None if waits is None else [arrival_s + at for at in waits]
    return exchange


def whole(seq: int, late_s: float = 0.0, *, arrival_s: float = ARRIVAL_S, tokens: int = 16) -> Exchange:
    """A whole reply, due one second after its arrival."""
    exchange = stream(seq, [(1.0 + late_s, 1)], after_s=(0.0,), arrival_s=arrival_s)
    exchange.stream = False
    exchange.tokens = tokens
    return exchange


def error(seq: int, status: int = 400, *, arrival_s: float = ARRIVAL_S) -> Exchange:
    """A refusal."""
    exchange = Exchange(seq, "POST", "/v1/chat/completions", arrival_s, arrival_s)
    exchange.endpoint = "/v1/chat/completions"
    exchange.status = status
    exchange.timeline = Timeline(1, lambda first, upto: [])
    exchange.writes_s, exchange.writes_upto, exchange.steps_sent = array("d", [arrival_s]), array("L", [1]), 1
    exchange.end_s = arrival_s
    exchange.outcome = End.REFUSED
    return exchange
