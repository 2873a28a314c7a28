"""The fault that a request asks for in its body, under `mockllm.fault`.

It is read from any JSON body, whatever its dialect, before the dialect reads the rest; a body
without it costs a search for the word. The other keys of `mockllm` are `overrides`'.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from mockllm.dialects.decode import invalid
from mockllm.faults import AnyFault

_MARK = b'"mockllm"'


Asked = AnyFault | tuple[AnyFault, ...] | str
"""A fault, several, or the text of `--fault`; `none` for none."""


class _Overrides(Struct, frozen=True):
    fault: Asked | None = None


class _Envelope(Struct, frozen=True):
    mockllm: _Overrides | None = None


_decode = msgspec.json.Decoder(_Envelope).decode


def may_ask(body: bytes) -> bool:
    """Whether a body may have the key `mockllm` at all."""
    return _MARK in body


def asked_fault(body: bytes) -> Asked | None:
    """What a body asks for; None for nothing, and for a body that is no JSON object.

    Raises:
        RequestError: 400, the fault does not exist or has a wrong value; `param` names it.
    """
    try:
        overrides = _decode(body).mockllm
    except msgspec.ValidationError as error:
        refusal = invalid(str(error))
        if refusal.param is not None and refusal.param.startswith("mockllm.fault"):
            raise refusal from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # whoever reads the rest of the body says so
    else:
        return None if overrides is None else overrides.fault
    return None
