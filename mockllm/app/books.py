"""The application of a process that serves the books of several workers, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.app.admin import Admin
from mockllm.app.auth import Keys
from mockllm.app.base import BaseApp
from mockllm.app.router import Route
from mockllm.app.script import Script
from mockllm.clock import Clock
from mockllm.config import Config
from mockllm.generation.ids import Ids
from mockllm.truth import Truth
from mockllm.truth.received import Received


class BooksApp(BaseApp):
    """Answers `/mockllm/…`, `/metrics` and `/health`.

    Args:
        config: The settings of the workers.
        clock: Tells the wall time that stands in replies.
        truth: The books of all.
        api_keys: The keys of `config.api_key_file`.
    """

    def __init__(self, config: Config, clock: Clock, truth: Truth, api_keys: Sequence[str] = ()) -> None:
        keys = (*config.api_key, *api_keys)
        super().__init__(truth, clock, cors=config.cors, ids=Ids(), observers=(), keys=Keys(keys) if keys else None)
        admin = Admin(truth, Received(0), Script(), self._replies, open=not config.admin_auth, workers=config.workers)
        routes = [
            Route("/", {"GET": self._index}, open=True, recorded=False),
            Route("/health", {"GET": self._health}, open=True, recorded=False),
            admin.metrics_route(),
            *admin.routes(),
        ]
        for route in routes:
            self._router.add(route)

    def finished(self, exchange: object) -> None:
        """What is asked here is no load, whatever it was."""
