"""Texts that have to be something: JSON documents, one of several choices, matches of a pattern."""

from __future__ import annotations

from typing import Any

import msgspec

from mockllm.generation import pattern
from mockllm.generation.keyed import Draws, derive
from mockllm.generation.memo import Memo
from mockllm.generation.plan import OutputFormat
from mockllm.generation.schema import Compiled, compile, to_json

_KEPT, _KEPT_BYTES = 256, 1 << 20

_PLAIN_OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "description": {"type": "string"},
        "count": {"type": "integer", "minimum": 0, "maximum": 100},
        "active": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["title", "description", "count", "active", "tags"],
    "additionalProperties": False,
}
"""What `json_object` gets: the API asks for an object and says nothing about its members."""


class Schemas:
    """Reads JSON schemas, and remembers the last few: a load tool sends the same one again and again."""

    def __init__(self) -> None:
        self._strict: Memo[Compiled] = Memo(_KEPT, _KEPT_BYTES)
        self._lax: Memo[Compiled] = Memo(_KEPT, _KEPT_BYTES)

    def read(self, schema: dict[str, Any] | bool, *, strict: bool, param: str) -> Compiled:
        """A schema that can be met.

        Raises:
            RequestError: It is malformed or cannot be met; the error's param is `param`.
        """
        key = msgspec.json.encode(schema)
        known = self._strict if strict else self._lax
        return known.get(key) or known.keep(key, compile(schema, param=param, strict=strict))


def document(wanted: OutputFormat, schemas: Schemas, key: bytes) -> str:
    """The text for a format other than `text`.

    Args:
        wanted: The format.
        schemas: Reads its schema.
        key: 16 bytes, the choice's.

    Raises:
        RequestError: The schema or the pattern is malformed or cannot be met.
    """
    own = derive(key, b"document")
    if wanted.kind == "choice":
        return wanted.choices[Draws(own).below(len(wanted.choices))]
    if wanted.kind == "regex":
        return pattern.generate(wanted.pattern, own, param=wanted.param)
    schema = wanted.schema if wanted.kind == "json_schema" else None
    compiled = schemas.read(_PLAIN_OBJECT if schema is None else schema, strict=wanted.strict, param=wanted.param)
    return to_json(compiled.generate(own))
