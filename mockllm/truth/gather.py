"""Gathers what has ended into the ledger, the statistics and the metrics.

An exchange that has ended is only put on a list; every 64th, or when somebody reads, the list is
gone through at once. So a request costs the loop a few microseconds, in pieces short enough not
to delay a due chunk, and a token nothing but its share of that.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable

import msgspec

from mockllm.clock import Clock
from mockllm.exchange import End, Exchange
from mockllm.truth.lateness import LatenessHistogram, Tally, quantile
from mockllm.truth.ledger import TOKEN_TIMES_BYTES, ExchangeRecord, Ledger, make_record
from mockllm.truth.metrics import Metrics
from mockllm.truth.stalls import StallMeter
from mockllm.truth.statistics import Kept, Pulse, RequestCounts, Statistics, Sums, merge_stalls
from mockllm.truth.steps import Steps, measure, token_times
from mockllm.truth.stimulus import StimulusMeter

log = logging.getLogger("mockllm.truth")

BATCH_REQUESTS = 64
BATCH_WRITES = 2_000
"""A batch takes about 0.3 ms."""

LIVE_LAGS = 100
"""So many wake-ups in a second say something about its 99th percentile."""


def _as_list(value: object) -> list[float]:
    if isinstance(value, array):
        return value.tolist()
    raise NotImplementedError(f"no JSON for {type(value)}")


RECORDS = msgspec.json.Encoder(enc_hook=_as_list)
"""Encodes records and statistics."""


class Truth:
    """What the server knows about itself.

    Args:
        clock: The server's clock; its two times are read together here, once.
        model: The model's name in the metrics.
        max_model_len: Greatest bucket of token counts in the metrics.
        ledger_size: How many records are kept.
        ledger_tokens: Keep the times of every chunk too.
        budget_s: The p99 lateness up to which the timing can be trusted.
        token_times_bytes: Most memory for times of chunks.

    Attributes:
        overloaded: The lateness of this interval, or of the last second, is over the budget.
        in_flight: Generation requests that have not ended.
        waiting: Tells how many requests wait to be admitted.
        kv_cache_usage: Tells how full the cache model is, 0 … 1.
        open_connections: Tells how many connections are open.
        slot_s: Tells the width of the scheduler's grid.
        sink: Gets the lines of each batch of records, where they go to a file.
        write_errors: Tells how many lines the file did not take.
        settle_s: So long after a request has ended, what is read here counts it.
        records_at: Where the records are kept, in words; None for here.
    """

    settle_s = 0.0
    records_at: str | None = None

    def __init__(
        self,
        clock: Clock,
        *,
        model: str,
        max_model_len: int,
        ledger_size: int,
        ledger_tokens: bool,
        budget_s: float,
        token_times_bytes: int = TOKEN_TIMES_BYTES,
    ) -> None:
        self._now = clock.now
        self._wall_offset_s = clock.wall() - clock.now()
        self._ledger = Ledger(ledger_size, token_times_bytes)
        self._with_times = ledger_tokens
        self._model = model
        self._max_model_len = max_model_len
        self._metrics = Metrics(model, max_model_len)
        self._budget_s = budget_s
        self.stall_meter = StallMeter(clock.now)
        self._pending: list[Exchange] = []
        self._pending_writes = 0
        self._arrivals: list[float] = []
        self._second = Tally()
        self._since_s = clock.now()
        self._sums = Sums()
        self._past = Sums()
        self._stimulus = StimulusMeter(self._since_s)
        self._started_s = self._since_s
        self._peak = 0
        self._last_p99_s = 0.0
        self.overloaded = False
        self.in_flight = 0
        self.waiting: Callable[[], int] = lambda: 0
        self.kv_cache_usage: Callable[[], float] = lambda: 0.0
        self.open_connections: Callable[[], int] = lambda: 0
        self.slot_s: Callable[[], float] = lambda: 0.0
        self.sink: Callable[[bytes], None] | None = None
        self.write_errors: Callable[[], int] = lambda: 0

    def begin(self) -> None:
        """The server starts now."""
        self.reset()
        self._started_s = self._since_s

    # ---- the hot path ------------------------------------------------------------------------

    def arrived(self, exchange: Exchange) -> None:
        """A request to a generation endpoint arrived."""
        exchange.in_flight = True
        self._arrivals.append(exchange.arrival_s)
        self.in_flight = in_flight = self.in_flight + 1
        if in_flight > self._peak:
            self._peak = in_flight

    def finished(self, exchange: Exchange) -> None:
        """An exchange has ended; those without a number are none of the harness's."""
        if not exchange.seq:
            return
        if exchange.in_flight:
            self.in_flight -= 1
        self._pending.append(exchange)
        self._pending_writes += len(exchange.writes_s)
        if len(self._pending) >= BATCH_REQUESTS or self._pending_writes > BATCH_WRITES:
            self.fold()

    def fold(self) -> None:
        """Go through what has ended since the last time."""
        batch, self._pending = self._pending, []
        self._pending_writes = 0
        arrivals, self._arrivals = self._arrivals, []
        self._stimulus.arrived(arrivals)
        if not batch:
            return
        self._stimulus.ended([exchange.end_s for exchange in batch if exchange.in_flight])
        records = [self._fold_one(exchange) for exchange in batch]
        self._count(records)
        self._ledger.add(records, self._with_times)
        if self.sink is not None:
            self.sink(RECORDS.encode_lines(records))

    def _fold_one(self, exchange: Exchange) -> ExchangeRecord:
        steps = times = None
        tokens = 0
        if exchange.steps_sent and exchange.finish_reason:
            steps = measure(exchange, self._second)
            tokens = _tokens_sent(exchange)
            if self._with_times:
                times = token_times(exchange)
            if exchange.stream:
                self._observe_stream(exchange, steps, tokens)
        return make_record(exchange, tokens, self._wall_offset_s, steps, times)

    def _observe_stream(self, exchange: Exchange, steps: Steps, tokens: int) -> None:
        metrics = self._metrics
        metrics.ttft.observe(steps.first_s - exchange.arrival_s)
        if steps.gaps_s:
            metrics.itl.observe_sorted(steps.gaps_s)
        if steps.together:
            metrics.itl.observe(0.0, steps.together)
        if exchange.outcome is End.COMPLETED:
            decode_s = steps.last_s - steps.first_s
            metrics.prefill.observe(steps.first_s - exchange.admitted_s)
            metrics.decode.observe(decode_s)
            if exchange.steps_sent > 1:
                metrics.tpot.observe(decode_s / (exchange.steps_sent - 1))

    def _count(self, records: list[ExchangeRecord]) -> None:
        sums = self._sums
        requests = sums.requests
        for record in records:
            key = (record.endpoint, record.outcome, record.status)
            requests[key] = requests.get(key, 0) + 1
        sums.chunks += sum([record.chunks for record in records])
        sums.bytes += sum([record.bytes for record in records])
        planned = [record for record in records if record.finish_reason]
        if not planned:
            return
        metrics = self._metrics
        prompts = [record.prompt_tokens for record in planned]
        tokens = [record.tokens for record in planned]
        prompt_sum, token_sum = sum(prompts), sum(tokens)
        sums.prompt_tokens += prompt_sum
        sums.tokens += token_sum
        metrics.prompt_tokens_total += prompt_sum
        metrics.generation_tokens_total += token_sum
        for record in planned:
            if record.outcome != "completed":
                reason = "abort"
            else:
                # A tool call ends by itself: an engine calls that a stop.
                reason = "length" if record.finish_reason == "length" else "stop"
            metrics.finished[reason] += 1
        metrics.prompt_tokens.observe_many(prompts)
        metrics.generation_tokens.observe_many(tokens)
        metrics.max_tokens.observe_many([r.limit_tokens for r in planned if r.limit_tokens is not None])
        metrics.e2e.observe_many([record.end_s - record.arrival_s for record in planned])
        metrics.queue.observe_many([record.admitted_s - record.arrival_s for record in planned])

    # ---- once a second -----------------------------------------------------------------------

    def each_second(self, now_s: float) -> None:
        """Judge the last second; a warning says when its lateness was over the budget."""
        self.fold()
        self._sums.slot_s = max(self._sums.slot_s, self.slot_s())
        last = self._second.drain()
        self._sums.lateness.merge(last)
        self._take_stalls()
        lags_s = sorted(self.stall_meter.take_lags())
        p99_s = last.quantiles(0.99)[0]
        if self.in_flight and len(lags_s) >= LIVE_LAGS:  # streams that have not ended yet count by these
            p99_s = max(p99_s, quantile(lags_s, 0.99))
        self._last_p99_s = p99_s
        late = p99_s > self._budget_s
        if late:
            log.warning(
                "The server is late: p99 lateness of the last second %.1f ms, the budget is %g ms; "
                "do not trust timings taken now.",
                p99_s * 1e3,
                self._budget_s * 1e3,
            )
        self.overloaded = late or self._over_budget(self._sums.lateness)

    def _over_budget(self, lateness: LatenessHistogram) -> bool:
        return lateness.quantiles(0.99)[0] > self._budget_s

    def _take_stalls(self) -> None:
        self._sums.stalls = merge_stalls(self._sums.stalls, self.stall_meter.take())

    def _settle(self) -> None:
        """Bring the sums of the interval up to now."""
        self.fold()
        self._sums.lateness.merge(self._second.drain())
        self._take_stalls()

    # ---- reading -----------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The records, up to now."""
        self.fold()
        return self._ledger

    def statistics(self) -> Statistics:
        """This interval's statistics."""
        self._settle()
        return self._describe(self._sums, self._since_s)

    def total(self) -> Statistics:
        """Statistics since the start, over all intervals; the stimulus is this interval's."""
        self._settle()
        sums = Sums()
        sums.merge(self._past)
        sums.merge(self._sums)
        return self._describe(sums, self._started_s)

    def pulse(self) -> Pulse:
        """How it goes just now."""
        self.fold()
        past, now = self._past, self._sums
        requests = sum(past.requests.values()) + sum(now.requests.values())
        return Pulse(self._now(), requests, past.tokens + now.tokens, self.in_flight, self._last_p99_s, self.overloaded)

    def reset(self) -> Statistics:
        """Begin a new interval. The ledger and the metrics stay.

        Returns:
            The statistics of the interval that ends.
        """
        ended = self.statistics()
        self.reset_at(ended.until_s)
        return ended

    def resetting(self) -> Callable[[], Statistics]:
        """Begin a new interval; what is returned gives the statistics of the one that ends, `settle_s` later."""
        ended = self.reset()
        return lambda: ended

    def reset_at(self, since_s: float) -> None:
        """Begin a new interval at `since_s`."""
        self._settle()
        self._past.merge(self._sums)
        self._sums = Sums()
        self._since_s = since_s
        self._stimulus = StimulusMeter(self._since_s, self.in_flight)
        self._peak = self.in_flight
        self.overloaded = False

    def metrics(self) -> bytes:
        """The body of `GET /metrics`."""
        self._settle()
        requests: RequestCounts = dict(self._past.requests)
        for key, count in self._sums.requests.items():
            requests[key] = requests.get(key, 0) + count
        lateness = LatenessHistogram()
        lateness.merge(self._past.lateness)
        lateness.merge(self._sums.lateness)
        waiting = self.waiting()
        return self._metrics.render(
            running=self.in_flight - waiting,
            waiting=waiting,
            kv_cache_usage=self.kv_cache_usage(),
            open_connections=self.open_connections(),
            requests=requests,
            lateness=lateness,
        )

    def close(self) -> None:
        """Take in what is left."""
        self._settle()
        self.stall_meter.close()

    def _describe(self, sums: Sums, since_s: float) -> Statistics:
        now_s = self._now()
        outcomes = sums.by(1)
        ledger = self._ledger
        lateness = sums.lateness.summary()
        return Statistics(
            since_s=since_s,
            until_s=now_s,
            since_unix_s=since_s + self._wall_offset_s,
            requests=sum(outcomes.values()),
            outcomes=outcomes,
            statuses=sums.by(2),
            in_flight=self.in_flight,
            prompt_tokens=sums.prompt_tokens,
            tokens=sums.tokens,
            chunks=sums.chunks,
            bytes=sums.bytes,
            lateness=lateness,
            budget_s=self._budget_s,
            trustworthy=lateness.p99_s <= self._budget_s,
            stimulus=self._stimulus.summary(now_s, self.in_flight, self._peak),
            stalls=sums.stalls,
            ledger=Kept(len(ledger), ledger.dropped, ledger.dropped_times),
            write_errors=self.write_errors(),
            slot_s=sums.slot_s,
        )


def _tokens_sent(exchange: Exchange) -> int:
    timeline = exchange.timeline
    assert timeline is not None
    sent = exchange.steps_sent
    if exchange.token_steps is not None:
        sent = min(sent, exchange.token_steps)
    elif sent == timeline.steps:
        return exchange.tokens
    if exchange.choice_tokens is None:
        return min(sent, exchange.tokens)
    return sum([min(sent, tokens) for tokens in exchange.choice_tokens])
