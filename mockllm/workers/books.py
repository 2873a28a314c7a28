"""The parent's books: the workers' records, and what dead workers had counted."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mockllm.app import BaseApp, BooksApp
from mockllm.clock import Clock
from mockllm.config import Config
from mockllm.server import Server
from mockllm.service import Service
from mockllm.truth import ExchangeRecord, SharedTruth


def _as_array(kind: Any, value: Any) -> Any:
    return array("d", value)


_decode = msgspec.json.Decoder(ExchangeRecord, dec_hook=_as_array).decode_lines


class Books(SharedTruth):
    """The books of all workers; the arguments are `SharedTruth`'s.

    Attributes:
        keep: Records are kept in memory too, not only passed on to the file.
    """

    keep = False

    def take(self, lines: bytes) -> None:
        """Take in a worker's records.

        Args:
            lines: Whole lines of JSON.
        """
        if self.sink is not None:
            self.sink(lines)
        if self.keep:
            self._ledger.add(_decode(lines), self._with_times)


class BooksServer(Server):
    """Serves the books, on a port of its own.

    Args:
        config: The settings of the workers, but for the address.
        books: What is served.
    """

    def __init__(self, config: Config, books: Books, clock: Clock) -> None:
        self._books = books
        super().__init__(config, clock=clock)

    def _make_app(self, api_keys: Sequence[str], hub_cache: Path | None) -> BaseApp:
        return BooksApp(self.config, self._clock, self._books, api_keys)

    def _observe(self, service: Service) -> None:
        """The books begin with the workers; connections to them are no load."""
