"""Faults on demand: what they are, whom they concern, and what they make of a reply."""

from typing import get_args

from mockllm.faults.connection import Close, Length, NoLastChunk, Reset
from mockllm.faults.durations import duration
from mockllm.faults.fault import Fault, Site, Struck
from mockllm.faults.instead import ContentType, Status
from mockllm.faults.stream import (
    Comments,
    Crlf,
    CutUtf8,
    Duplicate,
    Error,
    HalfEvent,
    Malformed,
    NoDone,
    NoFinish,
    Pack,
    Reorder,
    Split,
)
from mockllm.faults.timing import SlowHead, Stall, Trickle, Ttft

AnyFault = (
    Status
    | ContentType
    | Ttft
    | Stall
    | SlowHead
    | Trickle
    | Error
    | NoDone
    | NoFinish
    | Duplicate
    | Reorder
    | Malformed
    | HalfEvent
    | CutUtf8
    | Comments
    | Pack
    | Split
    | Crlf
    | Close
    | Reset
    | Length
    | NoLastChunk
)
"""Every kind of fault: the tagged union of flags, configuration files and requests."""

KINDS: tuple[str, ...] = tuple(str(fault.__struct_config__.tag) for fault in get_args(AnyFault))

__all__ = ["KINDS", "AnyFault", "Fault", "Site", "Struck", "duration"]
