"""One run of one load on one server, and the rows that runs add up to."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from statistics import median

import msgspec
from msgspec import Struct

from bench import load
from bench.machine import Cores, busy_s, kept_awake
from bench.probe import chat_body
from bench.targets import Running
from bench.wire import ReplyReader, WrongReplyError, post

SAME_BYTES = 0.02
MORE_BYTES = 40
"""How far the mean length of the replies under load may be from the one that was checked: numbers and the head's
`x-mockllm-overloaded` make some of them longer."""


class Settings(Struct, frozen=True):
    """How much is measured."""

    cores: Cores
    repeats: int = 7
    seconds: int = 1
    paced_repeats: int = 5
    paced_seconds: float = 4.0


class Sample(Struct):
    """One run.

    Attributes:
        cpu_us: CPU µs of the server per unit (request or token).
        rate: Units per second.
        foreign: Share of the server's core that others took meanwhile.
        errors: What went wrong, or "".
    """

    cpu_us: float
    rate: float
    foreign: float
    errors: str = ""


class Figures(Struct):
    """All runs of one target for one figure."""

    unit: str
    runs: list[float]

    @property
    def median(self) -> float:
        return median(self.runs)

    @property
    def best(self) -> float:
        return min(self.runs)

    def __str__(self) -> str:
        if not self.runs:
            return "–"
        text = f"{number(self.median)} {self.unit}"
        return f"{text} ({number(min(self.runs))}–{number(max(self.runs))})" if len(self.runs) > 1 else text


class Row(Struct):
    """One line of the table.

    Attributes:
        work: What was done.
        goal: What was to be reached; "" for none.
        figures: All runs by name; the first is what the row is about.
        ratio: Against the references, in words.
        reached: Whether the goal was reached; None where there is none.
        errors: Any makes the row invalid.
        notes: What else there is to say.
    """

    work: str
    goal: str
    figures: dict[str, Figures]
    ratio: str = ""
    reached: bool | None = None
    errors: list[str] = []
    notes: list[str] = []

    @property
    def verdict(self) -> str:
        if self.errors:
            return "invalid"
        if self.reached is None:
            return ""
        return "reached" if self.reached else "missed"


def number(value: float) -> str:
    """Three significant digits, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Window:
    """CPU time of a server, and what others took of its core, from the making to `close`."""

    def __init__(self, server: Running, core: int) -> None:
        self._server = server
        self._core = core
        self._cpu_s = server.cpu_s
        self._busy_s = busy_s(core)
        self._began_s = time.perf_counter()

    def close(self) -> tuple[float, float, float]:
        """Seconds elapsed, CPU seconds of the server, share of the core that others took."""
        took_s = time.perf_counter() - self._began_s
        cpu_s = self._server.cpu_s - self._cpu_s
        return took_s, cpu_s, max(0.0, (busy_s(self._core) - self._busy_s - cpu_s) / took_s)


def checked_reply_bytes(port: int, body: bytes, stream: bool, tokens: int, *lines: str) -> int:
    """Ask once, check the reply whole, and return its length.

    Raises:
        WrongReplyError: It is not the reply that was asked for.
    """
    reader = ReplyReader(stream)
    with socket.create_connection(("127.0.0.1", port), 30.0) as sock:
        sock.sendall(post(load.PATH, body, *lines))
        while not reader.complete:
            data = sock.recv(1 << 18)
            if not data:
                raise WrongReplyError("closed within the reply")
            reader.feed(data)
    if stream and reader.tokens != tokens:
        raise WrongReplyError(f"{reader.tokens} tokens in place of {tokens}")
    if not stream:
        usage = msgspec.json.decode(reader.body, type=_Whole).usage
        if usage.completion_tokens != tokens:
            raise WrongReplyError(f"{usage.completion_tokens} tokens in place of {tokens}")
    return reader.bytes_read


class _Usage(Struct):
    completion_tokens: int


class _Whole(Struct):
    usage: _Usage


class Case(Struct):
    """One of the loads that a row compares.

    Attributes:
        name: For the table.
        server: Who is asked.
        tokens: Length of the reply.
        per_token: Count CPU time per token, not per request.
        prompt: Text of the prompt.
    """

    name: str
    server: Running
    tokens: int
    stream: bool = False
    per_token: bool = False
    own_ids: bool = False
    reconnect: bool = False
    connections: int = 64
    prompt: str = "Say something."


def saturate(case: Case, settings: Settings, reply_bytes: int) -> Sample:
    """Load a server for a second and see what it cost; `reply_bytes` is the length of the reply that was checked."""
    work = load.Load(
        case.server.port,
        chat_body(case.tokens, case.stream, case.prompt),
        case.stream,
        case.connections,
        settings.seconds,
        case.own_ids,
        case.reconnect,
    )
    window = Window(case.server, settings.cores.server)
    outcome = load.run(work)
    _, cpu_s, foreign = window.close()
    errors = ", ".join([f"{count} × {kind}" for kind, count in outcome.errors.items() if count])
    if not outcome.requests:
        return Sample(0.0, 0.0, foreign, errors or "no reply")
    mean_bytes = outcome.bytes_read / outcome.requests
    # The replies that were cut off by the end of the run are in the bytes but not in the count.
    cut = case.connections / outcome.requests
    if not errors and abs(mean_bytes - reply_bytes) > MORE_BYTES + reply_bytes * (SAME_BYTES + cut):
        errors = f"replies of {mean_bytes:.0f} bytes where {reply_bytes} were expected"
    count = outcome.requests * (case.tokens if case.per_token else 1)
    return Sample(cpu_s / count * 1e6, count / outcome.duration_s, foreign, errors)


def compare(cases: Sequence[Case], settings: Settings, repeats: int | None = None) -> dict[str, list[Sample]]:
    """Run all cases in turn, again and again, after one round that does not count."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    lengths: dict[str, int] = {}
    for case in cases:
        lines = ("connection: close",) if case.reconnect else ()
        body = chat_body(case.tokens, case.stream, case.prompt)
        lengths[case.name] = checked_reply_bytes(case.server.port, body, case.stream, case.tokens, *lines)
    with kept_awake(settings.cores.load):
        for turn in range((repeats or settings.repeats) + 1):
            for case in cases:
                sample = saturate(case, settings, lengths[case.name])
                if turn or sample.errors:
                    samples[case.name].append(sample)
    return samples


def errors_of(samples: dict[str, list[Sample]]) -> list[str]:
    """What went wrong, and in whose run."""
    return [f"{name}: {sample.errors}" for name, runs in samples.items() for sample in runs if sample.errors]


def cpu_figures(samples: dict[str, list[Sample]], unit: str) -> dict[str, Figures]:
    """CPU µs of every run, by name."""
    return {name: Figures(unit, [sample.cpu_us for sample in runs]) for name, runs in samples.items()}
