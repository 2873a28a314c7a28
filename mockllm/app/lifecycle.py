"""Whether the server is ready, as `/health` tells probes."""

from __future__ import annotations

from typing import Literal

from mockllm.clock import Clock

State = Literal["starting", "healthy", "draining"]


class Lifecycle:
    """A server's state. Only `/health` depends on it: requests are served in each.

    Args:
        clock: Tells when a start-up delay is over.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready_s = 0.0
        self._draining = False

    def start(self, delay_s: float) -> None:
        """The server listens; it is ready after `delay_s`, as if a model were loading."""
        self._ready_s = self._clock.now() + delay_s if delay_s else 0.0

    def drain(self) -> None:
        """The server was asked to stop."""
        self._draining = True

    @property
    def state(self) -> State:
        """What it is now."""
        if self._draining:
            return "draining"
        return "starting" if self._ready_s and self._clock.now() < self._ready_s else "healthy"
