"""The server's life on the command line: start, one line that says so, wait for a signal, stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import MutableMapping
from pathlib import Path

import msgspec

from mockllm.binding import inherited
from mockllm.cli.status import TO_LINE_START_AND_CLEAR, show_status
from mockllm.config import Config
from mockllm.generation.huggingface import cache_folder
from mockllm.server import Server
from mockllm.truth import describe
from mockllm.version import VERSION

log = logging.getLogger("mockllm.cli")

OK, FAILED = 0, 1


def run(config: Config) -> int:
    """Serve until a signal says stop.

    Returns:
        The exit code: 0 stopped as asked, 1 could not start, or was cut short by a second signal.

    Raises:
        ConfigError: A setting turns out not to be usable, a tokenizer that is not there, say.
    """
    return asyncio.run(_serve(config))


def activated(environ: MutableMapping[str, str]) -> list[socket.socket]:
    """The sockets that systemd passes.

    Source: sd_listen_fds(3): LISTEN_FDS of them from descriptor 3 on, when LISTEN_PID is this process.
    """
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = int(environ.get("LISTEN_FDS", "0"))
    return inherited(range(3, 3 + count))


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody reads half of it."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def describe_start(config: Config, place: str) -> str:
    """The one line printed at the start: where, which model, what timing."""
    parts = [
        _spread("TTFT", config.ttft_ms, config.ttft_ms_std, "ms"),
        _spread("ITL", config.itl_ms, config.itl_ms_std, "ms"),
        _spread("", config.output_tokens, config.output_tokens_std, "tokens"),
    ]
    if config.request_latency is not None:
        parts.insert(2, _spread("whole replies", config.request_latency, config.request_latency_std, "s"))
    return f"mockllm {VERSION} at {place}, model {config.model}: {', '.join(parts)}"


def _spread(name: str, mean: float, std: float, unit: str) -> str:
    return f"{name} {mean:g} {unit}".lstrip() + (f" (std {std:g})" if std else "")


async def _serve(config: Config) -> int:
    raise_descriptor_limit()
    signals = Signals()
    signals.install()
    if config.keep_bodies is None:  # a server of its own is measured; one that is embedded is asked
        config = msgspec.structs.replace(config, keep_bodies=0)
    try:
        server = Server(config, sockets=activated(os.environ), hub_cache=cache_folder(os.environ, Path.home()))
    except OSError as error:
        print(f"mockllm: {cannot_listen(config, error)}", file=sys.stderr)
        return FAILED
    gc.collect()  # now, while nobody waits
    try:
        await server.start()
    except OSError as error:
        print(f"mockllm: {cannot_listen(config, error)}", file=sys.stderr)
        await server.aclose()
        return FAILED
    # What lives now lives until the end: the collector need not walk it again, which would hold
    # every stream up for some milliseconds each time.
    gc.freeze()
    if not write_port_file(config, server):
        await server.aclose()
        return FAILED
    print(describe_start(config, show_place(server)), flush=True)
    warn_if_reachable(server)
    status = None
    if config.status and sys.stderr.isatty():
        status = asyncio.ensure_future(show_status(server, sys.stderr))
    await signals.wait()
    say_stopping(config, server.pulse().in_flight)
    closing = asyncio.ensure_future(server.aclose())
    cut_short = asyncio.ensure_future(signals.wait())
    await asyncio.wait([closing, cut_short], return_when=asyncio.FIRST_COMPLETED)
    cut_short.cancel()
    if not closing.done():
        server.cut()
        await closing
        await end_status(status)
        _summarise(server)
        print("mockllm: a second signal: stopped without waiting", file=sys.stderr)
        return FAILED
    closing.result()
    await end_status(status)
    _summarise(server)
    return OK


def say_stopping(config: Config, in_flight: int) -> None:
    """Tell whoever pressed Ctrl-C what the server waits for. Programs ask nothing and are told nothing."""
    if not sys.stderr.isatty():
        return
    print(TO_LINE_START_AND_CLEAR, end="", file=sys.stderr, flush=True)  # the terminal's ^C
    if in_flight or config.drain_delay_s:
        most_s = config.drain_delay_s + config.shutdown_timeout_s
        log.info("Stopping within %g s, with %d in flight; Ctrl-C again stops at once.", most_s, in_flight)


async def end_status(status: asyncio.Task[None] | None) -> None:
    """Clear the live line, if there is one, before anything else is printed."""
    if status is not None:
        status.cancel()
        await asyncio.wait([status])


def _summarise(server: Server) -> None:
    """Print what the server did, and whether its timing can be trusted."""
    statistics = server.total_statistics()
    if statistics.requests:
        print(describe(statistics), flush=True)


def write_port_file(config: Config, server: Server) -> bool:
    """Write `--port-file`, where it is asked for; says so where it cannot, and returns False."""
    if config.port_file is not None:
        try:
            _write_whole(Path(config.port_file), f"{server.port}\n")
        except OSError as error:
            print(f"mockllm: cannot write --port-file {config.port_file}: {error.strerror}", file=sys.stderr)
            return False
    return True


def show_place(server: Server) -> str:
    """Where the server is, for a person."""
    return server.base_url if server.uds is None else f"{server.base_url} on the Unix socket {server.uds}"


def warn_if_reachable(server: Server) -> None:
    """Say so where others than this machine can reach it."""
    if not server.loopback:
        log.warning("Listening beyond this machine: others can reach port %d.", server.port)


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors, and so connections, as the system lets it have."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS says "unlimited" and means less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def cannot_listen(config: Config, error: OSError) -> str:
    """Why it cannot, in one line."""
    if config.fd is not None:
        return f"cannot listen on descriptor {config.fd}: {error.strerror or error}"
    if config.uds is not None:
        reason = "another server listens there" if error.errno == errno.EADDRINUSE else error.strerror
        return f"cannot listen on the Unix socket {config.uds}: {reason}"
    place = f"cannot listen on {config.host} port {config.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{place}: the port is in use; --port 0 picks a free one"
    if error.errno == errno.EACCES:
        return f"{place}: not permitted; ports from 1024 on need no privilege"
    return f"{place}: {error.strerror or error}"


class Signals:
    """SIGINT and SIGTERM as something to wait for, one at a time."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[None] = asyncio.Queue()

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._arrived.put_nowait, None)
            except NotImplementedError:  # Windows: the handler runs between two callbacks, and has to wake the loop
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._arrived.put_nowait, None))

    async def wait(self) -> None:
        """Until the next signal."""
        await self._arrived.get()
