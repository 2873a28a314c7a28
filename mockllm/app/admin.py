"""The server's own records over HTTP: `/mockllm/…` and `/metrics`.

What is asked here is no load: it gets no number, no record, and no place in the statistics.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from urllib.parse import parse_qs

from mockllm.app.replies import JSON, Replies
from mockllm.app.router import Handler, Route
from mockllm.app.script import Script, ScriptState
from mockllm.dialects.overrides import read_script
from mockllm.errors import RequestError
from mockllm.exchange import Exchange, Reply, Request, Timeline
from mockllm.truth import RECORDS, ExchangeRecord, Truth
from mockllm.truth.metrics import CONTENT_TYPE
from mockllm.truth.received import Received, as_json

ADMIN_PREFIX = "/mockllm/"

NDJSON = b"content-type: application/x-ndjson\r\n"

RECORDS_PER_STEP = 16
"""A step of a long answer takes about 0.1 ms, so that due chunks of others come in between."""


class Admin:
    """Handlers of the server's own records.

    Args:
        truth: What the server knows.
        received: The last requests as they came.
        script: Replies that were queued.
        replies: Makes heads.
        open: They need no API key.
        workers: Processes that serve; each would have a script of its own.
    """

    def __init__(
        self, truth: Truth, received: Received, script: Script, replies: Replies, *, open: bool, workers: int
    ) -> None:
        self._truth = truth
        self._received = received
        self._script = script
        self._workers = workers
        self._replies = replies
        self._open = open

    def routes(self) -> list[Route]:
        """The routes under `/mockllm/`."""
        return [
            self._route("/mockllm/stats", "GET", self._stats),
            self._route("/mockllm/reset", "POST", self._reset),
            self._route("/mockllm/requests", "GET", self._requests),
            Route(
                "/mockllm/script",
                {"GET": self._script_state, "POST": self._extend_script, "DELETE": self._clear_script},
                open=self._open,
                recorded=False,
            ),
            Route("/mockllm/requests/", {"GET": self._one}, prefix=True, open=self._open, recorded=False),
        ]

    def metrics_route(self) -> Route:
        """`/metrics`, which scrapers fetch without a key."""
        return Route("/metrics", {"GET": self._metrics}, open=True, recorded=False)

    def _route(self, path: str, method: str, handler: Handler) -> Route:
        return Route(path, {method: handler}, open=self._open, recorded=False)

    def _stats(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        return self._settled(exchange, lambda: RECORDS.encode(self._truth.statistics()))

    def _reset(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        ended = self._truth.resetting()
        return self._settled(exchange, lambda: RECORDS.encode(ended()))

    def _requests(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        self._check_kept()
        query = parse_qs(request.query, keep_blank_values=True)
        after = _whole_number(query, "after")
        records = self._truth.ledger.after(after or 0, _whole_number(query, "limit"))
        lines = self._replies.lines(exchange, NDJSON)
        return Reply(200, lines, _in_steps(records))

    def _check_kept(self) -> None:
        if self._truth.records_at is not None:
            raise RequestError(self._truth.records_at, status=404, type="not_found_error", code="not_found")

    def _one(self, request: Request, exchange: Exchange, rest: str) -> Reply:
        self._check_kept()
        record = self._truth.ledger.find(rest)
        if record is None:
            raise RequestError(
                f"No record of a request {rest[:100]!r}: it is not over, or fell out of the ledger.",
                param="id",
                status=404,
                type="not_found_error",
                code="not_found",
            )
        body = RECORDS.encode(record)
        received = self._received.find(record.seq)
        if received is not None:
            body = body[:-1] + b',"request":' + as_json(received) + b"}"
        return self._replies.whole(exchange, body)

    # ---- the script --------------------------------------------------------------------------

    def _script_state(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        return self._shown(exchange, self._one_script().state())

    def _extend_script(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        self._one_script().add(read_script(request.body), strict=_flag(parse_qs(request.query), "strict"))
        return self._shown(exchange, self._script.state())

    def _clear_script(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        return self._shown(exchange, self._one_script().clear())

    def _one_script(self) -> Script:
        """The server's script.

        Raises:
            RequestError: Every worker would have its own, and no client could say whose it speaks to.
        """
        if self._workers > 1:
            raise RequestError(
                f"A script needs one process, and this server has {self._workers} workers: start it with --workers 1.",
                status=409,
                type="conflict_error",
                code="several_workers",
            )
        return self._script

    def _shown(self, exchange: Exchange, state: ScriptState) -> Reply:
        return self._replies.whole(exchange, RECORDS.encode(state))

    def _metrics(self, request: Request, exchange: Exchange, _rest: str) -> Reply:
        return self._settled(exchange, self._truth.metrics, CONTENT_TYPE)

    def _settled(self, exchange: Exchange, body: Callable[[], bytes], content_type: bytes = JSON) -> Reply:
        """A whole reply that is made when everything that has ended by now is known here."""
        settle_s = self._truth.settle_s
        if not settle_s:
            return self._replies.whole(exchange, body(), content_type=content_type)
        return Reply(200, self._replies.lines(exchange, content_type), Timeline(1, lambda *_: [body()], settle_s))


def _in_steps(records: Sequence[ExchangeRecord]) -> Timeline:
    """Records as JSON lines, some in each step; all steps are due at once."""
    steps = max(1, -(-len(records) // RECORDS_PER_STEP))

    def render(first: int, upto: int) -> list[bytes]:
        part = records[first * RECORDS_PER_STEP : upto * RECORDS_PER_STEP]
        return [RECORDS.encode_lines(part)] if part else []

    return Timeline(steps, render, after_s=array("d", bytes(8 * steps)))


def _flag(query: dict[str, list[str]], name: str) -> bool:
    text = query.get(name, ["false"])[-1].lower()
    if text not in ("true", "1", "false", "0"):
        raise RequestError(f"{name} must be true or false, got {text[:40]!r}.", param=name)
    return text in ("true", "1")


def _whole_number(query: dict[str, list[str]], name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    text = values[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RequestError(f"{name} must be a whole number ≥ 0, got {text[:40]!r}.", param=name)
    return int(text)
