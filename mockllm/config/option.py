"""What one setting is, read off one field of a settings struct.

A settings struct declares each setting once:

    ttft_ms: Annotated[float, setting("Mean time to first token.", group="Timing", ge=0)] = 150.0

and from that field an `Option` derives its flag (`--ttft-ms`), its environment variable
(`MOCKLLM_TTFT_MS`), its key in the configuration file (`ttft_ms`), its line in `--help` and
what an error message says is allowed. Fields may be numbers, texts, booleans and literals, any
of them `| None`; `tuple[X, ...]` is a repeatable flag, `dict[str, X]` a table, and X may be a
struct or a tagged union of structs. `setting(…)` stands on the whole field, and what bounds an
element on the element: `Annotated[tuple[Annotated[int, Meta(ge=1)], ...], setting(…)]`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import fields

from mockllm.allowed import bare, describe, metas, without_none

Kind = Literal["value", "switch", "list", "table"]

ENV_PREFIX = "MOCKLLM_"


class Option(Struct, frozen=True, kw_only=True):
    """One setting.

    Attributes:
        field: The struct's attribute.
        name: The key in the configuration file; `flag` and `env` derive from it.
        group: Heading in `--help`.
        help: One or two sentences, units included.
        kind: `switch` is a boolean, `list` a repeatable flag, `table` a mapping.
        type: The whole annotation, None included.
        value_type: The annotation of one value, without None: of an element for a list or table.
        optional: None is a value.
        default: The value when no source gives one.
        metavar: The value's name in `--help`; empty for a switch.
        allowed: The end of the sentence "allowed: …".
        parse: Turns a flag's text into what the file would hold, in place of the usual rules.
        opposite: A second flag that turns a switch off, beside `--no-…`.
        guidellm: The setting exists under this name in guidellm's mock server too.
        secret: No text shows its value.
    """

    field: str
    name: str
    group: str
    help: str
    kind: Kind
    type: Any
    value_type: Any
    optional: bool
    default: Any
    metavar: str
    allowed: str
    parse: Callable[[str], Any] | None = None
    opposite: str | None = None
    guidellm: bool = False
    secret: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        return ENV_PREFIX + self.name.upper()

    @property
    def default_text(self) -> str:
        """The default as a person would write it."""
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        if self.default is None or self.default in ((), {}):
            return "none"
        if isinstance(self.default, dict):
            return ",".join([f"{key}={value}" for key, value in self.default.items()])
        if isinstance(self.default, float) and self.default.is_integer():
            return str(int(self.default))
        return str(self.default)


def setting(
    help: str,
    *,
    group: str,
    name: str | None = None,
    metavar: str | None = None,
    allowed: str | None = None,
    parse: Callable[[str], Any] | None = None,
    opposite: str | None = None,
    guidellm: bool = False,
    secret: bool = False,
    **constraints: Any,
) -> Meta:
    """Declare a setting, inside `Annotated`.

    Args:
        help: What it does, with its unit.
        group: Heading in `--help`.
        name: The setting's name, where the attribute's own will not do (`fault` for `faults`).
        metavar: The value's name in `--help`; derived from the type when not given.
        allowed: What an error message says is allowed; derived when not given.
        parse: See `Option`.
        opposite: See `Option`.
        guidellm: See `Option`.
        secret: See `Option`.
        constraints: `msgspec.Meta`'s own: `ge`, `le`, `min_length`, `pattern`, …
    """
    own: dict[str, Any] = {"group": group, "name": name, "metavar": metavar, "allowed": allowed, "parse": parse}
    own |= {"opposite": opposite, "guidellm": guidellm, "secret": secret}
    return Meta(description=help, extra=own, **constraints)


@functools.cache
def options(settings: type[Struct]) -> tuple[Option, ...]:
    """The settings of a struct, in the order of its fields.

    Raises:
        TypeError: A field has no `setting(…)` or no default.
    """
    hints = get_type_hints(settings, include_extras=True)
    return tuple(_option(field.name, hints[field.name], _default(field)) for field in fields(settings))


def _default(field: Any) -> Any:
    if field.required:
        raise TypeError(f"setting {field.name!r} needs a default")
    # msgspec keeps an empty list, dict or struct default as its factory.
    return field.default_factory() if callable(field.default_factory) else field.default


def _option(field: str, hint: Any, default: Any) -> Option:
    meta = next((m for m in metas(hint) if m.extra and "group" in m.extra), None)
    if meta is None or meta.extra is None:
        raise TypeError(f"field {field!r} has no setting(…)")
    extra = meta.extra
    name = extra["name"] or field
    plain, optional = without_none(hint)
    container = get_origin(bare(plain))
    kind: Kind = "value"
    value_type = plain
    if container is tuple and get_args(bare(plain))[-1] is ...:
        kind, value_type = "list", get_args(bare(plain))[0]
    elif container is dict:
        kind, value_type = "table", get_args(bare(plain))[1]
    elif bare(plain) is bool:
        kind = "switch"
    allowed = extra["allowed"] or describe(plain)
    return Option(
        field=field,
        name=name,
        group=extra["group"],
        help=meta.description or "",
        kind=kind,
        type=hint,
        value_type=value_type,
        optional=optional,
        default=default,
        metavar="" if kind == "switch" else extra["metavar"] or _metavar(kind, value_type),
        allowed=f"{allowed}, or none" if optional else allowed,
        parse=extra["parse"],
        opposite=extra["opposite"],
        guidellm=extra["guidellm"],
        secret=extra["secret"],
    )


def _metavar(kind: Kind, value_type: Any) -> str:
    type = bare(value_type)
    if get_origin(type) is Literal:
        return "|".join(map(str, get_args(type)))
    known = {int: "N", float: "X", str: "TEXT"}.get(type, "KEY=VALUE,...")
    return f"NAME={known},..." if kind == "table" else known
