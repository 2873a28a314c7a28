"""Decodes request bodies: whatever is wrong with one becomes a `RequestError`.

The one place where msgspec's exceptions are mapped to the API's error object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from mockllm.allowed import wanted
from mockllm.errors import RequestError

T = TypeVar("T")

# How msgspec ends a message: "… - at `$.messages[0].role`" or, for an object's key, "- at `key` in `$.logit_bias`".
_PLACE = re.compile(r"(?s)(.*) - at (?:`key` in )?`(\$.*)`")
_WRONG_CHOICE = re.compile(r"(?s)Invalid (?:enum )?value (.*?)( - at `.*|)")
_UNKNOWN_KEY = re.compile(r"(?s)Object contains unknown field (`.*?`)( - at `.*|)")
_MISSING = re.compile(r"Object missing required field `(.*)`")


def decoder(type: type[T]) -> Callable[[bytes], T]:
    """A function that decodes a JSON body into `type`.

    Args:
        type: What msgspec can decode to; usually a Struct.

    Returns:
        `decode(body)`. It raises a `RequestError` with code `invalid_json` for what is no JSON, and
        `invalid_request` for JSON of another shape: then the message gives the JSON path, and
        `param` the same without `$.`, e.g. `messages[0].content`.
    """
    decode_json = msgspec.json.Decoder(type).decode

    def decode(body: bytes) -> T:
        try:
            return decode_json(body)
        except msgspec.ValidationError as error:
            raise invalid(with_choices(str(error), type, body)) from None
        except RecursionError:
            raise too_deep() from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _not_json(_reason(body, error)) from None

    return decode


def invalid(message: str) -> RequestError:
    """The error for a validation message of msgspec, also of `msgspec.convert`."""
    found = _PLACE.fullmatch(message)
    what, path = (found[1], found[2]) if found else (message, "$")
    missing = _MISSING.fullmatch(what)
    if missing:
        what, path = "this field is required", f"{path}.{missing[1]}"
    # `[...]` stands for some value of an object whose keys are free: the field is the object.
    param = path.removeprefix("$").removeprefix(".").split("[...]")[0]
    return RequestError(f"Invalid request, at {path}: {what}", param=param or None)


def with_choices(message: str, hint: Any, value: Any) -> str:
    """A validation message of msgspec which, where a choice or a key does not exist, says which do.

    Args:
        message: msgspec's.
        hint: The type that was asked for.
        value: What was decoded: JSON, or plain data.
    """
    choice, key = _WRONG_CHOICE.fullmatch(message), _UNKNOWN_KEY.fullmatch(message)
    if not choice and not key:
        return message
    if isinstance(value, (bytes, msgspec.Raw)):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return message  # msgspec had not come to that yet
    found = wanted(hint, value, message)
    if found is None:
        return message
    if choice:
        return f"must be {found[1]}, got {choice[1]}{choice[2]}"
    return f"there is no key {key[1]}; there are {found[1]}{key[2]}" if key else message


def too_deep() -> RequestError:
    """The error for JSON that is nested more deeply than the interpreter follows."""
    return _not_json("it is nested too deeply")


def _reason(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "it is empty"
    if body.startswith(b"\xef\xbb\xbf"):
        return "it begins with a byte order mark"
    if re.search(rb"\\u[dD][89a-fA-F]", body):
        # msgspec calls half a surrogate pair a truncated body; it may be either.
        return f"{error}, or an escaped surrogate stands alone"
    return str(error)


def _not_json(reason: str) -> RequestError:
    return RequestError(f"The request body is not valid JSON: {reason}", code="invalid_json")
