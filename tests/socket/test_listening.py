"""Where the server listens: TCP, IPv6, Unix sockets, inherited sockets, TLS; and how it accepts."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import resource
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from mockllm import Config, ConfigError, Server, ServerThread, listener

FAST: dict[str, Any] = {"ttft_ms": 0.0, "itl_ms": 0.0}
CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


def ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6() -> None:
    with ServerThread(Config(host="::1", port=0, **FAST)) as server:
        assert re.fullmatch(r"http://\[::1\]:\d+", server.url)
        assert httpx.post(server.base_url + "/chat/completions", json=CHAT).status_code == 200


def test_a_name_is_every_address_that_it_stands_for_on_one_port() -> None:
    with ServerThread(Config(host="localhost", port=0, **FAST)) as server:
        for family, *_, address in socket.getaddrinfo("localhost", server.port, type=socket.SOCK_STREAM):
            with socket.socket(family, socket.SOCK_STREAM) as client:
                client.connect(address)


def test_every_interface_is_named_by_one_that_can_be_reached() -> None:
    with ServerThread(Config(host="0.0.0.0", port=0, **FAST)) as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert not server.server.loopback


def unix_client(path: Path) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost")


def test_a_unix_socket_has_its_mode_and_goes_when_the_server_does(tmp_path: Path) -> None:
    path = tmp_path / "llm.sock"
    with ServerThread(Config(uds=str(path), uds_mode="0600", **FAST)) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (server.server.uds, server.url, server.port) == (str(path), "http://localhost", 0)
        with unix_client(path) as client:
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    assert not path.exists()


def test_a_dead_servers_socket_is_replaced_a_live_ones_is_not(tmp_path: Path) -> None:
    path = tmp_path / "llm.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with ServerThread(Config(uds=str(path), **FAST)):
        with pytest.raises(OSError, match="in use"):
            ServerThread(Config(uds=str(path), **FAST)).start()
        with unix_client(path) as client:
            assert client.get("/health").status_code == 200


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(OSError, match="no socket"):
        ServerThread(Config(uds=str(path), **FAST)).start()
    assert path.read_text() == "data"


def test_self_signed_certificates_are_good_for_the_loopback_names() -> None:
    with ServerThread(Config(port=0, self_signed_certs=True, **FAST)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        pem = ssl.get_server_certificate(("127.0.0.1", server.port))
        context = ssl.create_default_context(cadata=pem)
        with httpx.Client(verify=context) as client:
            reply = client.post(server.base_url + "/chat/completions", json=CHAT | {"stream": True})
            assert reply.text.endswith("data: [DONE]\n\n")
            assert client.get(f"https://localhost:{server.port}/health").status_code == 200


def test_plain_http_on_a_tls_port_harms_nobody() -> None:
    with ServerThread(Config(port=0, self_signed_certs=True, **FAST)) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" not in client.recv(4096)
        assert httpx.get(server.url + "/health", verify=False).status_code == 200


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ssl_certfile": "/nowhere.pem"}, "ssl_certfile: '/nowhere.pem' is not valid"),
        ({"ssl_keyfile": "/nowhere.pem"}, "only together with ssl_certfile"),
    ],
)
def test_tls_files_are_checked_before_the_start(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Server(Config(port=0, **FAST, **settings))


def command(*argv: str, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mockllm", "--ttft-ms", "0", "--itl-ms", "0", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=pass_fds,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=20)


def test_an_inherited_socket_and_a_port_file(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        process = command("--fd", str(sock.fileno()), "--port-file", str(port_file), pass_fds=(sock.fileno(),))
    assert process.stdout is not None
    assert f":{port}/v1" in process.stdout.readline()
    assert port_file.read_text() == f"{port}\n"
    assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    out, err = finish(process)
    assert (out.splitlines()[0][:11], err) == ("requests: 1", "")
    assert process.returncode == 0


def test_systemds_sockets_are_found() -> None:
    start = (
        "import os, sys; os.environ['LISTEN_PID'] = str(os.getpid()); os.dup2(int(sys.argv[1]), 3);"
        "os.set_inheritable(3, True);"
        "os.execv(sys.executable, [sys.executable, '-m', 'mockllm'])"
    )
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-c", start, str(sock.fileno())],
            pass_fds=[sock.fileno()],
            env=os.environ | {"LISTEN_FDS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert process.stdout is not None
    assert f":{port}/v1" in process.stdout.readline()
    assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    finish(process)


def test_beyond_the_loopback_it_says_so() -> None:
    process = command("--host", "0.0.0.0", "--port", "0")
    assert process.stdout is not None
    process.stdout.readline()
    _, err = finish(process)
    assert "Listening beyond this machine" in err


def test_too_many_connections_are_told_503_and_closed() -> None:
    with ServerThread(Config(port=0, max_connections=2, **FAST)) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address) as one, socket.create_connection(address) as two:
            for client in (one, two):
                client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
            with socket.create_connection(address, timeout=10) as three:
                received = b"".join(iter(lambda: three.recv(4096), b""))
            assert received.startswith(b"HTTP/1.1 503 ")
            assert b"connection: close" in received
            assert b'"code":"overloaded"' in received
        assert httpx.get(server.url + "/health").status_code == 200


def test_out_of_descriptors_accepting_pauses_is_said_once_and_resumes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = listener.Listener._pause

    async def main() -> None:
        async with Server(Config(port=0, **FAST)) as server:
            paused = asyncio.Event()

            def pause_and_tell(self: listener.Listener, error: OSError) -> None:
                pause(self, error)
                paused.set()

            monkeypatch.setattr(listener.Listener, "_pause", pause_and_tell)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            clients = [socket.socket() for _ in range(20)]
            for client in clients:
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", server.port))
            lowest_free = os.dup(0)
            os.close(lowest_free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 4, hard))
            try:
                await asyncio.wait_for(paused.wait(), 10)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.close()
            for client in clients:
                client.close()

    with caplog.at_level(logging.WARNING, logger="mockllm"):
        asyncio.run(main())
    assert sum("accepting pauses" in message for message in caplog.messages) == 1
    assert sum("Accepting connections again" in message for message in caplog.messages) == 1


def test_nodelay_is_set_on_given_sockets_too() -> None:
    async def main() -> None:
        given = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0)  # protocol 0: asyncio leaves it alone
        given.bind(("127.0.0.1", 0))
        async with Server(Config(port=0, **FAST), sockets=[given]) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readline()
            (connection,) = server._service.connections  # type: ignore[union-attr]  # it runs
            sock = connection._transport.get_extra_info("socket")  # type: ignore[union-attr]  # the protocol's own
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()

    asyncio.run(main())
