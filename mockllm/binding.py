"""Makes the sockets to listen on: TCP, Unix domain, inherited.

Everything that can go wrong is an `OSError`, and leaves no socket behind.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def bind_tcp(host: str, port: int) -> list[socket.socket]:
    """Bound sockets for every address that `host` stands for, all on the same port.

    Args:
        host: An address, or a name such as `localhost` (IPv4 and IPv6).
        port: 0 takes a free one.

    Raises:
        OSError: An address cannot be bound, or there is none.
    """
    sockets: list[socket.socket] = []
    try:
        for family, kind, proto, _, address in dict.fromkeys(
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ):
            sock = socket.socket(family, kind, proto)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # or "::" would take IPv4's port too
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = port or (sockets[0].getsockname()[1] if len(sockets) > 1 else 0)
            try:
                sock.bind((address[0], chosen, *address[2:]))
            except OSError as error:
                error.filename = f"{address[0]} port {chosen}"  # who reads the traceback looks for it
                raise
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def multiply(sockets: Sequence[socket.socket], count: int) -> list[list[socket.socket]] | None:
    """As many sets of sockets on the same TCP addresses, among which the kernel spreads connections evenly.

    Args:
        sockets: Bound, not yet listening; they are the first set.
        count: How many sets.

    Returns:
        The sets; None where the system cannot do that (Linux can, socket(7): SO_REUSEPORT).
    """
    if sys.platform != "linux" or any(sock.family == socket.AF_UNIX for sock in sockets):
        return None
    sets = [list(sockets)]
    try:
        # Only now: at the first binding it would have hidden that another server has the port.
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        for _ in range(count - 1):
            sets.append([])
            for sock in sockets:
                twin = socket.socket(sock.family, sock.type, sock.proto)
                sets[-1].append(twin)
                twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                if sock.family == socket.AF_INET6:
                    twin.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                twin.bind(sock.getsockname())
    except OSError:
        for twins in sets[1:]:
            for twin in twins:
                twin.close()
        return None
    return sets


def bind_unix(path: str, mode: int) -> socket.socket:
    """A bound Unix socket. A file that a dead server left is replaced, a live server's is not.

    Args:
        path: Where.
        mode: Permission bits of the file, e.g. 0o660.

    Raises:
        OSError: `EADDRINUSE` where something listens, or the path is no socket, or cannot be made.
    """
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        os.chmod(path, mode)
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(path: str) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.EEXIST, "there is a file that is no socket", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)


def inherited(descriptors: Sequence[int]) -> list[socket.socket]:
    """Sockets out of descriptors that were inherited, from systemd say.

    Raises:
        OSError: A descriptor is not open, or is no stream socket.
    """
    sockets: list[socket.socket] = []
    try:
        for descriptor in descriptors:
            sock = socket.socket(fileno=descriptor)
            sockets.append(sock)
            if sock.type != socket.SOCK_STREAM:
                raise OSError(errno.ENOTSOCK, f"descriptor {descriptor} is no stream socket")
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def unlink_unix(sock: socket.socket) -> None:
    """Remove the file of a Unix socket that is about to be closed, unless it is another's by now."""
    if sock.family != socket.AF_UNIX:
        return
    path = sock.getsockname()
    if isinstance(path, str) and path and not path.startswith("\0"):
        with suppress(OSError):
            Path(path).unlink()
