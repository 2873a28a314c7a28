"""The access log: a line a request."""

from __future__ import annotations

import logging

from mockllm.exchange import Exchange

log = logging.getLogger("mockllm.access")


class AccessLog:
    """An observer that logs every request, with level INFO, under `mockllm.access`."""

    def __call__(self, exchange: Exchange) -> None:
        """Log one line: method, path, status, tokens, planned and actual duration, outcome."""
        log.info("%s", describe_exchange(exchange))


def describe_exchange(exchange: Exchange) -> str:
    """One line. Durations run from the request's last byte to the end of the reply."""
    outcome = exchange.outcome
    assert outcome is not None
    parts = [f"{exchange.method or '-'} {exchange.path or '-'}", str(exchange.status or "-")]
    timeline = exchange.timeline
    if exchange.finish_reason:
        parts.append(f"{exchange.tokens} tokens")
    if timeline is not None:
        parts.append(f"planned {timeline.end_s * 1e3:.3f} ms")
    parts.append(f"actual {(exchange.end_s - exchange.arrival_s) * 1e3:.3f} ms")
    parts.append(outcome.value)
    return " ".join(parts)
