"""The fault that a request or a script asks for, under `fault`.

A generation dialect finds it among the overrides that it decodes anyway; in other JSON bodies it
is looked for by itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from mockllm.dialects.decode import invalid, with_choices
from mockllm.faults import AnyFault

Asked = AnyFault | tuple[AnyFault, ...] | str
"""A fault, several, or the text of `--fault`; `none` for none."""

_MARK = b'"mockllm"'


class _Overrides(Struct, frozen=True):
    fault: Any = None


class _Envelope(Struct, frozen=True):
    mockllm: _Overrides | None = None


_decode = msgspec.json.Decoder(_Envelope).decode


def to_fault(plain: Any, where: str) -> Asked:
    """The fault that plain data stands for.

    Args:
        plain: An object, a list of them, or a text, which is not read yet.
        where: What it stands at, for the error: `mockllm.fault`.

    Raises:
        RequestError: There is no such fault; its param is the place.
    """
    try:
        asked: Asked = msgspec.convert(plain, Asked)
    except msgspec.ValidationError as error:
        message = with_choices(str(error), Asked, plain)
        what, at, path = message.rpartition(" - at `$")
        raise invalid(f"{what} - at `$.{where}{path}" if at else f"{message} - at `$.{where}`") from None
    return asked


def fault_in_body(body: bytes) -> Any:
    """The plain data at `mockllm.fault` of any JSON body; None for nothing, and for no JSON object."""
    if not body.startswith(b"{") or _MARK not in body:
        return None
    try:
        overrides = _decode(body).mockllm
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # whoever reads the rest of the body says so
    return None if overrides is None else overrides.fault
