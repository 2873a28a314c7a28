"""`--workers N`: several processes behind one address, live."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 60
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}


class Parent:
    """A running server of several processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.line = process.stdout.readline()
        match = re.search(r"at (https?://[^/]+)/v1", self.line)
        assert match, (self.line, process.communicate(timeout=TIMEOUT_S) if not self.line else "")
        self.url = match[1]
        self.port = int(self.url.rpartition(":")[2])
        admin = re.search(r"records at (http://[^/]+)/mockllm/", self.line)
        self.admin = admin[1] if admin else ""

    def workers(self) -> list[int]:
        """Process ids of its workers."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def await_log(self, text: str) -> str:
        """The next line on stderr that says so."""
        assert self.process.stderr is not None
        while text not in (line := self.process.stderr.readline()):
            assert line, f"stderr ended without {text!r}"
        return line

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, err


@contextmanager
def parent(*argv: str, workers: int = 2, fast: bool = True) -> Iterator[Parent]:
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(("MOCKLLM_", "GUIDELLM_"))}
    speed = ["--ttft-ms", "0", "--itl-ms", "0"] if fast else []
    process = subprocess.Popen(
        [sys.executable, "-m", "mockllm", "--port", "0", "--workers", str(workers), *speed, *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=own,
    )
    with process:
        try:
            yield Parent(process)
        finally:
            process.kill()


def ask_each(server: Parent, times: int = 12) -> list[dict[str, Any]]:
    """Answers over as many connections as requests, held open so that both workers get some."""
    clients = [httpx.Client(base_url=server.url, timeout=TIMEOUT_S) for _ in range(times)]
    replies: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda c=c: replies.append(_ask(c))) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return replies


def _ask(client: httpx.Client) -> dict[str, Any]:
    reply: dict[str, Any] = client.post("/v1/chat/completions", json=CHAT).raise_for_status().json()
    return reply


def settled_stats(url: str, requests: int) -> dict[str, Any]:
    """The statistics; asked again while a starved machine keeps a worker from publishing in time."""
    for _ in range(50):
        stats: dict[str, Any] = httpx.get(url + "/mockllm/stats").json()
        if stats["requests"] == requests and stats["ledger"]["records"] >= requests:
            break
    return stats


def maker(identity: str) -> str:
    """The digits of the worker in an id."""
    return identity.partition("-")[2][:3] or identity.partition("_")[2][:3]


def test_counts_are_those_of_all_whoever_is_asked_and_records_are_at_one_place(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with parent("--admin-port", "0", "--ledger", str(ledger), "--ledger-tokens") as server:
        assert "; 2 workers; all requests' records at " in server.line
        replies = ask_each(server)
        while len({maker(reply["id"]) for reply in replies}) < 2:  # the kernel deals out connections as it likes
            replies += ask_each(server)
        total = len(replies)
        assert {reply["choices"][0]["message"]["content"] for reply in replies} == {
            replies[0]["choices"][0]["message"]["content"]
        }
        for url in (server.url, server.url, server.url, server.admin):
            stats = settled_stats(url, total)
            assert (stats["requests"], stats["outcomes"]) == (total, {"completed": total})
            assert (stats["tokens"], stats["lateness"]["count"], stats["in_flight"]) == (5 * total, total, 0)
            assert (stats["stimulus"]["arrivals"], stats["stimulus"]["interarrival_cv"]) == (total, None)
            assert stats["ledger"] == {"records": total, "dropped": 0, "dropped_times": 0}
            metrics = httpx.get(url + "/metrics").text
            assert f'outcome="completed",status="200"}} {total}\n' in metrics
            assert f'vllm:generation_tokens_total{{model_name="llama-3.1-8b-instruct"}} {5 * total}\n' in metrics
        refused = httpx.get(server.url + "/mockllm/requests")
        assert refused.status_code == 404
        assert f"{server.admin}/mockllm/requests" in refused.json()["error"]["message"]
        records = [json.loads(line) for line in httpx.get(server.admin + "/mockllm/requests").text.splitlines()]
        assert len({record["seq"] for record in records}) == len(records) == total
        assert all(len(record["token_times"]["actual_s"]) == 1 for record in records)
        one = httpx.get(f"{server.admin}/mockllm/requests/{records[0]['seq']}").json()
        assert one == records[0]
        assert httpx.post(server.admin + "/v1/chat/completions", json=CHAT).status_code == 404
        assert httpx.post(server.url + "/mockllm/reset").json()["requests"] == total
        assert settled_stats(server.url, 0)["requests"] == 0
        more = len(ask_each(server))
        assert settled_stats(server.admin, more)["requests"] == more
        assert f'status="200"}} {total + more}\n' in httpx.get(server.url + "/metrics").text
        code, out, err = server.stop()
    assert (code, err) == (0, "")
    assert f"requests: {total + more:,} ({total + more:,} completed)" in out
    assert len(ledger.read_text().splitlines()) == total + more


def test_the_same_seed_gives_the_same_answers_with_any_number_of_workers() -> None:
    texts = set()
    for count in (1, 3):
        with parent("--seed", "5", workers=count) as server:
            texts |= {reply["choices"][0]["message"]["content"] for reply in ask_each(server, 8)}
    assert len(texts) == 1


def test_a_stored_response_is_with_the_worker_that_its_id_names() -> None:
    with parent() as server, httpx.Client(base_url=server.url) as client:
        made = client.post("/v1/responses", json={"input": "Hello", "max_output_tokens": 20}).json()
        assert client.get(f"/v1/responses/{made['id']}").json()["id"] == made["id"]
        number = int(maker(made["id"]), 16)
        while True:  # until a connection leads to the other worker
            with httpx.Client(base_url=server.url) as other:
                reply = other.get(f"/v1/responses/{made['id']}")
                if reply.status_code == 404:
                    message = reply.json()["error"]["message"]
                    again = other.post("/v1/responses", json={"input": "x", "previous_response_id": made["id"]})
                    break
            ask_each(server, 4)
        assert f"Worker {number} of 2 made it and keeps it; this is worker {3 - number}." in message
        assert f"Worker {number} of 2 made it" in again.json()["error"]["message"]


def test_a_dead_worker_is_replaced_and_what_it_counted_stays() -> None:
    with parent("--admin-port", "0") as server:
        before = len(ask_each(server))
        assert settled_stats(server.admin, before)["requests"] == before
        workers = server.workers()
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        assert f"(process {workers[0]}) was ended by signal 9. It is replaced." in server.await_log("is replaced")
        server.await_log("is back")
        assert len(server.workers()) == 2
        assert workers[0] not in server.workers()
        after = len(ask_each(server))
        stats = settled_stats(server.admin, before + after)
        assert (stats["requests"], stats["in_flight"]) == (before + after, 0)
        records = [json.loads(line) for line in httpx.get(server.admin + "/mockllm/requests").text.splitlines()]
        assert len({record["seq"] for record in records}) == before + after
        assert server.stop()[0] == 0


def streaming(server: Parent) -> socket.socket:
    body = json.dumps(CHAT | {"stream": True}).encode()
    client = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    client.sendall(head + body)
    assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    return client


def rest(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(65536), b""))


def await_refusal(port: int) -> None:
    """Return when nobody listens any more."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as probe:
                select.select([probe], [], [], 0.05)
        except OSError:
            return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_streams_of_all_workers_finish(number: signal.Signals) -> None:
    with parent("--ttft-ms", "500", "--itl-ms", "1", fast=False) as server:
        clients = [streaming(server) for _ in range(6)]
        code, out, err = server.stop(number)
        for client in clients:
            received = rest(client)
            assert b"[DONE]" in received
            assert received.endswith(b"0\r\n\r\n")
    assert (code, err) == (0, "")
    assert "6 completed" in out


