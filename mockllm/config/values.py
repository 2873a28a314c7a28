"""Values of settings: read from text, and checked whatever source they came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from mockllm.allowed import wanted
from mockllm.config.option import Option, options
from mockllm.errors import ConfigError

_SWITCH_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class Settings(Struct, frozen=True, kw_only=True):
    """Base of a settings struct: values are checked however the struct is made.

    Raises:
        ConfigError: A value is not allowed; its name is the attribute's.
    """

    def __post_init__(self) -> None:
        for option in options(type(self)):
            given = getattr(self, option.field)
            value = check(option, given, option.field)
            if value is not given:  # a list for a tuple, an int for a float
                force_setattr(self, option.field, value)

    def __hash__(self) -> int:
        """Equal settings have one hash; a table, which has none of its own, counts as its pairs."""
        values = [getattr(self, name) for name in self.__struct_fields__]
        return hash(tuple([frozenset(value.items()) if isinstance(value, dict) else value for value in values]))

    def __repr__(self) -> str:
        """What is not as usual; of a secret, only that there is one."""
        changed = [(option, getattr(self, option.field)) for option in options(type(self))]
        shown = [
            f"{option.field}={'***' if option.secret else repr(value)}"
            for option, value in changed
            if value != option.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def check(option: Option, value: Any, name: str) -> Any:
    """The value as the struct will hold it.

    Args:
        option: The setting.
        value: Plain data (from a file or a caller), or already the setting's own type.
        name: The setting as its source calls it, for the error.

    Raises:
        ConfigError: It is of another type, out of bounds, or not finite.
    """
    return _convert(option, value, value, name, strict=True)


def read(option: Option, texts: Sequence[str], name: str) -> Any:
    """The value that command-line or environment texts stand for.

    Args:
        option: The setting.
        texts: For a list or table one text per element; otherwise the last one counts.
        name: The setting as its source calls it, for the error.

    Raises:
        ConfigError: A text cannot be read, or its value is not allowed.
    """
    if option.kind not in ("list", "table"):
        texts = texts[-1:]
    given = texts[0] if len(texts) == 1 else list(texts)
    if option.optional and len(texts) == 1 and texts[0].strip().lower() == "none":
        return None
    try:
        plain = _plain(option, texts)
    except ValueError as error:
        raise ConfigError(name, given, option.allowed) from error
    # Inside a table, and where a setting reads its own text, values are still texts: hence not strict.
    lax = option.kind in ("list", "table") or option.parse is not None
    return _convert(option, plain, given, name, strict=not lax)


def split_list(option: Option, text: str) -> list[str]:
    """The elements in one text, as an environment variable holds a list.

    Elements are separated by commas, or by semicolons where commas separate the fields of an
    element; a text that begins with `[` is a JSON array.

    Raises:
        ValueError: It begins with `[` but is no JSON array.
    """
    if text.lstrip().startswith("["):
        items = msgspec.json.decode(text, type=list[Any])
        return [item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in items]
    separator = "," if _is_scalar(option.value_type) else ";"
    return [part.strip() for part in text.split(separator) if part.strip()]


def _convert(option: Option, value: Any, given: Any, name: str, *, strict: bool) -> Any:
    try:
        converted = msgspec.convert(value, option.type, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigError(name, _shown(option, given), _allowed(option, value, str(error))) from error
    if not _finite(converted):
        raise ConfigError(name, _shown(option, given), option.allowed)
    return converted


def _allowed(option: Option, value: Any, why: str) -> str:
    """What is allowed: inside a table, for the key that is wrong."""
    found = wanted(option.type, value, why)
    if found is None:
        return option.allowed
    key, words = found
    return f"for {key}: {words}" if key else f"the keys {words}"


def _shown(option: Option, given: Any) -> Any:
    return "***" if option.secret and given else given


def _plain(option: Option, texts: Sequence[str]) -> Any:
    """Texts as the plain data that a configuration file would hold."""
    if option.kind == "list":
        return [_element(option, text) for text in texts]
    if option.kind == "table":
        pairs: dict[str, Any] = {}
        for text in texts:
            pairs |= _pairs(text)
        return pairs
    return _element(option, texts[0])


def _element(option: Option, text: str) -> Any:
    if option.parse is not None:
        return option.parse(text)
    return _scalar(option.value_type, text) if _is_scalar(option.value_type) else _pairs(text)


def _is_scalar(hint: Any) -> bool:
    hint = _bare(hint)
    return hint in (bool, int, float, str) or get_origin(hint) is Literal


def _scalar(hint: Any, text: str) -> Any:
    hint = _bare(hint)
    if hint is str:
        return text
    word = text.strip()
    if hint is bool:
        if word.lower() not in _SWITCH_WORDS:
            raise ValueError(f"{word!r} is neither true nor false")
        return _SWITCH_WORDS[word.lower()]
    if hint in (int, float):
        return hint(word)
    return next((choice for choice in get_args(hint) if str(choice).lower() == word.lower()), word)


def _pairs(text: str) -> dict[str, Any]:
    """`key=value,key=value`, or a JSON object."""
    if text.lstrip().startswith("{"):
        return msgspec.json.decode(text, type=dict[str, Any])
    pairs = dict[str, Any]()
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if hasattr(hint, "__metadata__") else hint


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return True
    return all(map(_finite, value))
