"""The server: sockets and a timer around the application, in the running event loop.

A `Server` has no global state: several live in one process and one loop, and closing one leaves
no task, socket or thread behind. It installs no signal handlers and sets up no logging.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from mockllm.app import App, BaseApp, Worker
from mockllm.app.auth import read_keys
from mockllm.binding import bind_tcp, bind_unix, inherited, unlink_unix
from mockllm.clock import Clock, SystemClock
from mockllm.config import Config
from mockllm.errors import ConfigError
from mockllm.http.http11 import Limits
from mockllm.ledgerfile import LedgerFile
from mockllm.listener import Listener
from mockllm.playback import Playback
from mockllm.protocol import Connection
from mockllm.scheduler import Item, Scheduler
from mockllm.scripting import Scripting
from mockllm.service import Service, Timeouts, wait
from mockllm.timer import SchedulerTimer
from mockllm.tls import context_from_files, context_from_pem, self_signed
from mockllm.truth import Heartbeat, Ledger, Publishing, Pulse, SharedTruth, Statistics

log = logging.getLogger("mockllm.server")

T = TypeVar("T")


def _keys_in_file(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        keys = read_keys(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError("api_key_file", path, f"a readable text file ({reason})") from error
    if not keys:  # an empty file must not open the server to all
        raise ConfigError("api_key_file", path, "a file with at least one key")
    return keys


class Server(Scripting):
    """A mock LLM server in the running event loop.

    Use it as an async context manager, or call `start` and `aclose`.

    Args:
        config: The settings; the defaults where omitted.
        sockets: Listening or bound stream sockets to serve on, in place of `host` and `port`; the
            server closes them.
        clock: The clock, `SystemClock` by default.
        hub_cache: Folder of Hugging Face models, for `processor`; None for the usual place.
        worker: Which of several processes of one server this is; None for the only one.

    Raises:
        ConfigError: The tokenizer, the TLS files or the file of keys cannot be used.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        sockets: Sequence[socket.socket] = (),
        clock: Clock | None = None,
        hub_cache: Path | None = None,
        worker: Worker | None = None,
    ) -> None:
        self.config = config if config is not None else Config()
        self._clock = clock if clock is not None else SystemClock()
        self._sockets = list(sockets)
        self._listeners: list[Listener] = []
        self._service: Service | None = None
        self._timer: SchedulerTimer | None = None
        self._address: Any = None  # as getsockname gives it
        self._own_file: socket.socket | None = None  # a Unix socket whose file is ours to remove
        self._worker = worker
        self._context = self._make_context()
        self._tls = self._context is not None
        self._closing: asyncio.Future[None] | None = None
        self._hurry = asyncio.Event()
        self._app = self._make_app(_keys_in_file(self.config.api_key_file), hub_cache)
        self._ledger_file: LedgerFile | None = None

    def _make_app(self, api_keys: Sequence[str], hub_cache: Path | None) -> BaseApp:
        return App(self.config, self._clock, api_keys=api_keys, hub_cache=hub_cache, worker=self._worker)

    # ---- where it is -------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The TCP port in use; 0 on a Unix socket."""
        return 0 if self.uds is not None else int(self._where()[1])

    @property
    def uds(self) -> str | None:
        """Path of the Unix socket it listens on; None for TCP."""
        address = self._where()
        return address if isinstance(address, str) else None

    @property
    def url(self) -> str:
        """Scheme, host and port: `http://127.0.0.1:8000`; of a Unix socket, what the client puts in its requests."""
        scheme = "https" if self._tls else "http"
        address = self._where()
        if isinstance(address, str):
            return f"{scheme}://localhost"
        # Of every interface, name the one that a client can reach.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])
        return f"{scheme}://[{host}]:{address[1]}" if ":" in host else f"{scheme}://{host}:{address[1]}"

    @property
    def base_url(self) -> str:
        """The same with `/v1`, as the OpenAI SDK wants it."""
        return self.url + "/v1"

    @property
    def loopback(self) -> bool:
        """Only this machine can reach it."""
        address = self._where()
        return isinstance(address, str) or ipaddress.ip_address(address[0].split("%")[0]).is_loopback

    def _where(self) -> Any:
        if self._address is None:
            raise RuntimeError("the server has not been started")
        return self._address

    # ---- what it did -------------------------------------------------------------------------

    def _with_app(self, do: Callable[[App], T]) -> T:
        assert isinstance(self._app, App)
        return do(self._app)

    @property
    def ledger(self) -> Ledger:
        """The records of the requests that have ended; a sequence of immutable `ExchangeRecord`s."""
        return self._app.truth.ledger

    def statistics(self) -> Statistics:
        """Load, lateness and verdict since the start, or since the last `reset_statistics`."""
        return self._app.truth.statistics()

    def reset_statistics(self) -> Statistics:
        """Begin a new interval; returns the statistics of the one that ends. The ledger stays."""
        return self._app.truth.reset()

    def total_statistics(self) -> Statistics:
        """Statistics since the start, over all intervals."""
        return self._app.truth.total()

    def pulse(self) -> Pulse:
        """A cheap reading for live displays."""
        return self._app.truth.pulse()

    # ---- life cycle --------------------------------------------------------------------------

    def bind(self) -> list[socket.socket]:
        """Bind without serving; from now on its address is known. `start` does it where this has not.

        Raises:
            OSError: The address cannot be bound.
        """
        if not self._sockets:
            self._sockets = self._bind()
        self._address = self._sockets[0].getsockname()
        return self._sockets

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            OSError: The address cannot be bound.
            ConfigError: The ledger's file cannot be written.
        """
        if self._service is not None:
            raise RuntimeError("the server was started before")
        loop = asyncio.get_running_loop()
        self._open_ledger()
        self.bind()
        config = self.config
        scheduler = Scheduler(self._clock.now, self._broken)
        self._timer = SchedulerTimer(loop, scheduler, self._clock.now, self._app.truth.stall_meter)
        limits = Limits(config.max_request_line_bytes, config.max_header_bytes, config.max_body_bytes)
        self._service = service = Service(
            self._app,
            scheduler,
            self._timer,
            self._clock,
            limits=limits,
            timeouts=Timeouts(
                config.header_timeout_s, config.body_timeout_s, config.keep_alive_timeout_s, config.write_timeout_s
            ),
            max_connections=config.max_connections,
            fast_parser=config.fast_parser,
        )
        for sock in self._sockets:
            self._listeners.append(
                Listener(
                    loop,
                    sock,
                    lambda: Connection(service),
                    self._context,
                    shared=self._worker is not None and self._worker.shared,
                )
            )
        self._app.lifecycle.start(self.config.startup_delay_s)
        self._observe(service)

    def _open_ledger(self) -> None:
        if self.config.ledger is not None:
            truth = self._app.truth
            self._ledger_file = file = LedgerFile.open(self.config.ledger)
            truth.sink = file.write
            truth.write_errors = lambda: file.lost

    def _observe(self, service: Service) -> None:
        truth = self._app.truth
        truth.open_connections = lambda: len(service.connections)
        truth.slot_s = lambda: service.scheduler.slot_s
        truth.begin()
        truth.stall_meter.watch_collector()
        heartbeat = Heartbeat(lambda: truth.in_flight > 0, truth.each_second)
        service.start(heartbeat, self._clock.now())
        if isinstance(truth, SharedTruth):
            service.start(Publishing(truth), self._clock.now())

    def _bind(self) -> list[socket.socket]:
        config = self.config
        if config.fd is not None:
            return inherited([config.fd])
        if config.uds is not None:
            self._own_file = bind_unix(config.uds, int(config.uds_mode, 8))
            return [self._own_file]
        return bind_tcp(config.host, config.port)

    def _make_context(self) -> ssl.SSLContext | None:
        config = self.config
        if config.self_signed_certs:
            pem = None if self._worker is None else self._worker.pem
            return context_from_pem(self_signed(config.host) if pem is None else pem)
        if config.ssl_certfile is not None:
            return context_from_files(config.ssl_certfile, config.ssl_keyfile)
        if config.ssl_keyfile is not None:
            raise ConfigError("ssl_keyfile", config.ssl_keyfile, "only together with ssl_certfile")
        return None

    def _broken(self, item: Item, error: Exception) -> None:
        if isinstance(item, Playback) and isinstance(item.sink, Connection):
            item.sink.broken(error)
        else:
            log.error("A timed action failed", exc_info=error)

    async def aclose(self, timeout_s: float | None = None) -> None:
        """Stop: say so for `drain_delay_s`, accept no more, let running replies finish, cut the rest.

        Idempotent; a second call waits for the first.

        Args:
            timeout_s: How long replies may take to finish, in seconds; the setting
                `shutdown_timeout_s` where omitted.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(
                self._close(self.config.shutdown_timeout_s if timeout_s is None else timeout_s)
            )
        await asyncio.shield(self._closing)

    def cut(self) -> None:
        """Make an `aclose` that is under way, or comes, end at once."""
        self._hurry.set()

    async def _close(self, timeout_s: float) -> None:
        service = self._service
        if service is not None:
            self._app.lifecycle.drain()
            await wait(self._hurry, self.config.drain_delay_s)
        if self._own_file is not None:
            unlink_unix(self._own_file)
        for listener in self._listeners:
            await listener.close()
        for sock in self._sockets:
            sock.close()
        if service is not None:
            await service.close(self._hurry, timeout_s)
        if self._timer is not None:
            self._timer.close()
        self._app.truth.close()
        if self._ledger_file is not None:
            await self._ledger_file.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class ServerThread(Scripting):
    """A server on its own event loop in its own thread, for callers that block theirs or have none.

    Args:
        config: The settings; the defaults where omitted.
        sockets, hub_cache: As in `Server`.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        sockets: Sequence[socket.socket] = (),
        hub_cache: Path | None = None,
    ) -> None:
        self.server = Server(config, sockets=sockets, hub_cache=hub_cache)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The TCP port in use."""
        return self.server.port

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return self.server.url

    @property
    def base_url(self) -> str:
        """The same with `/v1`, as the OpenAI SDK wants it."""
        return self.server.base_url

    @property
    def ledger(self) -> Ledger:
        """See `Server.ledger`; up to now, and safe to read while the server runs."""
        return self._on_loop(lambda: self.server.ledger)

    def statistics(self) -> Statistics:
        """See `Server.statistics`."""
        return self._on_loop(self.server.statistics)

    def reset_statistics(self) -> Statistics:
        """See `Server.reset_statistics`."""
        return self._on_loop(self.server.reset_statistics)

    def _with_app(self, do: Callable[[App], T]) -> T:
        return self._on_loop(lambda: self.server._with_app(do))

    def _on_loop(self, read: Callable[[], T]) -> T:
        """Call `read` where the server runs; here, once it does no more."""
        loop = self._loop
        if loop is None:
            return read()

        async def call() -> T:
            return read()

        return asyncio.run_coroutine_threadsafe(call(), loop).result()

    def start(self) -> None:
        """Start the thread and wait until the server listens.

        Raises:
            OSError: The address cannot be bound.
        """
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name="mockllm", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the server and its thread; see `Server.aclose`. Idempotent."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = self._thread = None
        asyncio.run_coroutine_threadsafe(self.server.aclose(timeout_s), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
