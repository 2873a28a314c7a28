"""Starts the workers, replaces those that die, and stops them all."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence

import msgspec

from mockllm.truth.shares import Share
from mockllm.workers.board import SharedBoard
from mockllm.workers.books import Books
from mockllm.workers.setup import CUT, DRAIN, READY, Setup

log = logging.getLogger("mockllm.workers")

COMMAND = (sys.executable, "-m", "mockllm.cli.worker")

READ_BYTES = 1 << 20

RESTART_S = 1.0
"""A worker that does not get ready is tried again after this."""

PATIENCE_S = 5.0
"""A worker that was told to stop, and has not after its own time-outs and this, is killed."""

SEQ_GAP = 100_000
"""So many numbers a dead worker may have given to requests after it published last."""


class StartError(Exception):
    """A worker could not start; it has said why.

    Args:
        code: Its exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"a worker ended with exit code {code} before it was ready")
        self.code = code


class Supervisor:
    """The workers of one server.

    Args:
        make_setup: Makes a worker's set-up out of its number and the number of its first request.
        count: How many workers.
        sockets: What each of them listens on.
        board: Where they publish; the parent's place is 0.
        books: Get their records, and what the dead had counted.
        most_stop_s: How long a stop may take by the settings.
    """

    def __init__(
        self,
        make_setup: Callable[[int, int], Setup],
        count: int,
        sockets: Sequence[Sequence[socket.socket]],
        board: SharedBoard,
        books: Books,
        most_stop_s: float,
    ) -> None:
        self._make_setup = make_setup
        self._sockets = list(sockets)
        self._board = board
        self._books = books
        self._most_stop_s = most_stop_s
        self._workers = [_Process(number) for number in range(1, count + 1)]
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pids(self) -> list[int]:
        """The process ids, by number."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    async def start(self) -> None:
        """Start all; returns when all accept connections.

        Raises:
            StartError: One could not.
        """
        try:
            await asyncio.gather(*[self._begin(worker, worker.number) for worker in self._workers])
        except StartError:
            await self._end_all(CUT)
            raise
        self._tasks = [asyncio.create_task(self._keep(worker)) for worker in self._workers]

    async def stop(self) -> None:
        """Let all drain and stop; returns when they have."""
        self._stopping = True
        await self._end_all(DRAIN)

    def cut(self) -> None:
        """Let all stop at once."""
        for worker in self._workers:
            worker.tell(CUT)

    async def _end_all(self, how: bytes) -> None:
        for worker in self._workers:
            worker.tell(how)
        ended = [asyncio.ensure_future(worker.ended()) for worker in self._workers]
        _, late = await asyncio.wait(ended, timeout=self._most_stop_s + PATIENCE_S)
        if late:
            for worker in self._workers:
                worker.kill()
            await asyncio.wait(late)
        for task in self._tasks:
            task.cancel()

    async def _keep(self, worker: _Process) -> None:
        """Replace a worker whenever it dies."""
        while True:
            code = await worker.ended()
            if self._stopping:
                return
            share = self._bury(worker.number)
            lost = f"; {share.in_flight} requests were lost" if share.in_flight else ""
            log.error(
                "Worker %d (process %d) %s%s. It is replaced.", worker.number, worker.pid, describe_exit(code), lost
            )
            first_seq = share.last_seq + SEQ_GAP * len(self._workers)
            while not self._stopping:
                try:
                    await self._begin(worker, first_seq)
                    log.warning("Worker %d is back (process %d).", worker.number, worker.pid)
                    break
                except StartError as error:
                    log.error("Worker %d did not start: %s.", worker.number, error)
                    await asyncio.sleep(RESTART_S)

    def _bury(self, number: int) -> Share:
        """Keep what a dead worker had counted, with the parent's own."""
        share = msgspec.msgpack.decode(self._board.at(number), type=Share)
        self._board.publish(number, b"")
        self._books.inherit(share)
        return share

    async def _begin(self, worker: _Process, first_seq: int) -> None:
        setup = self._make_setup(worker.number, first_seq)
        descriptors = [sock.fileno() for sock in self._sockets[worker.number - 1]]
        await worker.start(setup, [*descriptors, self._board.fd], self._books.take)


class _Process:
    """One worker's process, and the socket between it and the parent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: asyncio.subprocess.Process | None = None
        self._link: socket.socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @property
    def pid(self) -> int:
        return 0 if self.process is None else self.process.pid

    async def start(self, setup: Setup, descriptors: list[int], take: Callable[[bytes], None]) -> None:
        """Start it; returns when it accepts connections.

        Raises:
            StartError: It ended before that.
        """
        ours, theirs = socket.socketpair()
        self._ready.clear()
        try:
            self.process = await asyncio.create_subprocess_exec(
                *COMMAND,
                str(theirs.fileno()),
                pass_fds=[*descriptors, theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                process_group=0,  # a terminal's Ctrl-C is for the parent alone, which passes it on
            )
        finally:
            theirs.close()
        ours.setblocking(False)
        self._link = ours
        message = msgspec.json.encode(setup)
        await asyncio.get_running_loop().sock_sendall(ours, len(message).to_bytes(4, "big") + message)
        self._reading = asyncio.create_task(self._read(ours, take))
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([self._reading, ready], return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.is_set():
            ready.cancel()
            raise StartError(await self.ended())

    async def _read(self, link: socket.socket, take: Callable[[bytes], None]) -> None:
        """Take in its lines until its end."""
        loop = asyncio.get_running_loop()
        part = b""
        while True:
            try:
                data = await loop.sock_recv(link, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                return
            whole, newline, rest = data.rpartition(b"\n")
            if not newline:
                part += rest
                continue
            lines, part = part + whole + newline, rest
            if not self._ready.is_set():
                lines = lines.removeprefix(READY)
                self._ready.set()
            if lines:
                take(lines)

    def tell(self, what: bytes) -> None:
        """Send it a byte, if it is there."""
        if self._link is not None:
            try:
                self._link.send(what)
            except OSError:
                log.debug("Worker %d does not listen any more.", self.number)

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            log.error("Worker %d (process %d) does not stop; it is killed.", self.number, self.pid)
            self.process.kill()

    async def ended(self) -> int:
        """Return its exit code when it has ended and everything that it sent was taken in."""
        if self.process is None:
            return 0
        code = await self.process.wait()
        if self._reading is not None:
            await self._reading
        if self._link is not None:
            self._link.close()
            self._link = None
        return code


def describe_exit(code: int) -> str:
    """How a process ended, in words."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
