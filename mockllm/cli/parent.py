"""The life of a server of several processes: bind, start them, one line that says so, wait for a signal, stop."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from mockllm.binding import multiply
from mockllm.cli.run import (
    FAILED,
    OK,
    Signals,
    activated,
    cannot_listen,
    describe_start,
    end_status,
    raise_descriptor_limit,
    say_stopping,
    show_place,
    warn_if_reachable,
    write_port_file,
)
from mockllm.cli.status import show_status
from mockllm.clock import SystemClock
from mockllm.config import Config
from mockllm.errors import ConfigError
from mockllm.generation.huggingface import cache_folder
from mockllm.ledgerfile import LedgerFile
from mockllm.listener import BACKLOG
from mockllm.server import Server
from mockllm.service import wait
from mockllm.tls import self_signed
from mockllm.truth import PUBLISH_S, describe
from mockllm.workers import Books, BooksServer, Setup, SharedBoard, StartError, Supervisor


def run_workers(config: Config) -> int:
    """Serve with several processes until a signal says stop.

    Returns:
        The exit code: 0 stopped as asked, 1 could not start, or was cut short by a second signal,
        2 a worker found a setting that cannot be used.

    Raises:
        ConfigError: A setting turns out not to be usable.
    """
    if sys.platform == "win32":
        raise ConfigError("--workers", config.workers, "1 on Windows, whose sockets are not inherited")
    return asyncio.run(_Parent(config).serve())


class _Parent:
    """The parent process.

    Args:
        config: The settings.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = clock = SystemClock()
        self._cache = cache_folder(os.environ, Path.home())
        self._board = SharedBoard.create(config.workers + 1, clock.now())
        self._books = books = Books(
            clock,
            self._board,
            0,
            records_at=None,
            model=config.model,
            max_model_len=config.max_model_len,
            ledger_size=config.ledger_size,
            ledger_tokens=config.ledger_tokens,
            budget_s=config.lateness_budget_ms / 1e3,
        )
        books.begin()
        books.keep = config.admin_port is not None
        self._pem = self_signed(config.host) if config.self_signed_certs else None
        self._admin = BooksServer(
            replace(
                config,
                **{"port": config.admin_port or 0, "uds": None, "fd": None, "ledger": None},
                **{"ssl_certfile": None, "ssl_keyfile": None, "self_signed_certs": False},
            ),
            books,
            clock,
        )
        self._file: LedgerFile | None = None
        self._sets: list[list[socket.socket]] | None = None  # where each worker has sockets of its own
        self._hurry = asyncio.Event()

    async def serve(self) -> int:
        """Returns the exit code."""
        raise_descriptor_limit()
        signals = Signals()
        signals.install()
        config = self._config
        try:
            # Never started: it checks the settings, binds, and knows the address.
            server = Server(config, sockets=activated(os.environ), hub_cache=self._cache)
            sockets = server.bind()
            self._sets = multiply(sockets, config.workers)
            for sock in itertools.chain(
                sockets, *(self._sets or [])
            ):  # from now on clients wait until a worker accepts
                sock.listen(BACKLOG)
            if config.ledger is not None:
                self._file = file = LedgerFile.open(config.ledger)
                self._books.sink = file.write
                self._books.write_errors = lambda: file.lost
            if config.admin_port is not None:
                await self._start_admin()
        except OSError as error:
            print(f"mockllm: {cannot_listen(config, error)}", file=sys.stderr)
            return FAILED
        supervisor = self._supervisor(sockets)
        try:
            await supervisor.start()
        except StartError as error:
            await self._close(server)
            return error.code or FAILED
        if not write_port_file(config, server):
            await supervisor.stop()
            await self._close(server)
            return FAILED
        books = f"; all requests' records at {self._admin.url}/mockllm/" if config.admin_port is not None else ""
        print(f"{describe_start(config, show_place(server))}; {config.workers} workers{books}", flush=True)
        warn_if_reachable(server)
        publishing = asyncio.ensure_future(self._publish())
        status = None
        if config.status and sys.stderr.isatty():
            status = asyncio.ensure_future(show_status(self._books, sys.stderr))
        await signals.wait()
        say_stopping(config, self._books.pulse().in_flight)
        code = await self._stop(supervisor, server, signals)
        publishing.cancel()
        await end_status(status)
        statistics = self._books.total()
        if statistics.requests:
            print(describe(statistics), flush=True)
        await self._close(server)
        if code != OK:
            print("mockllm: a second signal: stopped without waiting", file=sys.stderr)
        return code

    async def _start_admin(self) -> None:
        try:
            await self._admin.start()
        except OSError as error:
            raise OSError(error.errno, f"--admin-port: {error.strerror}") from error

    def _supervisor(self, sockets: list[socket.socket]) -> Supervisor:
        config = self._config
        share = -(-config.max_connections // config.workers)
        own = replace(config, max_connections=share, ledger=None, admin_port=None, keep_bodies=0)
        if config.admin_port is None:
            records_at = "This is one of several workers, which keep no records; --admin-port serves those of all."
        else:
            records_at = f"The records of all workers are at {self._admin.url}/mockllm/requests."
        sets = self._sets or [sockets] * config.workers

        def make_setup(number: int, first_seq: int) -> Setup:
            return Setup(
                own,
                number,
                config.workers,
                [sock.fileno() for sock in sets[number - 1]],
                self._board.fd,
                first_seq,
                records_at,
                gather=config.ledger is not None or self._books.keep,
                pem=self._pem,
                shared=self._sets is None,
                hub_cache=str(self._cache),
            )

        most_stop_s = config.drain_delay_s + config.shutdown_timeout_s
        return Supervisor(make_setup, config.workers, sets, self._board, self._books, most_stop_s)

    async def _publish(self) -> None:
        while True:
            await asyncio.sleep(PUBLISH_S)
            self._books.publish_if_changed()

    async def _stop(self, supervisor: Supervisor, server: Server, signals: Signals) -> int:
        """Let all stop, in time or, after a second signal, at once."""
        stopping = asyncio.ensure_future(supervisor.stop())
        releasing = asyncio.ensure_future(self._release(server))
        cut_short = asyncio.ensure_future(signals.wait())
        await asyncio.wait([stopping, cut_short], return_when=asyncio.FIRST_COMPLETED)
        code = OK if stopping.done() else FAILED
        self._hurry.set()
        supervisor.cut()
        await asyncio.gather(stopping, releasing)
        cut_short.cancel()
        return code

    async def _release(self, server: Server) -> None:
        """Let go of the address when the workers do."""
        await wait(self._hurry, self._config.drain_delay_s)
        await self._close_sockets(server)

    async def _close_sockets(self, server: Server) -> None:
        for sock in itertools.chain(*(self._sets or [])):
            sock.close()
        await server.aclose()

    async def _close(self, server: Server) -> None:
        await self._close_sockets(server)
        await self._admin.aclose(0.0)
        if self._file is not None:
            await self._file.close()
        with suppress(BufferError):
            self._board.close()
