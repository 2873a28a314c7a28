"""The waist of the server: what passes between its layers.

A `Request` comes out of `http/`, the app answers with a `Reply`, whose `Timeline` the
scheduler plays; what was planned and what happened gathers in one `Exchange`, which the
observers get when it has ended.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

NO_HEADERS: Mapping[bytes, bytes] = {}

MAX_STEPS = 256
"""Most steps in one write, so that a long overdue reply does not hold the loop (bench: about 0.2 ms)."""


class Request(Struct, frozen=True, gc=False):
    """One whole HTTP request.

    Attributes:
        method: `GET`, `POST`, …; methods are case-sensitive (RFC 9110 §9.1).
        target: The path as sent, still percent-encoded, without query and fragment.
        query: What followed the `?`, without it.
        headers: Lower-case names; the values of a repeated name are joined with `, `
            (RFC 9110 §5.3).
        body: The decoded body.
        first_byte_s: When the first byte of the request was read.
        arrival_s: When its last byte was read: the zero of its timeline.
        http10: The request was HTTP/1.0: no chunked reply.
        keep_alive: The connection may carry another request after this one.
    """

    method: str
    target: str
    query: str
    headers: Mapping[bytes, bytes]
    body: bytes
    first_byte_s: float
    arrival_s: float
    http10: bool = False
    keep_alive: bool = True


class End(StrEnum):
    """How an exchange ended; every request that had a complete head ends in exactly one."""

    COMPLETED = "completed"
    CLIENT_GONE = "client_gone"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    FAULTED = "faulted"
    ABORTED = "aborted_by_shutdown"
    ERROR = "error"


class Timeline(Struct, gc=False):
    """When the pieces of a reply are due, and how they are made.

    Step k (0 … steps-1) is due at `arrival + offset_s + after_s[k]`.

    Attributes:
        steps: How many steps there are, ≥ 1.
        render: `render(i, j)` makes the events of steps i … j-1 (SSE events, or pieces of a
            whole body), each of which becomes one HTTP chunk; an empty list is fine.
        offset_s: Due time of the first step after arrival, ≥ 0.
        after_s: Non-decreasing offsets of the steps from the first one, beginning with 0. May
            be longer than `steps`, since equal spacings are shared between streams.
        preamble: Events that leave with the head.
        burst: Most steps in one write; fewer where a step takes more than a plain chunk.
        prepare: What is to be done before the first step, a little at each `next`; None for nothing.
    """

    steps: int
    render: Callable[[int, int], list[bytes]]
    offset_s: float = 0.0
    after_s: Sequence[float] = (0.0,)
    preamble: list[bytes] = []
    burst: int = MAX_STEPS
    prepare: Iterator[None] | None = None

    @property
    def end_s(self) -> float:
        """Offset of the last step from arrival."""
        return self.offset_s + self.after_s[self.steps - 1]


class Wire(Struct):
    """What the connection does to a reply that it should not: an injected fault.

    Attributes:
        end: What comes in place of the reply's proper end: `close` (FIN), `reset` (RST), or `hold`
            (nothing, until the client leaves); "" for its proper end.
        end_s: Earliest time of that, in seconds after the arrival.
        delay_s: How long after the last byte.
        stop_bytes: Only so many bytes are sent, the head included; then comes the end.
        stop_after_head: Only the head is.
        unfinished: A chunked body does not get its last chunk.
        head_s: The head's bytes are spread over so long.
        piece_bytes, gap_s: The reply is sent in pieces of so many bytes, so long one after the other; 0 for whole.
        step_bytes: For `stop_bytes`: sizes of the framed steps, each with all before it, filled while rendering.
    """

    end: Literal["", "close", "reset", "hold"] = ""
    end_s: float = 0.0
    delay_s: float = 0.0
    stop_bytes: int | None = None
    stop_after_head: bool = False
    unfinished: bool = False
    head_s: float = 0.0
    piece_bytes: int = 0
    gap_s: float = 0.0
    step_bytes: list[int] | None = None


class Reply(Struct, gc=False):
    """What the app answers: the head's own lines, and a timeline for the body.

    Attributes:
        status: 200–599.
        headers: Ready header lines, each ended by CRLF, without the framing headers
            (`Content-Length`, `Transfer-Encoding`, `Connection`, `Date`), which the protocol adds.
        timeline: The body.
        length_bytes: Length of the whole body; None for a stream.
        head_at_arrival: The head leaves at once, not with the first step.
        close: Close the connection after the reply.
        linger: Then go on reading for a moment, because the client may still be sending.
        wire: What goes wrong on the wire, or None.
    """

    status: int
    headers: bytes
    timeline: Timeline
    length_bytes: int | None = None
    head_at_arrival: bool = False
    close: bool = False
    linger: bool = False
    wire: Wire | None = None


class Exchange:
    """One request's record while it lives; the parts fill in what they know.

    The app writes the facts of the request and the plan, the playback the writes, the protocol
    the ends. It is handed to the observers once, when `end_s` and `outcome` are set; from then
    on nobody changes it. Times are `Clock.now()` seconds.

    Attributes:
        seq: Number of the request in this server, from 1 without gaps; 0 for questions about the server itself.
        request_id: The client's `X-Request-Id`, or one of ours.
        endpoint: The route's path, e.g. `/v1/chat/completions`; `""` for none.
        limit_tokens: The request's own limit.
        choices: How many replies were asked for.
        tokens: Tokens planned, over all choices.
        choice_tokens: The same of each choice, where there are several.
        in_flight: It counts as load: a generation endpoint was asked.
        timeline: The plan: steps and due offsets.
        head_s: When the reply's head was handed over; 0 for never.
        writes_s: When each write of body steps had been handed to the kernel; ascending.
        writes_upto: How many steps were out after that write; parallel to `writes_s`.
        peer_waits: When bytes began to wait in our buffer because the peer did not take them, and
            when the kernel had them all: start and end of each wait in turn; None for no wait.
        steps_sent: Steps of the timeline that were written.
        asked_fault: The fault that the request's overrides or the script ask for, as plain data.
        fault: What a fault did, in words, or "".
        token_steps: How many steps have tokens, where a fault cut the timeline short.
        body: The request's body, where it is kept.
    """

    __slots__ = (
        "admitted_s",
        "arrival_s",
        "asked_fault",
        "body",
        "bytes_sent",
        "cached_tokens",
        "choice_tokens",
        "choices",
        "chunks_sent",
        "close_reason",
        "end_s",
        "endpoint",
        "fault",
        "finish_reason",
        "first_byte_s",
        "head_s",
        "in_flight",
        "limit_tokens",
        "method",
        "model",
        "outcome",
        "path",
        "peer_waits",
        "prompt_tokens",
        "request_id",
        "seed",
        "seq",
        "status",
        "steps_sent",
        "stream",
        "timeline",
        "token_steps",
        "tokens",
        "writes_s",
        "writes_upto",
    )

    def __init__(self, seq: int, method: str, path: str, first_byte_s: float, arrival_s: float) -> None:
        self.seq = seq
        self.method = method
        self.path = path
        self.first_byte_s = first_byte_s
        self.arrival_s = arrival_s
        self.admitted_s = arrival_s
        self.request_id = ""
        self.endpoint = ""
        self.model = ""
        self.stream = False
        self.status = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.limit_tokens: int | None = None
        self.seed: int | None = None
        self.choices = 1
        self.tokens = 0
        self.choice_tokens: list[int] | None = None
        self.in_flight = False
        self.finish_reason = ""
        self.timeline: Timeline | None = None
        self.head_s = 0.0
        self.writes_s: array[float] = array("d")
        self.writes_upto: array[int] = array("L")
        self.peer_waits: list[float] | None = None
        self.steps_sent = 0
        self.chunks_sent = 0
        self.bytes_sent = 0
        self.end_s = 0.0
        self.outcome: End | None = None
        self.close_reason = ""
        self.asked_fault: Any = None
        self.fault = ""
        self.token_steps: int | None = None
        self.body: bytes | None = None
