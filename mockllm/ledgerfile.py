"""Writes the ledger to a file, in a thread of its own: a slow disk does not hold the event loop.

The loop hands over lines that are ready; the thread does nothing but write them, so it does not
compete for the interpreter either.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from queue import SimpleQueue

from mockllm.errors import ConfigError

log = logging.getLogger("mockllm.ledger")

QUEUE_BYTES = 256 * 1024 * 1024
"""What may wait for the disk; lines beyond that are lost, and counted."""


class LedgerFile:
    """An open file of JSON lines.

    Args:
        fd: Where the lines go; closed at the end.
        name: What messages call it.

    Attributes:
        lost: How many lines could not be written.
    """

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self.lost = 0
        self._name = name
        self._failed = False
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._waiting_bytes = 0
        self._written_bytes = 0
        self._thread = threading.Thread(target=self._run, name="mockllm-ledger", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str) -> LedgerFile:
        """A file that lines are appended to; it is made where it does not exist.

        Raises:
            ConfigError: It cannot be opened.
        """
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise ConfigError("--ledger", path, f"a file that can be written ({error.strerror})") from error
        return cls(fd, path)

    def write(self, lines: bytes) -> None:
        """Append lines, soon."""
        # Each counter has one writer, the loop here and the thread there, so no lock is needed.
        if self._waiting_bytes - self._written_bytes + len(lines) > QUEUE_BYTES:
            self._lose(lines, "the disk is too slow")
            return
        self._waiting_bytes += len(lines)
        self._queue.put(lines)

    def _run(self) -> None:
        while (lines := self._queue.get()) is not None:
            try:
                _write_all(self._fd, lines)
            except OSError as error:
                self._lose(lines, error.strerror or str(error))
            self._written_bytes += len(lines)
        os.close(self._fd)

    def _lose(self, lines: bytes, why: str) -> None:
        self.lost += lines.count(b"\n")
        if not self._failed:
            self._failed = True
            log.error("The ledger %s is not complete: %s. This is said once; the statistics count.", self._name, why)

    async def close(self) -> None:
        """Return when every line is written and the file closed. Idempotent."""
        if self._thread.is_alive():
            done = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._queue.put(None)
            # `join` would hold the loop: a second, short-lived thread waits for the first.
            waiter = threading.Thread(target=self._tell_when_done, args=(loop, done))
            waiter.start()
            await done.wait()
            waiter.join()

    def _tell_when_done(self, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        self._thread.join()
        loop.call_soon_threadsafe(done.set)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
