"""The bare floor: an asyncio.Protocol that writes canned bytes and parses nothing.

Every read counts as one request. What is left of the cost of a real server is the kernel's and
asyncio's; with `--itl-ms` the deadlines come from mockllm's own scheduler and timer, so that the
distance to this floor is what routing, validation, planning, rendering and records cost.

    python -m bench.reference.floor PORT [--stream] [--tokens N] [--ttft-ms X --itl-ms Y] [--close]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import cast

from mockllm.scheduler import Item, Scheduler
from mockllm.timer import SchedulerTimer
from mockllm.truth.stalls import StallMeter

_ID = "chatcmpl-00000000000000000000000000000000"
_EVENT = (
    f'{{"id":"{_ID}","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    '"system_fingerprint":"fp_floor","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}]}'
)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n%b\r\n"
)


def _chunk(payload: str) -> bytes:
    event = f"data: {payload}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


class Canned:
    """The bytes of every reply: its pieces and what stands before the first and after the last."""

    def __init__(self, tokens: int, stream: bool, close: bool) -> None:
        connection = b"connection: close\r\n" if close else b""
        if stream:
            self.head = _STREAM_HEAD % connection + _chunk(_EVENT % ('"role":"assistant","content":""', "null"))
            self.piece = _chunk(_EVENT % ('"content":" token"', "null"))
            self.tail = _chunk(_EVENT % ("", '"stop"')) + _chunk("[DONE]") + b"0\r\n\r\n"
            self.whole = self.head + self.piece * tokens + self.tail
            return
        body = (
            f'{{"id":"{_ID}","object":"chat.completion","created":1700000000,"model":"m","choices":[{{"index":0,'
            f'"message":{{"role":"assistant","content":"{" token" * tokens}","refusal":null}},"logprobs":null,'
            f'"finish_reason":"stop"}}],"usage":{{"prompt_tokens":10,"completion_tokens":{tokens},'
            f'"total_tokens":{tokens + 10}}}}}'
        ).encode()
        self.head = self.piece = self.tail = b""
        self.whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b" % (
            len(body),
            connection,
            body,
        )


class Floor(asyncio.Protocol):
    """Answers every read with the whole reply at once."""

    def __init__(self, canned: Canned, close: bool) -> None:
        self._whole = canned.whole
        self._close = close

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._whole)
        if self._close:
            self._transport.close()


class PacedFloor(asyncio.Protocol):
    """Answers every read with a stream whose pieces leave when the scheduler says."""

    def __init__(
        self, canned: Canned, tokens: int, ttft_s: float, itl_s: float, scheduler: Scheduler, timer: SchedulerTimer
    ) -> None:
        self._canned = canned
        self._tokens = tokens
        self._ttft_s = ttft_s
        self._itl_s = itl_s
        self._scheduler = scheduler
        self._timer = timer
        self._start_s = 0.0
        self._cursor = 0
        self.slot = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self._scheduler.cancel(self)

    def data_received(self, data: bytes) -> None:
        self._start_s = time.perf_counter() + self._ttft_s
        self._cursor = 0
        if self._scheduler.start(self, self._start_s):
            self._timer.wake_at(self._start_s)

    def fire(self, now: float) -> float | None:
        """Write every piece that is due."""
        canned = self._canned
        cursor = self._cursor
        data = b"" if cursor else canned.head
        while cursor < self._tokens and self._start_s + cursor * self._itl_s <= now:
            data += canned.piece
            cursor += 1
        self._cursor = cursor
        if cursor == self._tokens:
            self._transport.write(data + canned.tail)
            return None
        if data:
            self._transport.write(data)
        return self._start_s + cursor * self._itl_s


def _broken(item: Item, error: Exception) -> None:
    raise error


async def serve(port: int, tokens: int, stream: bool, close: bool, ttft_s: float, itl_s: float) -> None:
    """Serve until cancelled."""
    loop = asyncio.get_running_loop()
    canned = Canned(tokens, stream, close)
    scheduler = Scheduler(time.perf_counter, _broken)
    timer = SchedulerTimer(loop, scheduler, time.perf_counter, StallMeter(time.perf_counter))

    def protocol() -> asyncio.Protocol:
        if itl_s:
            return PacedFloor(canned, tokens, ttft_s, itl_s, scheduler, timer)
        return Floor(canned, close)

    server = await loop.create_server(protocol, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reference.floor")
    parser.add_argument("port", type=int)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--ttft-ms", type=float, default=0.0)
    parser.add_argument("--itl-ms", type=float, default=0.0)
    args = parser.parse_args()
    asyncio.run(serve(args.port, args.tokens, args.stream, args.close, args.ttft_ms / 1e3, args.itl_ms / 1e3))


if __name__ == "__main__":
    main()
