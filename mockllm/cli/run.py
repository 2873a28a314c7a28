"""The server's life on the command line: start, one line that says so, wait for a signal, stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import sys

from mockllm.config import Config
from mockllm.server import Server
from mockllm.version import VERSION

OK, FAILED = 0, 1


def run(config: Config) -> int:
    """Serve until a signal says stop.

    Returns:
        The exit code: 0 stopped as asked, 1 could not start, or was cut short by a second signal.

    Raises:
        ConfigError: A setting turns out not to be usable, a tokenizer that is not there, say.
    """
    return asyncio.run(_serve(config))


def describe_start(config: Config, base_url: str) -> str:
    """The one line printed at the start: base URL, model, timing."""
    parts = [
        _spread("TTFT", config.ttft_ms, config.ttft_ms_std, "ms"),
        _spread("ITL", config.itl_ms, config.itl_ms_std, "ms"),
        _spread("", config.output_tokens, config.output_tokens_std, "tokens"),
    ]
    if config.request_latency is not None:
        parts.insert(2, _spread("whole replies", config.request_latency, config.request_latency_std, "s"))
    return f"mockllm {VERSION} at {base_url}, model {config.model}: {', '.join(parts)}"


def _spread(name: str, mean: float, std: float, unit: str) -> str:
    return f"{name} {mean:g} {unit}".lstrip() + (f" (std {std:g})" if std else "")


async def _serve(config: Config) -> int:
    raise_descriptor_limit()
    signals = _Signals()
    signals.install()
    server = Server(config)
    try:
        await server.start()
    except OSError as error:
        print(f"mockllm: {_cannot_listen(config, error)}", file=sys.stderr)
        await server.aclose()
        return FAILED
    # What lives now lives until the end: the collector need not walk it again, which would hold
    # every stream up for some milliseconds each time.
    gc.collect()
    gc.freeze()
    print(describe_start(config, server.base_url), flush=True)
    await signals.wait()
    closing = asyncio.ensure_future(server.aclose())
    cut_short = asyncio.ensure_future(signals.wait())
    await asyncio.wait([closing, cut_short], return_when=asyncio.FIRST_COMPLETED)
    cut_short.cancel()
    if not closing.done():
        server.cut()
        await closing
        print("mockllm: a second signal: stopped without waiting", file=sys.stderr)
        return FAILED
    closing.result()
    return OK


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


def _cannot_listen(config: Config, error: OSError) -> str:
    place = f"cannot listen on {config.host} port {config.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{place}: the port is in use; --port 0 picks a free one"
    if error.errno == errno.EACCES:
        return f"{place}: not permitted; ports from 1024 on need no privilege"
    return f"{place}: {error.strerror or error}"


class _Signals:
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
