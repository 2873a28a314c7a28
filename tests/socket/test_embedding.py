"""The server inside somebody else's process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import signal
import socket
import ssl
import threading
import urllib.error
import urllib.request
import warnings
from pathlib import Path
from typing import Any

import openai
import pytest

from mockllm import Config, Server, ServerThread

UNVERIFIED = ssl._create_unverified_context()
FAST: dict[str, Any] = {"port": 0, "ttft_ms": 0.0, "itl_ms": 0.0}


def get(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=10) as reply:
        body: dict[str, Any] = json.load(reply)
        return body


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def ask(server: Server | ServerThread, text: str = "Hello") -> str:
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any") as client:
        reply = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return reply.choices[0].message.content or ""


def test_a_server_in_the_running_loop_serves_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        tasks = asyncio.all_tasks()
        async with Server(Config(**FAST)) as server:
            assert server.url == f"http://127.0.0.1:{server.port}"
            assert server.base_url == server.url + "/v1"
            assert await ask(server)
        assert asyncio.all_tasks() == tasks
        await server.aclose()

    before = descriptors()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        asyncio.run(main())
        gc.collect()
    assert descriptors() == before


def test_several_servers_in_one_loop_answer_alike_and_close_apart() -> None:
    async def main() -> None:
        async with Server(Config(**FAST)) as one:
            async with Server(Config(**FAST)) as two, Server(Config(**FAST, seed=1)) as three:
                assert len({one.port, two.port, three.port}) == 3
                a, b, c = await asyncio.gather(ask(one), ask(two), ask(three))
                assert a == b != c
            assert await ask(one) == a

    asyncio.run(main())


def test_it_serves_on_given_sockets_and_closes_them() -> None:
    async def main() -> None:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [sock.getsockname()[1] for sock in sockets]
        async with Server(Config(**FAST), sockets=sockets) as server:
            assert server.port == ports[0]
            for port in ports:
                body = await asyncio.to_thread(get, f"http://127.0.0.1:{port}/health")
                assert body["status"] == "healthy"
        assert all(sock.fileno() == -1 for sock in sockets)

    asyncio.run(main())


def test_it_touches_neither_signals_nor_logging() -> None:
    async def main() -> None:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        root = list(logging.getLogger().handlers)
        async with Server(Config(**FAST)):
            assert {number: signal.getsignal(number) for number in handlers} == handlers
            assert logging.getLogger().handlers == root
            assert logging.getLogger("mockllm").handlers == []

    asyncio.run(main())


def test_a_port_in_use_is_an_oserror_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with Server(Config(**FAST)) as server:
            second = Server(Config(**FAST | {"port": server.port}))
            before = descriptors()
            with pytest.raises(OSError, match="in use"):
                await second.start()
            await second.aclose()
            assert descriptors() == before

    asyncio.run(main())


def test_before_the_start_it_has_no_address() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        _ = Server(Config(**FAST)).url


def test_closing_lets_a_running_reply_finish() -> None:
    async def main() -> None:
        async with Server(Config(port=0, ttft_ms=0.0, itl_ms=2.0, output_tokens=50)) as server:
            client = openai.AsyncOpenAI(base_url=server.base_url, api_key="any")
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            closing = asyncio.ensure_future(server.aclose())
            chunks = [chunk async for chunk in stream]
            await closing
            await client.close()
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert len(chunks) == 52

    asyncio.run(main())


def test_closing_cuts_what_takes_too_long_without_pretending_an_end() -> None:
    async def main() -> None:
        async with Server(Config(port=0, ttft_ms=0.0, itl_ms=10_000.0)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            body = b'{"messages":[{"role":"user","content":"Hello"}],"stream":true}'
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await reader.readuntil(b"assistant")
            await server.aclose(timeout_s=0.0)
            rest = b""
            with contextlib.suppress(ConnectionResetError):
                while data := await reader.read(65536):
                    rest += data
            assert b"[DONE]" not in rest
            assert not rest.endswith(b"0\r\n\r\n")
            writer.close()

    asyncio.run(main())


def test_a_thread_server_serves_and_leaves_no_thread() -> None:
    threads = threading.active_count()
    before = descriptors()
    with ServerThread(Config(**FAST)) as server:
        with openai.OpenAI(base_url=server.base_url, api_key="any") as client:
            reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
        assert reply.choices[0].message.content
        assert get(server.url + "/health")["status"] == "healthy"
    server.close()
    assert threading.active_count() == threads
    assert descriptors() == before


def test_a_thread_server_that_cannot_bind_raises_where_it_was_started() -> None:
    threads = threading.active_count()
    with ServerThread(Config(**FAST)) as server, pytest.raises(OSError, match="in use"):
        ServerThread(Config(**FAST | {"port": server.port})).start()
    assert threading.active_count() == threads


@pytest.mark.mockllm(output_tokens=3)
def test_the_fixture_runs_a_server_with_the_markers_settings(mockllm_server: ServerThread) -> None:
    with openai.OpenAI(base_url=mockllm_server.base_url, api_key="any") as client:
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 3


def test_the_fixture_is_there_for_any_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import urllib.request

        def test_health(mockllm_server):
            with urllib.request.urlopen(mockllm_server.url + "/health") as reply:
                assert reply.status == 200
        """
    )
    # By its module's name, whether or not an installed mockllm has brought it in by its own.
    result = pytester.runpytest("-p", "no:mockllm", "-p", "mockllm.pytest_plugin")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("tls", [False, True])
def test_on_uvloop_it_serves_streams_and_closes_while_clients_connect(tls: bool) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with Server(Config(**FAST, self_signed_certs=tls)) as server:
            context = UNVERIFIED if tls else None
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname="localhost" if tls else None
            )
            body = b'{"messages":[{"role":"user","content":"Hello"}],"stream":true}'
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            assert (await reader.readuntil(b"\r\n0\r\n\r\n")).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            for turns in range(8):  # the listener closes at each stage of a connection's making
                async with Server(Config(**FAST, self_signed_certs=tls)) as other:
                    sockets = [socket.create_connection(("127.0.0.1", other.port)) for _ in range(3)]
                    for _ in range(turns):
                        await asyncio.sleep(0)
                await other.aclose()
                for sock in sockets:
                    sock.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), 30))
