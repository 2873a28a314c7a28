"""What `--lenient` does with a request that the API would refuse: the field at fault is left out.

The API's own test suites send fields that contradict each other on purpose. A refusal names its
field, so a request is asked again without it, until it passes or what is wrong is the input itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

_KEPT = frozenset({"model", "messages", "input", "prompt"})
"""Fields that a request is about: it cannot do without them."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def without_field(body: bytes, param: str | None) -> bytes | None:
    """The body without the field that a refusal names.

    Args:
        body: A JSON object.
        param: A `RequestError`'s: a path such as `text.format.schema` or `tools[0].name`.

    Returns:
        The shorter body; None where there is no field that could be left out.
    """
    field = (param or "").split(".")[0].split("[")[0]
    if not field or field in _KEPT:
        return None
    try:
        fields = _decode(body)
        if field not in fields:
            return None
        del fields[field]
        return msgspec.json.encode(fields)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
