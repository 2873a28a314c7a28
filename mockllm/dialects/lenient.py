"""What `--lenient` does with a request that the API would refuse: the field at fault is left out.

The API's own test suites send fields that contradict each other on purpose. A refusal names its
field, so a request is asked again without it, until it passes or what is wrong is the input itself.
Of the input only the place at fault is left out, a part of a message say, as long as some is left.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_KEPT = frozenset({"model", "messages", "input", "prompt"})
"""Fields that a request is about: it cannot do without them."""

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def without_field(body: bytes, param: str | None) -> bytes | None:
    """The body without the field that a refusal names.

    Args:
        body: A JSON object.
        param: A `RequestError`'s: a path such as `text.format.schema` or `tools[0].name`.

    Returns:
        The shorter body; None where there is no field that could be left out.
    """
    path = [int(step[1]) if step[1] else step[2] for step in _STEP.finditer(param or "")]
    if not path or path[0] == "mockllm":  # what it says to this server: no typo is passed over
        return None
    try:
        fields = _decode(body)
        kept = path[0] in _KEPT and not (path[0] == "prompt" and "input" in fields)  # there it is a template
        if not _leave_out(fields, path if kept else path[:1], kept):
            return None
        return msgspec.json.encode(fields)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _leave_out(fields: dict[str, Any], path: list[int | str], kept: bool) -> bool:
    """Delete what is at the path or, where that is missing, what should have had it; not the field if it is kept."""
    holders: list[Any] = [fields]
    for step in path:
        holder = holders[-1]
        if not _has(holder, step):
            break
        holders.append(holder[step])
    depth = len(holders) - 2
    if depth < kept:
        return False
    del holders[depth][path[depth]]
    return True


def _has(holder: Any, step: int | str) -> bool:
    if isinstance(step, int):
        return isinstance(holder, list) and step < len(holder)
    return isinstance(holder, dict) and step in holder
