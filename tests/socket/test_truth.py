"""The ledger against an independent client, over real sockets, and the file it is written to."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import ParamSpec

import httpx
import pytest

from mockllm import Config, ConfigError, ExchangeRecord, Server, ServerThread

CHAT = "/v1/chat/completions"

P = ParamSpec("P")


def on_a_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run an async test."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def stream(client: httpx.AsyncClient, number: int) -> tuple[str, int]:
    """One stream: its request id, and how many tokens came."""
    body = {"model": "m", "messages": [{"role": "user", "content": f"number {number}"}], "stream": True}
    headers = {"x-request-id": f"mine-{number}"}
    tokens = 0
    async with client.stream("POST", CHAT, json=body, headers=headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                tokens += bool(json.loads(line[6:])["choices"][0]["delta"].get("content"))
        assert int(response.headers["x-mockllm-output-tokens"]) == tokens
    return f"mine-{number}", tokens


@on_a_loop
async def test_the_ledger_is_what_a_client_saw(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    config = Config(port=0, ttft_ms=5, itl_ms=1, output_tokens=10, output_tokens_std=4, ledger=str(path))
    async with Server(config) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            seen = dict(await asyncio.gather(*[stream(client, number) for number in range(50)]))
            assert (await client.post(CHAT, json={"model": "m"})).status_code == 400
        records = list(server.ledger)
        statistics = server.statistics()
    streams = [record for record in records if record.stream]
    assert {record.request_id: record.tokens for record in streams} == seen
    assert len(streams) == 50
    assert sorted(record.seq for record in records) == list(range(1, 52))
    assert {record.outcome for record in streams} == {"completed"}
    assert statistics.requests == sum(statistics.outcomes.values()) == 51
    assert statistics.stimulus.arrivals == 51
    assert statistics.lateness.early == 0
    for record in streams:
        assert ordered(record)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["seq"], line["tokens"]) for line in lines] == [(r.seq, r.tokens) for r in records]


def ordered(record: ExchangeRecord) -> bool:
    """Times are in the order in which things happen."""
    times = (record.first_byte_s, record.arrival_s, record.head_s, record.first_token_s, record.last_token_s)
    known = [t for t in (*times, record.end_s) if t is not None]
    return len(known) == 6 and known == sorted(known)


def test_a_thread_s_ledger_can_be_read_from_outside() -> None:
    with ServerThread(Config(port=0, ttft_ms=0, itl_ms=0, output_tokens=3)) as server:
        httpx.post(server.url + CHAT, json={"model": "m", "messages": [{"role": "user", "content": "x"}]})
        (record,) = server.ledger
        assert record.tokens == 3
        assert server.statistics().requests == 1
        assert server.reset_statistics().requests == 1
        assert server.statistics().requests == 0
    assert len(server.ledger) == 1  # also after the end


@on_a_loop
async def test_a_ledger_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    server = Server(Config(port=0, ledger=str(tmp_path / "nowhere" / "ledger.jsonl")))
    with pytest.raises(ConfigError, match="--ledger"):
        await server.start()
    await server.aclose()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always full device")
@on_a_loop
async def test_a_full_disk_is_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "mockllm.ledger")
    server = Server(Config(port=0, ttft_ms=0, itl_ms=0, output_tokens=1, ledger="/dev/full"))
    async with server, httpx.AsyncClient(base_url=server.url) as client:
        for _ in range(2):
            response = await client.post(CHAT, json={"model": "m", "messages": [{"role": "user", "content": "x"}]})
            assert response.status_code == 200
            assert len(server.ledger) > 0  # brings the record to the file
    assert server.statistics().write_errors == 2
    assert len(caplog.records) == 1


@on_a_loop
async def test_a_blocked_loop_is_somebody_elses_stall() -> None:
    async with Server(Config(port=0)) as server:
        await until_beating(server)
        time.sleep(0.2)  # noqa: ASYNC251 - what an embedding program must not do, and this is to be seen
        await until_beating(server)
        stalls = server.statistics().stalls
    assert stalls.outside.count >= 1
    assert stalls.outside.longest_s > 0.1
    assert stalls.own.longest_s < 0.1


async def until_beating(server: Server) -> None:
    """Until a callback of the server's has run once more."""
    meter = server._app.truth.stall_meter
    last_s = meter._free_s
    async with asyncio.timeout(10):
        while meter._free_s == last_s:  # noqa: ASYNC110 - a beat sets no event
            await asyncio.sleep(0.001)


@on_a_loop
async def test_closing_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with Server(Config(port=0, ledger=str(tmp_path / "l"))):
        assert len(set(threading.enumerate()) - before) == 1
    assert set(threading.enumerate()) == before
