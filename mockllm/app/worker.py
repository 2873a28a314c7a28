"""What a process must know that is one of several behind one address."""

from __future__ import annotations

import re
from collections.abc import Callable
from secrets import token_hex

from msgspec import Struct

from mockllm.clock import Clock
from mockllm.config import Config
from mockllm.truth import Board, SharedTruth, Truth

DIGITS = 3
"""Hex digits of the worker's number in an id."""


class Worker(Struct, frozen=True):
    """One worker.

    Attributes:
        number: From 1.
        of: How many there are.
        board: Where they publish their counts.
        first_seq: Number of its first request; the next one is `of` greater, so that numbers are unique.
        records_at: Where the ledger of all is, in words.
        sink: Gets its records, as JSON lines; None where nobody wants them.
        pem: Key and certificate that were made for this start of all.
        shared: Other workers accept on the same sockets.
    """

    number: int
    of: int
    board: Board
    first_seq: int
    records_at: str
    sink: Callable[[bytes], None] | None = None
    pem: bytes | None = None
    shared: bool = True

    def stem(self) -> str:
        """Digits for its ids, which tell its number."""
        return f"{self.number:0{DIGITS}x}{token_hex(7)}"[:16]

    def elsewhere(self, identity: str) -> str:
        """Which other worker keeps a response, as a sentence after a space; "" if none does."""
        digits = identity.partition("_")[2][:DIGITS]
        number = int(digits, 16) if re.fullmatch("[0-9a-f]+", digits) else 0
        if number == self.number or not 1 <= number <= self.of:
            return ""
        return (
            f" Worker {number} of {self.of} made it and keeps it; this is worker {self.number}."
            " Ask on the connection that it was made on, or start with --workers 1."
        )


def make_truth(config: Config, clock: Clock, worker: Worker | None) -> Truth:
    """The books of a server, or of a worker: those share theirs, and keep no records."""
    settings = {
        "model": config.model,
        "max_model_len": config.max_model_len,
        "ledger_size": config.ledger_size if worker is None else 0,
        "ledger_tokens": config.ledger_tokens,
        "budget_s": config.lateness_budget_ms / 1e3,
    }
    if worker is None:
        return Truth(clock, **settings)  # type: ignore[arg-type]  # the settings above
    truth = SharedTruth(clock, worker.board, worker.number, records_at=worker.records_at, **settings)
    truth.sink = worker.sink
    return truth
