"""What faults and rate limits cost a request that meets none: `python -m bench.faults`.

Times `App.handle` (decode, plan, reply; no socket) on one streamed chat request, with nothing
configured, with what concerns other requests, and with what draws or counts. Rows take turns, so
that the machine's moods hit all alike; each figure is CPU time, the best of many rounds. The first row is
an app that does not even look for faults.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

import msgspec

from mockllm.app import App
from mockllm.clock import FakeClock
from mockllm.config import Config
from mockllm.exchange import Request

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Tell me. " * 60}], "stream": True, "max_tokens": 16}

SETTINGS: dict[str, dict[str, Any]] = {
    "nothing configured": {},
    "--no-overrides": {"overrides": False},
    "a fault for another model": {"faults": [{"kind": "reset", "model": "other"}]},
    "a fault with probability 0": {"faults": [{"kind": "reset", "probability": 0}]},
    "a fault on every 2**62th request": {"faults": [{"kind": "reset", "nth": 2**62}]},
    "--rpm and --tpm": {"rpm": 10**12, "tpm": 10**15},
}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="turns of every row (default: 60)")
    parser.add_argument("--requests", type=int, default=150, help="requests in a turn (default: 150)")
    args = parser.parse_args()
    rows = {"no look for faults at all": without_faults(), **{name: handle(more) for name, more in SETTINGS.items()}}
    best = dict.fromkeys(rows, float("inf"))
    for _ in range(args.rounds):
        for name, once in rows.items():
            best[name] = min(
                best[name], timeit.timeit(once, timer=time.process_time, number=args.requests) / args.requests
            )
    print(f"{platform.platform()}, {platform.processor() or platform.machine()}, Python {sys.version.split()[0]}")
    base_s = best["nothing configured"]
    for name, seconds in best.items():
        print(f"{name:34} {seconds * 1e6:7.2f} µs  {(seconds - base_s) * 1e6:+6.2f}")


def handle(more: dict[str, Any]) -> Callable[[], object]:
    """One request through the whole app."""
    app = App(msgspec.convert(more, Config), FakeClock())
    request = _request()
    return lambda: app.handle(request, app.exchange(request))


def without_faults() -> Callable[[], object]:
    """One request through an app that does not look for faults."""
    app = App(Config(), FakeClock())
    app._spoiled = lambda route, handler, request, exchange, rest: handler(request, exchange, rest)  # type: ignore[method-assign] # it is the point
    request = _request()
    return lambda: app.handle(request, app.exchange(request))


def _request() -> Request:
    headers = {b"host": b"x", b"content-type": b"application/json", b"authorization": b"Bearer sk-x"}
    return Request("POST", CHAT, "", headers, msgspec.json.encode(BODY), 1.0, 1.0)


if __name__ == "__main__":
    main()
