"""One truth out of several processes: each publishes its share, whoever is asked adds them up.

Theory of operation. A share is a copy of everything that a process has counted, so adding the
latest of each gives the whole. A process publishes some times a second when something changed; who is
asked answers `SETTLE_S` later, when everybody has published what had ended by then. A reset is a new
epoch on the board: each process ends its interval when it sees that, and publishes it as `ended`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mockllm.clock import Clock
from mockllm.truth.gather import Truth
from mockllm.truth.lateness import LatenessHistogram, PackedLateness
from mockllm.truth.metrics import Metrics, PackedMetrics
from mockllm.truth.stalls import Stalls
from mockllm.truth.statistics import Kept, Pulse, Statistics, Sums
from mockllm.truth.stimulus import Stimulus, StimulusMeter

PUBLISH_S = 0.1
"""How often a process publishes, when something changed."""

SETTLE_S = 0.15
"""After this, what had ended when somebody asked has been published by all."""


class Board(Protocol):
    """Where the processes of one server publish."""

    @property
    def epoch(self) -> tuple[int, float]:
        """How many resets there were, and when the last one was."""
        ...

    def advance(self, now_s: float) -> int:
        """Ask all to begin a new interval; returns its epoch."""
        ...

    def publish(self, place: int, data: bytes) -> None:
        """Replace what stands at a place."""
        ...

    def read(self) -> list[bytes]:
        """What stands at every place that something was published at."""
        ...


class Part(Struct, gc=False):
    """What one process counted in an interval."""

    since_s: float
    until_s: float
    requests: list[tuple[str, str, int, int]]
    prompt_tokens: int
    tokens: int
    chunks: int
    bytes: int
    lateness: PackedLateness
    stalls: Stalls
    stimulus: Any  # as the meter packs it
    slot_s: float

    def add_to(self, sums: Sums) -> None:
        """Count it into `sums`."""
        one = Sums()
        one.requests = {(endpoint, outcome, status): n for endpoint, outcome, status, n in self.requests}
        one.prompt_tokens, one.tokens = self.prompt_tokens, self.tokens
        one.chunks, one.bytes = self.chunks, self.bytes
        one.lateness = LatenessHistogram.unpack(self.lateness)
        one.stalls = self.stalls
        one.slot_s = self.slot_s
        sums.merge(one)


def pack(sums: Sums, since_s: float, until_s: float, stimulus: StimulusMeter | None) -> Part:
    """The part that `sums` and the load are."""
    return Part(
        since_s,
        until_s,
        [(*key, count) for key, count in sums.requests.items()],
        sums.prompt_tokens,
        sums.tokens,
        sums.chunks,
        sums.bytes,
        sums.lateness.pack(),
        sums.stalls,
        None if stimulus is None else stimulus.pack(),
        sums.slot_s,
    )


class Share(Struct, gc=False):
    """Everything that one process has counted.

    Attributes:
        epoch: How many resets it has seen.
        interval: Since the last of them.
        ended: The interval that it ended; None before the first.
        past: All intervals before, without the load.
        last_seq: The greatest number that it gave a request.
    """

    epoch: int
    interval: Part
    ended: Part | None
    past: Part
    metrics: PackedMetrics
    in_flight: int
    peak: int
    waiting: int
    kv_cache_usage: float
    open_connections: int
    kept: Kept
    write_errors: int
    last_seq: int
    last_p99_s: float
    overloaded: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Share).decode


class SharedTruth(Truth):
    """The truth of one process among several; what it is asked for is that of all.

    Args:
        clock: The clock; all processes must read the same one.
        board: Where they publish.
        place: This process's place on it.
        records_at: Where the ledger of all can be read, in words.
        last_seq: Tells the greatest number that a request was given.

    The others are `Truth`'s.
    """

    settle_s = SETTLE_S

    def __init__(self, clock: Clock, board: Board, place: int, *, records_at: str | None, **settings: Any) -> None:
        self._board = board
        self._place = place
        self._epoch = board.epoch[0]
        self._ended: Part | None = None
        self._published: object = None
        self._lost_errors = 0  # of those that are no more
        self.records_at = records_at
        self.last_seq: Callable[[], int] = lambda: 0
        super().__init__(clock, **settings)

    def begin(self) -> None:
        self.reset_at(self._board.epoch[1])
        self._started_s = self._since_s
        self.publish()

    # ---- publishing --------------------------------------------------------------------------

    def publish_if_changed(self) -> None:
        """Publish, unless everybody knows it all."""
        state = (
            self.in_flight,
            self.open_connections(),
            self.waiting(),
            self._board.epoch[0],
            self._ledger.dropped + len(self._ledger),
        )
        if self._pending or self._arrivals or state != self._published:
            self._published = state
            self.publish()

    def publish(self) -> None:
        """Publish this process's share; first end the interval, where somebody asked for that."""
        self._settle()
        epoch, at_s = self._board.epoch
        if epoch != self._epoch:
            self._epoch = epoch
            self._ended = pack(self._sums, self._since_s, at_s, self._stimulus)
            self.reset_at(at_s)
        self._board.publish(self._place, _encode(self._share()))

    def _share(self) -> Share:
        ledger = self._ledger
        return Share(
            epoch=self._epoch,
            interval=pack(self._sums, self._since_s, self._now(), self._stimulus),
            ended=self._ended,
            past=pack(self._past, self._started_s, self._since_s, None),
            metrics=self._metrics.pack(),
            in_flight=self.in_flight,
            peak=self._peak,
            waiting=self.waiting(),
            kv_cache_usage=self.kv_cache_usage(),
            open_connections=self.open_connections(),
            kept=Kept(len(ledger), ledger.dropped, ledger.dropped_times) if self.records_at is None else Kept(),
            write_errors=self.write_errors() + self._lost_errors,
            last_seq=self.last_seq(),
            last_p99_s=self._last_p99_s,
            overloaded=self.overloaded,
        )

    def inherit(self, share: Share) -> None:
        """Take over what a process that is no more had counted."""
        share.past.add_to(self._past)
        share.interval.add_to(self._sums)
        self._metrics.add(share.metrics)
        if share.interval.stimulus is not None:
            self._stimulus.merge(StimulusMeter.unpack(share.interval.stimulus, share.in_flight))
        self._lost_errors += share.write_errors
        self.publish()

    def close(self) -> None:
        """Take in what is left, and publish it."""
        super().close()
        self.publish()

    def pulse(self) -> Pulse:
        """How it goes just now, with all."""
        shares = self.shares()
        parts = [part for share in shares for part in (share.past, share.interval)]
        requests = sum([row[3] for part in parts for row in part.requests])
        tokens = sum([part.tokens for part in parts])
        in_flight = sum([share.in_flight for share in shares])
        late_s = max([share.last_p99_s for share in shares])
        return Pulse(self._now(), requests, tokens, in_flight, late_s, any(share.overloaded for share in shares))

    # ---- reading: of all -----------------------------------------------------------------------

    def shares(self) -> list[Share]:
        """What every process has published."""
        self.publish()
        return [_decode(data) for data in self._board.read()]

    def statistics(self) -> Statistics:
        shares = self.shares()
        return self._of_all(shares, [share.interval for share in shares])

    def total(self) -> Statistics:
        shares = self.shares()
        parts = [part for share in shares for part in (share.past, share.interval)]
        return self._of_all(shares, parts)

    def reset(self) -> Statistics:
        return self.resetting()()

    def resetting(self) -> Callable[[], Statistics]:
        epoch = self._board.advance(self._now())
        self.publish()

        def ended() -> Statistics:
            shares = self.shares()
            # A process that was too busy to see the reset has not ended its interval yet.
            parts = [share.ended if share.epoch >= epoch and share.ended else share.interval for share in shares]
            return self._of_all(shares, parts)

        return ended

    def metrics(self) -> bytes:
        shares = self.shares()
        metrics = Metrics(self._model, self._max_model_len)
        sums = Sums()
        for share in shares:
            metrics.add(share.metrics)
            share.past.add_to(sums)
            share.interval.add_to(sums)
        waiting = sum([share.waiting for share in shares])
        return metrics.render(
            running=sum([share.in_flight for share in shares]) - waiting,
            waiting=waiting,
            kv_cache_usage=max([share.kv_cache_usage for share in shares]),
            open_connections=sum([share.open_connections for share in shares]),
            requests=sums.requests,
            lateness=sums.lateness,
        )

    def _of_all(self, shares: list[Share], parts: list[Part]) -> Statistics:
        sums = Sums()
        for part in parts:
            part.add_to(sums)
        outcomes = sums.by(1)
        lateness = sums.lateness.summary()
        since_s = min([part.since_s for part in parts])
        until_s = max([part.until_s for part in parts])
        in_flight = sum([share.in_flight for share in shares])
        return Statistics(
            since_s=since_s,
            until_s=until_s,
            since_unix_s=since_s + self._wall_offset_s,
            requests=sum(outcomes.values()),
            outcomes=outcomes,
            statuses=sums.by(2),
            in_flight=in_flight,
            prompt_tokens=sums.prompt_tokens,
            tokens=sums.tokens,
            chunks=sums.chunks,
            bytes=sums.bytes,
            lateness=lateness,
            budget_s=self._budget_s,
            trustworthy=lateness.p99_s <= self._budget_s,
            stimulus=_load_of_all(parts, until_s, in_flight, sum([share.peak for share in shares])),
            stalls=sums.stalls,
            ledger=self._kept([share.kept for share in shares]),
            write_errors=sum([share.write_errors for share in shares]),
            slot_s=sums.slot_s,
        )

    def _kept(self, kept: Iterable[Kept]) -> Kept:
        """Records are kept in one place only, and that one says what it keeps."""
        rows = list(kept)
        return Kept(
            sum([k.records for k in rows]), sum([k.dropped for k in rows]), sum([k.dropped_times for k in rows])
        )


class Publishing:
    """An item of the scheduler that publishes what changed, some times a second."""

    def __init__(self, truth: SharedTruth) -> None:
        self._truth = truth
        self.slot = 0.0

    def fire(self, now: float) -> float:
        """Publish; return the next time."""
        self._truth.publish_if_changed()
        return now + PUBLISH_S


def _load_of_all(parts: list[Part], until_s: float, in_flight: int, peak: int) -> Stimulus:
    """The load of all: how arrivals were spaced cannot be told from shares, and the peak is a bound."""
    meters = [StimulusMeter.unpack(part.stimulus) for part in parts if part.stimulus is not None]
    if not meters:
        return Stimulus()
    whole = meters[0]
    for meter in meters[1:]:
        whole.merge(meter)
    summary = whole.summary(until_s, in_flight, peak)
    return msgspec.structs.replace(summary, interarrival_cv=nan) if len(meters) > 1 else summary