def test_a_second_signal_cuts_all_and_it_is_counted() -> None:
    with parent("--ttft-ms", "3600000", "--shutdown-timeout-s", "3600", fast=False) as server:
        clients = [streaming(server) for _ in range(6)]
        server.process.send_signal(signal.SIGTERM)
        await_refusal(server.port)  # the first signal has been taken
        code, out, err = server.stop()
        assert b"0\r\n\r\n" not in b"".join(map(rest, clients))
    assert (code, err) == (1, "mockllm: a second signal: stopped without waiting\n")
    assert "6 aborted_by_shutdown" in out


def test_when_the_parent_is_killed_the_workers_go_too() -> None:
    with parent() as server:
        links = [os.pidfd_open(pid) for pid in server.workers()]
        server.process.kill()
        for link in links:
            assert select.select([link], [], [], TIMEOUT_S)[0], "a worker outlives its parent"
            os.close(link)


def test_all_workers_show_the_same_certificate() -> None:
    with parent("--self-signed-certs") as server:
        pems = {ssl.get_server_certificate(("127.0.0.1", server.port)) for _ in range(12)}
    assert len(pems) == 1


def test_a_unix_socket_is_served_by_all_and_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "llm.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "mockllm", "--uds", str(path), "--workers", "2", "--ttft-ms", "0", "--itl-ms", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        assert str(path) in process.stdout.readline()
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, base_url="http://localhost") as client:
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--ledger", "/nowhere/at/all"], 2, "--ledger: '/nowhere/at/all' is not valid"),
        (["--processor", "/nowhere/at/all"], 2, "processor: '/nowhere/at/all' is not valid"),
        (["--host", "no.such.host.invalid"], 1, "cannot listen on no.such.host.invalid port 0"),
    ],
)
def test_what_is_wrong_is_one_line_before_any_worker_starts(argv: list[str], code: int, message: str) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "mockllm", "--port", "0", "--workers", "2", *argv],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (process.returncode, process.stdout) == (code, "")
    assert message in process.stderr
    assert process.stderr.count("\n") == 1
