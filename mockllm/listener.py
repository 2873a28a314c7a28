"""Accepts connections on one listening socket.

asyncio's own accepting logs every second while descriptors are short and takes `backlog` connections
in one turn of the loop. This one takes a bounded number, pauses while the process or the system
is out of descriptors, and says so once an episode.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable

log = logging.getLogger("mockllm.listener")

ACCEPTS_PER_TURN = 64
"""More would hold the loop, and with it every stream, for milliseconds."""

BACKLOG = 4096
"""What the kernel queues until it is accepted (cut to net.core.somaxconn)."""

RETRY_S = 0.1
"""How long accepting pauses when there is no descriptor for the next connection."""

HANDSHAKE_TIMEOUT_S = 10.0
"""How long a client may take for its TLS handshake."""

_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # accept(2)

_PASSING = (
    *(errno.EPROTO, errno.ENOPROTOOPT, errno.EOPNOTSUPP, errno.ENETDOWN, errno.ENETUNREACH),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EPERM),
)
"""Trouble of the one connection that was to be accepted, or a firewall's no (accept(2))."""


class Listener:
    """Serves the connections of one listening socket.

    Args:
        loop: The running loop.
        sock: Bound; it is made to listen, and closed by `close`.
        factory: Makes a connection's protocol.
        context: For TLS.
        shared: Other processes accept on it too: then one connection a turn, so that the idler one
            takes more of them.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        factory: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._factory = factory
        self._context = context
        self._accepts = 1 if shared else ACCEPTS_PER_TURN
        self._tasks: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._short = False  # out of descriptors: said, and not yet over
        sock.setblocking(False)
        sock.listen(BACKLOG)
        loop.add_reader(sock, self._accept)

    def _accept(self) -> None:
        for _ in range(self._accepts):
            try:
                connection, _address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # gone before it was accepted
                continue
            except OSError as error:
                if error.errno in _PASSING:
                    continue
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._pause(error)
                return
            if self._short:
                self._short = False
                log.warning("Accepting connections again.")
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _pause(self, error: OSError) -> None:
        if not self._short:
            self._short = True
            log.warning("No descriptor for another connection (%s); accepting pauses until there is one.", error)
        self._loop.remove_reader(self._sock)
        self._retry = self._loop.call_later(RETRY_S, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._sock, self._accept)
        self._accept()

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if self._context is not None else None,
            )
        except (OSError, ssl.SSLError) as error:  # gone, or no TLS, before there was a connection
            connection.close()
            log.debug("A connection failed before it began: %s", error)

    async def close(self) -> None:
        """Accept no more."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()
        # A handshake may take long. A plain connection is made in the loop's next turns, and must not be
        # cancelled: uvloop then forgets to tell a connection that has been made that it is lost.
        if self._context is not None:
            await asyncio.sleep(0)  # a task that has not begun would leave its socket to nobody
            for task in tuple(self._tasks):
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
