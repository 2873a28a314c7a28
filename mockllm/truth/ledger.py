"""The ledger: one record a request, what was planned and what happened.

All times ending in `_s` are on the server's monotonic clock (`time.perf_counter`, which on Linux is
CLOCK_MONOTONIC and so the same in every process of the machine), but for `arrival_unix_s`, which is
the arrival on the wall clock: both clocks were read together once, at the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

import msgspec
from msgspec import Struct

from mockllm.exchange import Exchange
from mockllm.truth.steps import Steps, TokenTimes

TOKEN_TIMES_BYTES = 64 * 1024 * 1024
"""Most memory for the times of single chunks; the oldest are let go first."""

_MOST_DIGITS = 18  # of a number; Python refuses to read one of thousands


class ExchangeRecord(Struct, frozen=True, gc=False):
    """One request, from its first byte to its end.

    Attributes:
        seq: Its number in this server, by arrival, from 1 without gaps: header `x-mockllm-seq`.
        request_id: The client's `X-Request-Id`, or one of ours where it sent none of up to 512 bytes.
        path: The request's target as sent, up to 1,024 characters of it.
        endpoint: The route's path; "" for none.
        status: The reply's HTTP status.
        outcome: How it ended: `completed`, `client_gone`, `timed_out`, `refused`, `faulted`,
            `aborted_by_shutdown` or `error`.
        close_reason: Why the connection was lost, where that is known.
        fault: What an injected fault did, or "".
        limit_tokens: The request's own limit, or None.
        seed: The request's own seed, or None.
        choices: How many replies were asked for.
        planned_tokens: Tokens of the whole plan, over all choices.
        tokens: Those that were sent.
        chunks: SSE events or body pieces that were sent.
        bytes: Bytes of head and body, framing included.
        first_byte_s: When the first byte of the request was read.
        arrival_s: When its last byte was read: the zero of the plan.
        admitted_s: When it was admitted to be served.
        head_s: When the head had been handed to the kernel; None for never.
        first_token_planned_s, first_token_s: Due and actual time of the first token, or of a whole
            body; None where there was none.
        last_token_planned_s, last_token_s: The same of the last one that was sent.
        end_s: When the kernel had the whole reply, or when it was cut.
        lateness_max_s, lateness_p50_s, lateness_p99_s: Over its chunks, without those that the peer held up.
        peer_waits: How often bytes had to wait because the peer did not take them.
        peer_wait_s: For how long in all.
        peer_delayed: How many chunks were late by that.
        token_times: Times of every chunk, where they are recorded and still kept.
    """

    seq: int
    request_id: str
    method: str
    path: str
    endpoint: str
    model: str
    stream: bool
    status: int
    outcome: str
    close_reason: str
    fault: str
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int
    limit_tokens: int | None
    seed: int | None
    choices: int
    planned_tokens: int
    tokens: int
    chunks: int
    bytes: int
    arrival_unix_s: float
    first_byte_s: float
    arrival_s: float
    admitted_s: float
    head_s: float | None
    first_token_planned_s: float | None
    first_token_s: float | None
    last_token_planned_s: float | None
    last_token_s: float | None
    end_s: float
    lateness_max_s: float
    lateness_p50_s: float
    lateness_p99_s: float
    peer_waits: int
    peer_wait_s: float
    peer_delayed: int
    token_times: TokenTimes | None = None


def make_record(
    exchange: Exchange, tokens: int, wall_offset_s: float, steps: Steps | None, times: TokenTimes | None
) -> ExchangeRecord:
    """The record of an exchange that has ended.

    Args:
        tokens: How many were sent.
        wall_offset_s: Unix time minus monotonic time.
        steps: What its writes say; None where no body was written.
        times: Times of its chunks, where they are wanted.
    """
    arrival_s = exchange.arrival_s
    outcome = exchange.outcome
    assert outcome is not None
    waits = exchange.peer_waits
    if steps is None:
        first_planned = first = last_planned = last = None
        max_s = p50_s = p99_s = 0.0
        peer_delayed = 0
    else:
        first_planned, first = steps.first_planned_s, steps.first_s
        last_planned, last = steps.last_planned_s, steps.last_s
        max_s, p50_s, p99_s = steps.max_s, steps.p50_s, steps.p99_s
        peer_delayed = steps.peer_delayed
    return ExchangeRecord(
        exchange.seq,
        exchange.request_id,
        exchange.method,
        exchange.path,
        exchange.endpoint,
        exchange.model,
        exchange.stream,
        exchange.status,
        outcome._value_,
        exchange.close_reason,
        exchange.fault,
        exchange.finish_reason,
        exchange.prompt_tokens,
        exchange.cached_tokens,
        exchange.limit_tokens,
        exchange.seed,
        exchange.choices,
        exchange.tokens,
        tokens,
        exchange.chunks_sent,
        exchange.bytes_sent,
        arrival_s + wall_offset_s,
        exchange.first_byte_s,
        arrival_s,
        exchange.admitted_s,
        exchange.head_s or None,
        first_planned,
        first,
        last_planned,
        last,
        exchange.end_s,
        max_s,
        p50_s,
        p99_s,
        0 if waits is None else len(waits) // 2,
        0.0 if waits is None else sum(waits[1::2]) - sum(waits[::2]),
        peer_delayed,
        times,
    )


class Ledger(Sequence[ExchangeRecord]):
    """The last records, in the order in which the requests ended.

    Args:
        size: How many records are kept.
        token_times_bytes: Most memory for times of chunks.

    Attributes:
        dropped: How many records fell out.
        dropped_times: How many records lost their `token_times`, while kept.
    """

    def __init__(self, size: int, token_times_bytes: int = TOKEN_TIMES_BYTES) -> None:
        self._records: deque[ExchangeRecord] = deque(maxlen=size)
        self._room_bytes = token_times_bytes
        self._times_bytes = 0
        self._stripped = 0  # so many of the oldest records have no times any more
        self._newest_dropped = 0
        self.dropped = 0
        self.dropped_times = 0

    def add(self, records: list[ExchangeRecord], with_times: bool) -> None:
        """For the owner: append records; with `with_times`, they may hold times of chunks."""
        ring = self._records
        size = ring.maxlen or 0
        over = len(ring) + len(records) - size
        if over > 0:
            for record in islice(ring, over):
                self._forget(record)
            for record in records[: max(0, over - len(ring))]:
                self._newest_dropped = max(self._newest_dropped, record.seq)
            self._stripped = max(0, self._stripped - over)
            self.dropped += over
        ring.extend(records)
        if with_times:
            for record in records[-size:] if size else ():
                if record.token_times is not None:
                    self._times_bytes += record.token_times.nbytes
            self._strip()

    def _forget(self, record: ExchangeRecord) -> None:
        if record.seq > self._newest_dropped:
            self._newest_dropped = record.seq
        if record.token_times is not None:
            self._times_bytes -= record.token_times.nbytes

    def _strip(self) -> None:
        """Let the oldest times go until the rest fits."""
        ring = self._records
        while self._times_bytes > self._room_bytes:
            record = ring[self._stripped]
            if record.token_times is not None:
                self._times_bytes -= record.token_times.nbytes
                ring[self._stripped] = msgspec.structs.replace(record, token_times=None)
                self.dropped_times += 1
            self._stripped += 1

    # ---- reading -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[ExchangeRecord]:
        return iter(tuple(self._records))

    @overload
    def __getitem__(self, index: int) -> ExchangeRecord: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ExchangeRecord, ...]: ...

    def __getitem__(self, index: int | slice) -> ExchangeRecord | tuple[ExchangeRecord, ...]:
        return self._records[index] if isinstance(index, int) else tuple(self._records)[index]

    def after(self, seq: int, limit: int | None = None) -> tuple[ExchangeRecord, ...]:
        """Records in the order of their ends, behind the one with number `seq`.

        Poll with the number of the last record that you have: nothing is missed or repeated, also
        when a request that came earlier ended later. 0 begins with the oldest. A number that has no
        record yet gives those with greater numbers; one that fell out gives all.
        """
        records = tuple(self._records)
        start = 0
        if seq > 0:
            start = next((i for i in range(len(records), 0, -1) if records[i - 1].seq == seq), 0)
            if start == 0 and seq > self._newest_dropped:
                records = tuple([record for record in records if record.seq > seq])
        return records[start : None if limit is None else start + limit]

    def find(self, id: str) -> ExchangeRecord | None:
        """The newest record with this request id, else the one with this number."""
        newest_first = tuple(self._records)[::-1]
        found = next((record for record in newest_first if record.request_id == id), None)
        if found is None and id.isdecimal() and len(id) <= _MOST_DIGITS:
            seq = int(id)
            found = next((record for record in newest_first if record.seq == seq), None)
        return found
