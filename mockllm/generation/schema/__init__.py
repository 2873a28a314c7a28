"""Values for a JSON schema: tool arguments and structured outputs.

`compile` reads a schema once and proves that it can be met, by writing a first value; `Compiled`
then writes a value for any key. What is accepted is always met: every value is checked before it
is given out, and where no draw of a key finds one, the first value takes its place.

A value is bounded whatever the schema (see `limits`), and so is the time that a schema may take.
"""

from __future__ import annotations

import json
from typing import Any

from mockllm.errors import RequestError
from mockllm.generation.keyed import KEY_BYTES, Draws
from mockllm.generation.schema.check import Checker
from mockllm.generation.schema.compiler import Compiler
from mockllm.generation.schema.graph import blame, refuse_loops, set_heights
from mockllm.generation.schema.limits import UnmetError, Work
from mockllm.generation.schema.node import INFINITE
from mockllm.generation.schema.shape import State, state_of
from mockllm.generation.schema.write import Kept, Writer

__all__ = ["ANY_OBJECT", "Compiled", "check", "compile", "generate", "to_json"]

_FIRST_KEYS = [bytes([number]) * KEY_BYTES for number in range(4)]
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


ANY_OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "summary": {"type": "string"},
        "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4},
        "count": {"type": "integer"},
        "done": {"type": "boolean"},
    },
    "required": ["title", "items"],
}
"""A schema for a reply that has to be some JSON object (`response_format: json_object`)."""


class Compiled:
    """A schema that can be met; made by `compile`, to be kept by the caller.

    Args:
        schema: The decoded schema; it must not be changed afterwards.
        strict: Properties that the schema does not name are never invented.

    Raises:
        UnmetError: It is malformed or cannot be met.
    """

    def __init__(self, schema: Any, strict: bool) -> None:
        self._strict = strict
        self._schema = schema  # keeps the objects alive that the nodes point to
        compiler = Compiler(schema)
        root = compiler.run()
        refuse_loops(compiler.nodes)
        set_heights(compiler.nodes)
        if root.height >= INFINITE:
            raise blame(root)
        self._root = root
        self._state: State = state_of(root)
        self._shapes: dict[State, Kept] = {}
        self._first = self._written(_FIRST_KEYS)

    def _written(self, keys: list[bytes]) -> Any:
        work = Work()
        refusal = "#", "no value was found that meets all its conditions"
        for key in keys:
            writer = Writer(Draws(key), work, self._shapes, self._strict)
            try:
                value = writer.value(self._state)
                if Checker(work).valid(self._root, value):
                    return value
            except UnmetError as error:
                refusal = error.path, error.reason
            except RecursionError:  # the limits leave room for 500 frames of the caller's
                refusal = "#", "its values are nested too deep"
        raise UnmetError(*refusal)

    def generate(self, key: bytes) -> Any:
        """A value that meets the schema, decided by the key.

        Args:
            key: 16 bytes; the same key gives the same value.
        """
        try:
            return self._written([key])
        except UnmetError:
            return self._first


def compile(schema: Any, *, param: str | None = None, strict: bool = False) -> Compiled:
    """Read a schema and prove that it can be met.

    Args:
        schema: A decoded JSON schema: a dict or a bool.
        param: The request field that holds it, for the error.
        strict: OpenAI's `strict: true`: no keys beyond `properties` are written.

    Raises:
        RequestError: 400; the schema is malformed or cannot be met. The message says where, as a
            JSON pointer. Its code is OpenAI's `invalid_function_parameters` for the schema of a
            tool or function, and none otherwise.
    """
    try:
        return Compiled(schema, strict)
    except UnmetError as error:
        tool = param is not None and param.startswith(("tools", "functions"))
        raise RequestError(
            f"Invalid JSON schema at {error.path}: {error.reason}.",
            param=param,
            code="invalid_function_parameters" if tool else None,
        ) from None


def check(schema: Any, *, param: str) -> None:
    """Refuse a schema that is malformed or cannot be met; see `compile`."""
    compile(schema, param=param)


def generate(schema: Any, key: bytes, *, strict: bool = False) -> Any:
    """A value for a schema used once; see `compile` and `Compiled.generate`."""
    return compile(schema, strict=strict).generate(key)


def to_json(value: Any) -> str:
    """The value as compact JSON (`{"city":"Paris","days":3}`), as OpenAI's models write arguments.

    Letters beyond ASCII stay as they are, but for lone surrogates, which UTF-8 cannot hold.
    """
    text = _ENCODE(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text
