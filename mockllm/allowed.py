"""What values a type takes, in words, and what msgspec's complaint about a value leaves out.

msgspec says of a wrong choice that it is wrong, and of an unknown key that it is unknown. What a
person needs to know is what would have been right, and the type says that.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import fields

_COMPLAINT = re.compile(r"(?s)(.*?)(?: - at `\$(.*)`)?")
_UNKNOWN = re.compile("Object contains unknown field ")
_MISSING = re.compile("Object missing required field `(.*)`")
_REQUIRED = "; it has to be given"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def describe(hint: Any) -> str:
    """What values a type takes, in words.

    Returns:
        The end of the sentence "allowed: …", e.g. `a whole number from 0 to 65535`.
    """
    type = bare(hint)
    if type is bool:
        return "true or false"
    if type in (int, float):
        return ("a whole number" if type is int else "a finite number") + _bounds(hint)
    if type is str:
        return "a text that is not empty" if any(meta.min_length for meta in metas(hint)) else "a text"
    match get_origin(type):
        case origin if origin is Literal:
            return _or([str(choice) for choice in get_args(type)])
        case origin if origin is tuple:
            return f"any number of: {describe(get_args(type)[0])}"
        case origin if origin is dict:
            return f"pairs name=value, each value {describe(get_args(type)[1])}"
    kinds = [str(struct.__struct_config__.tag) for struct in _structs(hint)]
    return f"a table of one of the kinds {', '.join(kinds)}" if kinds[1:] else "a table key=value,key=value"


def _bounds(hint: Any) -> str:
    found = metas(hint)
    low, high = (next((getattr(m, side) for m in found if getattr(m, side) is not None), None) for side in ("ge", "le"))
    if low is not None and high is not None:
        return f" from {low} to {high}"
    signs = (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))
    bounds = [f" {sign} {getattr(m, side)}" for side, sign in signs for m in found if getattr(m, side) is not None]
    return " and".join(bounds)


def wanted(hint: Any, value: Any, complaint: str) -> tuple[str, str] | None:
    """What would have been allowed where msgspec's complaint points.

    Args:
        hint: The type that the value should have had.
        value: Plain data: what was given.
        complaint: The text of msgspec's ValidationError.

    Returns:
        The key at fault, or that is missing, and what it takes: `("at", "before-head or after-head")`.
        For an unknown key, an empty text and the keys that there are. None where the type says no
        more than the complaint.
    """
    found = _COMPLAINT.fullmatch(complaint)
    assert found is not None
    what, path = found[1], found[2] or ""
    steps = [(name, index) for name, index in _STEP.findall(path)]
    tag = steps.pop()[0] if what.startswith("Invalid value ") and steps else ""
    for name, index in steps:
        hint, value = _step(hint, value, name, index)
    if hint is None:
        return None
    tags = [str(struct.__struct_config__.tag) for struct in _structs(hint)]
    if tag:
        return tag, _or(tags)
    structs = _structs(hint, value)
    unknown, missing = _UNKNOWN.match(what), _MISSING.match(what)
    if unknown and len(structs) == 1:
        return "", ", ".join(_own_first(structs[0]))
    if missing and len(structs) == 1:
        return missing[1], describe(_fields(structs[0])[missing[1]]) + _REQUIRED
    if missing and tags[1:]:
        return missing[1], _or(tags) + _REQUIRED
    plain = without_none(bare(hint) if get_origin(bare(hint)) in (Union, UnionType) else hint)[0]
    choice = bare(plain) in (bool, int, float, str) or get_origin(bare(plain)) is Literal
    if not choice or not steps or not steps[-1][0]:
        return None
    pattern = next((meta.pattern for meta in metas(plain) if meta.pattern), None)
    return steps[-1][0], describe(plain) + (f" that matches {pattern}" if pattern else "")


def _step(hint: Any, value: Any, name: str, index: str) -> tuple[Any, Any]:
    """One step down, to a struct's field or a container's element; the hint is None where that leads nowhere."""
    if name:
        inner = value.get(name) if isinstance(value, Mapping) else None
        return next((_fields(struct)[name] for struct in _structs(hint, value) if name in _fields(struct)), None), inner
    for member in _members(hint):
        if get_args(member) and get_origin(member) is not Literal:
            last = index == "..." or not isinstance(value, Sequence) or int(index) >= len(value)
            return get_args(member)[-1 if get_origin(member) is dict else 0], None if last else value[int(index)]
    return None, None


@functools.cache
def _fields(struct: type[Struct]) -> dict[str, Any]:
    """The types of a struct's fields, by the name that JSON has for them."""
    hints = get_type_hints(struct, include_extras=True)
    return {field.encode_name: hints[field.name] for field in fields(struct)}


def _own_first(struct: type[Struct]) -> list[str]:
    """A struct's fields, what it inherits after what it adds."""
    added = [set(vars(each).get("__annotations__", ())) for each in struct.__mro__]
    return sorted(_fields(struct), key=lambda name: next((i for i, names in enumerate(added) if name in names), 0))


def _structs(hint: Any, value: Any = None) -> list[type[Struct]]:
    """The structs that a hint allows; of a tagged union, those that have the tag of a value that is given."""
    structs = [member for member in _members(hint) if hasattr(member, "__struct_config__")]
    if isinstance(value, Mapping):
        configs = [(struct, struct.__struct_config__) for struct in structs]
        structs = [struct for struct, c in configs if c.tag_field is None or value.get(c.tag_field) == c.tag]
    return structs


def _members(hint: Any) -> list[Any]:
    """What a hint is made of, unions and annotations taken apart."""
    hint = bare(hint)
    if get_origin(hint) in (Union, UnionType):
        return [part for member in get_args(hint) for part in _members(member)]
    return [hint]


def _or(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def bare(hint: Any) -> Any:
    """The hint without what is annotated."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def metas(hint: Any) -> list[Meta]:
    """The `Meta`s of a hint, and of the members of a union."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return [meta for meta in marks if isinstance(meta, Meta)] + metas(inner)
    if get_origin(hint) in (Union, UnionType):
        return [meta for member in get_args(hint) for meta in metas(member)]
    return []


def without_none(hint: Any) -> tuple[Any, bool]:
    """The hint without None, and whether None was in it."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    if NoneType not in members:
        return hint, False
    rest = tuple(member for member in members if member is not NoneType)
    return Union[rest], True  # noqa: UP007 - the members are only known at run time
