"""What the server knows about what it did: ledger, statistics, self-judgement, metrics."""

from mockllm.truth.access import AccessLog
from mockllm.truth.gather import RECORDS, Truth
from mockllm.truth.lateness import Lateness
from mockllm.truth.ledger import ExchangeRecord, Ledger
from mockllm.truth.shares import PUBLISH_S, Board, Publishing, SharedTruth
from mockllm.truth.stalls import Heartbeat, Holds, StallMeter, Stalls
from mockllm.truth.statistics import Pulse, Statistics, describe, verdict
from mockllm.truth.steps import TokenTimes
from mockllm.truth.stimulus import Second, Stimulus

__all__ = [
    "RECORDS",
    "AccessLog",
    "Board",
    "ExchangeRecord",
    "Heartbeat",
    "Holds",
    "Lateness",
    "Ledger",
    "Pulse",
    "PUBLISH_S",
    "Publishing",
    "Second",
    "SharedTruth",
    "StallMeter",
    "Stalls",
    "Statistics",
    "Stimulus",
    "TokenTimes",
    "Truth",
    "describe",
    "verdict",
]
