"""`GET /metrics` in Prometheus' text form, under vLLM's names and with vLLM's buckets.

Every value is measured at the socket, none is taken from the plan. Times to and between tokens come
from streams alone: of a whole reply only the end can be seen.

Sources: https://prometheus.io/docs/instrumenting/exposition_formats/ (text form 0.0.4);
vLLM's `vllm/v1/metrics/loggers.py` (names, help texts, buckets).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mockllm.truth.lateness import LatenessHistogram

CONTENT_TYPE = b"content-type: text/plain; version=0.0.4; charset=utf-8\r\n"

TTFT_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TPOT_S = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
LATENESS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

FINISHED_REASONS = ("stop", "length", "abort")


def steps_1_2_5(most: int) -> tuple[float, ...]:
    """1, 2, 5, 10, … up to `most`: vLLM's buckets for counts of tokens."""
    edges: list[float] = []
    scale = 1
    while scale <= most:
        edges += [float(scale * factor) for factor in (1, 2, 5) if scale * factor <= most]
        scale *= 10
    return tuple(edges)


class Histogram:
    """A Prometheus histogram. A value equal to an edge counts below it (`le`)."""

    __slots__ = ("counts", "edges", "sum")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count one value `times` times."""
        self.counts[bisect_left(self.edges, value)] += times
        self.sum += value * times

    def observe_sorted(self, values: Sequence[float]) -> None:
        """Count ascending values: a search for each edge that they reach, not for each value."""
        total = len(values)
        if not total:
            return
        edges, counts = self.edges, self.counts
        number = bisect_left(edges, values[0])
        done = 0
        while done < total:
            upto = bisect_right(values, edges[number], done) if number < len(edges) else total
            counts[number] += upto - done
            done = upto
            number += 1
        self.sum += sum(values)

    def observe_many(self, values: list[float] | list[int]) -> None:
        """Count values in any order; the list is sorted in place."""
        values.sort()
        self.observe_sorted(values)

    def cumulative(self) -> list[int]:
        """Counts of values ≤ each edge, and of all."""
        total = 0
        return [total := total + count for count in self.counts]


class PackedMetrics(Struct, gc=False):
    """The figures as they go from one process to another; histograms in the order of `Metrics._histograms`."""

    histograms: list[tuple[list[int], float]]
    finished: dict[str, int]
    prompt_tokens_total: int
    generation_tokens_total: int


class Metrics:
    """The figures behind `/metrics`, since the start of the server.

    Args:
        model_name: The label of every `vllm:` metric.
        max_model_len: Greatest bucket of token counts.
    """

    def __init__(self, model_name: str, max_model_len: int) -> None:
        self._label = f'model_name="{escape(model_name)}"'
        tokens = steps_1_2_5(max_model_len)
        self.ttft = Histogram(TTFT_S)
        self.itl = Histogram(TPOT_S)
        self.tpot = Histogram(TPOT_S)
        self.e2e = Histogram(REQUEST_S)
        self.queue = Histogram(REQUEST_S)
        self.prefill = Histogram(REQUEST_S)
        self.decode = Histogram(REQUEST_S)
        self.prompt_tokens = Histogram(tokens)
        self.generation_tokens = Histogram(tokens)
        self.max_tokens = Histogram(tokens)
        self.finished = dict.fromkeys(FINISHED_REASONS, 0)
        self.prompt_tokens_total = 0
        self.generation_tokens_total = 0

    def pack(self) -> PackedMetrics:
        """For another process."""
        histograms = [(histogram.counts, histogram.sum) for _, _, histogram in self._histograms()]
        return PackedMetrics(histograms, self.finished, self.prompt_tokens_total, self.generation_tokens_total)

    def add(self, packed: PackedMetrics) -> None:
        """Count another process's figures in."""
        for (_, _, histogram), (counts, total) in zip(self._histograms(), packed.histograms, strict=True):
            histogram.counts = [a + b for a, b in zip(histogram.counts, counts, strict=True)]
            histogram.sum += total
        for reason, count in packed.finished.items():
            self.finished[reason] += count
        self.prompt_tokens_total += packed.prompt_tokens_total
        self.generation_tokens_total += packed.generation_tokens_total

    def render(
        self,
        *,
        running: int,
        waiting: int,
        kv_cache_usage: float,
        open_connections: int,
        requests: Mapping[tuple[str, str, int], int],
        lateness: LatenessHistogram,
    ) -> bytes:
        """The text form.

        Args:
            running: Requests that are being served.
            waiting: Requests that wait to be admitted.
            kv_cache_usage: 0 … 1.
            open_connections: Client connections.
            requests: How many requests ended, by endpoint, outcome and status.
            lateness: Of all chunks.
        """
        lines: list[str] = []
        label = self._label
        for name, help, value in (
            ("num_requests_running", "Number of requests in model execution batches.", running),
            ("num_requests_waiting", "Number of requests waiting to be processed.", waiting),
            ("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kv_cache_usage),
        ):
            lines += _metric(f"vllm:{name}", "gauge", help, [("", label, value)])
        for name, help, total in (
            ("prompt_tokens_total", "Number of prefill tokens processed.", self.prompt_tokens_total),
            ("generation_tokens_total", "Number of generation tokens processed.", self.generation_tokens_total),
        ):
            lines += _metric(f"vllm:{name}", "counter", help, [("", label, total)])
        finished = [("", f'{label},finished_reason="{reason}"', n) for reason, n in self.finished.items()]
        lines += _metric("vllm:request_success_total", "counter", "Count of successfully processed requests.", finished)
        for name, help, histogram in self._histograms():
            rows = _rows(histogram.edges, histogram.cumulative(), histogram.sum, label)
            lines += _metric(f"vllm:{name}", "histogram", help, rows)
        late = _rows(LATENESS_S, [*lateness.upto(LATENESS_S), lateness.count], lateness.sum_s, "")
        lines += _metric("mockllm_lateness_seconds", "histogram", "How late chunks were written.", late)
        ended = [
            ("", f'endpoint="{escape(endpoint)}",outcome="{outcome}",status="{status}"', count)
            for (endpoint, outcome, status), count in sorted(requests.items())
        ]
        lines += _metric("mockllm_requests_total", "counter", "Requests that have ended.", ended)
        lines += _metric("mockllm_open_connections", "gauge", "Open client connections.", [("", "", open_connections)])
        return ("\n".join(lines) + "\n").encode()

    def _histograms(self) -> Iterator[tuple[str, str, Histogram]]:
        phase = "Histogram of time spent in {} phase for request."
        yield "time_to_first_token_seconds", "Histogram of time to first token in seconds.", self.ttft
        yield "inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", self.itl
        yield (
            "request_time_per_output_token_seconds",
            "Histogram of time_per_output_token_seconds per request.",
            self.tpot,
        )
        yield "e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", self.e2e
        yield "request_queue_time_seconds", phase.format("WAITING"), self.queue
        yield "request_prefill_time_seconds", phase.format("PREFILL"), self.prefill
        yield "request_decode_time_seconds", phase.format("DECODE"), self.decode
        yield "request_prompt_tokens", "Number of prefill tokens processed.", self.prompt_tokens
        yield "request_generation_tokens", "Number of generation tokens processed.", self.generation_tokens
        yield "request_params_max_tokens", "Histogram of the max_tokens request parameter.", self.max_tokens


Row = tuple[str, str, float]
"""Suffix of the name, labels, value."""


def _metric(name: str, kind: str, help: str, rows: Iterable[Row]) -> list[str]:
    lines = [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in rows:
        lines.append(f"{name}{suffix}{{{labels}}} {value!r}" if labels else f"{name}{suffix} {value!r}")
    return lines


def _rows(edges: Sequence[float], cumulative: Sequence[int], total: float, label: str) -> list[Row]:
    comma = label and label + ","
    names = [*map(repr, edges), "+Inf"]
    rows: list[Row] = [("_bucket", f'{comma}le="{edge}"', count) for edge, count in zip(names, cumulative, strict=True)]
    return [*rows, ("_sum", label, total), ("_count", label, cumulative[-1])]


def escape(value: str) -> str:
    """A label's value."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
