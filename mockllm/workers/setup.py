"""What a parent tells a worker when it starts it."""

from __future__ import annotations

from msgspec import Struct

from mockllm.config import Config

READY = b"ready\n"
"""The first line that a worker sends; those after it are records."""

DRAIN = b"d"
CUT = b"c"
"""What the parent sends after the set-up: stop as after a first, and as after a second signal."""


class Setup(Struct):
    """One worker's part.

    Attributes:
        config: Its settings.
        number: From 1.
        of: How many workers there are.
        sockets: Descriptors of the listening sockets.
        board: Descriptor of the board.
        first_seq: Number of its first request.
        records_at: Where the ledger is, in words.
        gather: Whether it is to send its records.
        pem: Key and certificate, where they were made for this start.
        shared: Other workers accept on the same sockets.
        hub_cache: Folder of Hugging Face models.
    """

    config: Config
    number: int
    of: int
    sockets: list[int]
    board: int
    first_seq: int
    records_at: str
    gather: bool
    pem: bytes | None
    shared: bool
    hub_cache: str | None
