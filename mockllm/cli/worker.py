"""`python -m mockllm.cli.worker FD`: one of several processes of a server, started by their parent.

It stops when the parent says so, on SIGTERM, and when the parent is gone. SIGINT is the parent's affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from mockllm.app import Worker
from mockllm.binding import inherited
from mockllm.cli.serve import set_up_logging
from mockllm.cli.status import StatusLine
from mockllm.errors import ConfigError
from mockllm.ledgerfile import LedgerFile
from mockllm.server import Server
from mockllm.workers import Setup, SharedBoard
from mockllm.workers.setup import CUT, READY


def main() -> int:
    """Serve until told to stop; returns the exit code."""
    link = socket.socket(fileno=int(sys.argv[1]))
    setup = msgspec.json.decode(_read_setup(link), type=Setup)
    set_up_logging(setup.config.log_level, f"worker {setup.number}: ")
    with contextlib.ExitStack() as stack:
        if setup.config.status and sys.stderr.isatty():  # the parent's line may stand where we log
            stack.enter_context(StatusLine(sys.stderr).below_the_log())
        runner = stack.enter_context(asyncio.Runner(loop_factory=_loop_factory()))
        try:
            runner.run(_serve(setup, link))
        except ConfigError as error:
            print(f"mockllm: {error}", file=sys.stderr)
            return 2
    link.close()
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _read_setup(link: socket.socket) -> bytes:
    with link.makefile("rb", buffering=0) as file:
        length = int.from_bytes(_exactly(file.read, 4), "big")
        return _exactly(file.read, length)


def _exactly(read: Callable[[int], bytes | None], count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = read(count - len(data))
        if not piece:
            raise EOFError("the parent is gone")
        data += piece
    return data


async def _serve(setup: Setup, link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    board = SharedBoard(setup.board, setup.of + 1)
    writer = LedgerFile(os.dup(link.fileno()), "(the parent's)") if setup.gather else None
    worker = Worker(
        setup.number,
        setup.of,
        board,
        setup.first_seq,
        setup.records_at,
        None if writer is None else writer.write,
        setup.pem,
        setup.shared,
    )
    server = Server(
        setup.config,
        sockets=inherited(setup.sockets),
        hub_cache=None if setup.hub_cache is None else Path(setup.hub_cache),
        worker=worker,
    )
    stop = asyncio.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    gc.collect()
    await server.start()
    gc.freeze()
    link.sendall(READY)
    loop.add_reader(link, _hear, link, server, stop)
    await stop.wait()
    await server.aclose()
    loop.remove_reader(link)
    if writer is not None:
        await writer.close()
    board.close()


def _hear(link: socket.socket, server: Server, stop: asyncio.Event) -> None:
    """Do what the parent says; without a parent, stop at once."""
    try:
        said = link.recv(64)
    except OSError:
        said = b""
    if not said:
        asyncio.get_running_loop().remove_reader(link)
    if not said or CUT in said:
        server.cut()
    stop.set()


if __name__ == "__main__":
    sys.exit(main())
