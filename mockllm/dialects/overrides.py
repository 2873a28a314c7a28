"""Reads what a request changes about its own answer: body key `mockllm`, headers `x-mockllm-…`.

Whatever is wrong with it is refused, and so is a key that does not exist: a typo must not go unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mockllm.allowed import wanted
from mockllm.dialects.asked_fault import to_fault
from mockllm.dialects.decode import invalid, with_choices
from mockllm.errors import RequestError
from mockllm.generation.distributions import Distribution
from mockllm.generation.overrides import KEYS, GivenCall, Match, Override, ScriptedReply, merged
from mockllm.generation.overriding import check_whole

BODY_KEY = "mockllm"
_PREFIX = b"x-mockllm-"

_decode = msgspec.json.Decoder(Override).decode
_decode_script = msgspec.json.Decoder(list[ScriptedReply]).decode


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_HEADERS: Mapping[str, Callable[[str], Any]] = {
    "ttft_ms": _number,
    "itl_ms": _number,
    "output_tokens": _number,
    "text": str,
    "reasoning": str,
    "refusal": str,
    "finish_reason": str,
    "seed": _number,
}
HEADERS = {name: f"x-mockllm-{name.replace('_', '-')}" for name in _HEADERS}
"""The header of each key that has one. Underscores are taken too, but proxies tend to drop those."""

FAULT_HEADER = b"x-mockllm-fault"
"""Is no override of the answer, but says what goes wrong with it."""

_KNOWN_SETS = 512
_KNOWN_NAMES, _KNOWN_BYTES = 64, 2048  # of one set: the memory stays below two megabytes


class OverrideReader:
    """Reads overrides off requests; it remembers which sets of header names hold none.

    Args:
        not_ours: Lower-case name of a header that only looks like one of ours, or None.
    """

    def __init__(self, not_ours: bytes | None = None) -> None:
        self._others = (not_ours, FAULT_HEADER)
        self._names: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}

    def read(self, raw: Raw | None, headers: Mapping[bytes, bytes]) -> Override | None:
        """What a request changes about its own answer; None for nothing. The body's keys win over headers.

        Args:
            raw: The body key `mockllm`, undecoded.
            headers: The request's.

        Raises:
            RequestError: Its param is the key (`mockllm.ttft_ms`) or the header.
        """
        names = self.in_headers(headers)
        if raw is None and not names:
            return None
        found = _of_body(raw) if raw is not None else None
        if names:
            under = _of_headers({name: headers[name] for name in names})
            found = under if found is None else merged(under, found)
        return None if found is None else checked(found)

    def in_headers(self, headers: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
        """The names of the headers that change the answer."""
        # Clients send the same names again and again: 0.3 µs for twelve, where looking at each takes 1.7.
        all_names = tuple(headers)
        names = self._names.get(all_names)
        return self._remember(all_names) if names is None else names

    def _remember(self, all_names: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """The names of ours among them."""
        names = tuple([name for name in all_names if name.startswith(_PREFIX) and name not in self._others])
        if len(all_names) <= _KNOWN_NAMES and sum(map(len, all_names)) <= _KNOWN_BYTES:
            if len(self._names) >= _KNOWN_SETS:
                self._names.clear()
            self._names[all_names] = names
        return names


def checked(override: Override) -> Override:
    """A request's override, if its keys agree.

    Raises:
        RequestError: Its param is the key.
    """
    check_whole(override, BODY_KEY)
    if override.fault is not None:
        to_fault(override.fault, f"{BODY_KEY}.fault")
    return override


def read_script(body: bytes) -> list[ScriptedReply]:
    """The replies in a JSON list.

    Raises:
        RequestError: Its param is the place, e.g. `script[0].ttft_ms`.
    """
    return _checked(_decoded(_decode_script, list[ScriptedReply], body, "script"))


def to_script(replies: Iterable[ScriptedReply | Mapping[str, Any]]) -> list[ScriptedReply]:
    """Replies that are structs or plain data, checked.

    Raises:
        RequestError: See `read_script`.
    """
    try:
        return read_script(msgspec.json.encode(list(replies)))
    except TypeError as error:
        raise RequestError(f"The script is not made of JSON values: {error}", param="script") from None


def _checked(script: list[ScriptedReply]) -> list[ScriptedReply]:
    for number, reply in enumerate(script):
        check_whole(reply, f"script[{number}]")
        if reply.fault is not None:
            to_fault(reply.fault, f"script[{number}].fault")
    return script


def _of_body(raw: Raw) -> Override | None:
    if bytes(raw) == b"null":
        return None
    override: Override = _decoded(_decode, Override, raw, BODY_KEY)
    return override


def _of_headers(headers: Mapping[bytes, bytes]) -> Override:
    values: dict[str, Any] = {}
    for header, value in headers.items():
        name = header[len(_PREFIX) :].decode("latin-1").replace("-", "_")
        shown = header.decode("latin-1")
        read = _HEADERS.get(name)
        if read is None:
            raise RequestError(
                f"There is no header {shown[:100]!r}"
                + (_hint(name, _HEADERS, HEADERS.__getitem__) or f"; there are {', '.join(HEADERS.values())}"),
                param=shown[:100],
            )
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        try:
            values[name] = read(text)
            msgspec.convert({name: values[name]}, Override)
        except ValueError as error:  # msgspec's are ValueErrors too
            why = str(error).split(" - at ")[0] if isinstance(error, msgspec.ValidationError) else "Expected a number"
            if found := wanted(Override, values, str(error)):
                why = f"must be {found[1]}"
            raise RequestError(f"Invalid header {shown}: {why}, got {text[:100]!r}", param=shown) from None
    return msgspec.convert(values, Override)


def _decoded(decode: Callable[[Any], Any], hint: Any, data: Any, where: str) -> Any:
    """Decode, with `where` in front of the paths of errors."""
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        message = str(error) if _UNKNOWN in str(error) else with_choices(str(error), hint, data)
        what, at, path = message.rpartition(" - at `")
        if not at:
            what, path = message, "$`"
        what = _corrected(what)
        separator = "" if path.startswith(("$[", "$`")) else "."
        message = f"{what} - at `$.{where}{separator}{path.removeprefix('$').removeprefix('.')}"
        raise _naming_unknown(invalid(message), what) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{where} is not valid JSON: {error}", param=where, code="invalid_json") from None


_UNKNOWN = "Object contains unknown field `"
_ALL_NAMES = sorted(
    {name for struct in (ScriptedReply, GivenCall, Match, *Distribution.__args__) for name in struct.__struct_fields__}
)


def _corrected(what: str) -> str:
    """The message for an unknown key names the one that was probably meant."""
    if not what.startswith(_UNKNOWN):
        return what
    name = what[len(_UNKNOWN) :].rstrip("`")
    return f"there is no key `{name[:100]}`{_hint(name, _ALL_NAMES) or '; there are ' + ', '.join(KEYS)}"


def _naming_unknown(error: RequestError, what: str) -> RequestError:
    """The error for an unknown key has the key in its param."""
    if what.startswith("there is no key `"):
        error.param = f"{error.param}.{what.split('`')[1]}"
    return error


def _hint(name: str, known: Iterable[str], show: Callable[[str], str] = str) -> str:
    import difflib  # 2 ms to import, and only ever needed for a mistake

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {show(near[0])!r}?" if near else ""
