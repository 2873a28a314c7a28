"""Formats of strings: how each is written, and how it is recognised.

Writers use ranges in which every validator agrees: years 2020-2029, days 1-28, documentation
addresses (RFC 5737, RFC 3849) and domains (RFC 2606). An unknown format is an annotation and
constrains nothing.

Sources: JSON Schema validation 2020-12 §7.3; OpenAPI 3 (`byte`, `binary`); pydantic's `uuid4`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import date
from ipaddress import IPv4Address, IPv6Address

from mockllm.generation.keyed import Draws
from mockllm.generation.pattern import Pattern, PatternError

_NAMES = ("alex", "sam", "maria", "chen", "noor", "ines", "tom", "priya", "lena", "omar")
_DOMAINS = ("example.com", "example.org", "example.net", "mail.example.com", "shop.example.org")
_PATHS = ("docs", "items/42", "search", "about", "users/7", "news/today", "api/v1/status")
_LONGEST_CHECKED = 2048
"""A longer text has none of the formats; bounds the cost of the checks, which are linear all the same."""


def _pick(draws: Draws, words: tuple[str, ...]) -> str:
    return words[draws.below(len(words))]


def _date(draws: Draws) -> str:
    number = draws.below(10 * 12 * 28)
    return f"{2020 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"


def _clock(draws: Draws) -> str:
    number = draws.below(86_400)
    return f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"


def _date_time(draws: Draws) -> str:
    return f"{_date(draws)}T{_clock(draws)}Z"


def _duration(draws: Draws) -> str:
    choice = draws.below(4)
    if choice == 0:
        return f"P{1 + draws.below(30)}D"
    if choice == 1:
        return f"P{1 + draws.below(8)}W"
    return f"PT{1 + draws.below(23)}H{1 + draws.below(59)}M" if choice == 2 else f"PT{1 + draws.below(59)}M"


def _email(draws: Draws) -> str:
    return f"{_pick(draws, _NAMES)}@{_pick(draws, _DOMAINS[:3])}"


def _uuid(draws: Draws) -> str:
    number = draws.below(1 << 128)
    number = number & ~(0xF << 76) | 4 << 76  # version 4
    number = number & ~(0x3 << 62) | 2 << 62  # RFC 9562's variant
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _uri(draws: Draws) -> str:
    return f"https://{_pick(draws, _DOMAINS)}/{_pick(draws, _PATHS)}"


def _ipv4(draws: Draws) -> str:
    return f"{_pick(draws, ('192.0.2', '198.51.100', '203.0.113'))}.{1 + draws.below(254)}"


def _ipv6(draws: Draws) -> str:
    return f"2001:db8::{1 + draws.below(0xFFFE):x}"


def _base64(draws: Draws) -> str:
    return b64encode(f"{_pick(draws, _NAMES)}:{draws.below(1000)}".encode()).decode()


def _pointer(draws: Draws) -> str:
    return f"/{_pick(draws, ('items', 'data', 'users', 'results'))}/{draws.below(10)}"


def _regex(draws: Draws) -> str:
    return _pick(draws, ("^[a-z]+$", r"\d{2,4}", "^(yes|no)$", "[A-Z][a-z]*"))


WRITERS: dict[str, Callable[[Draws], str]] = {
    "date": _date, "date-time": _date_time, "time": lambda draws: _clock(draws) + "Z", "duration": _duration,
    "email": _email, "idn-email": _email, "hostname": lambda draws: _pick(draws, _DOMAINS),
    "idn-hostname": lambda draws: _pick(draws, _DOMAINS), "ipv4": _ipv4, "ipv6": _ipv6,
    "uuid": _uuid, "uuid1": _uuid, "uuid3": _uuid, "uuid4": _uuid, "uuid5": _uuid,
    "uri": _uri, "url": _uri, "iri": _uri, "http-url": _uri,
    "uri-reference": lambda draws: "/" + _pick(draws, _PATHS),
    "iri-reference": lambda draws: "/" + _pick(draws, _PATHS),
    "uri-template": lambda draws: f"https://{_pick(draws, _DOMAINS)}/{{id}}",
    "json-pointer": _pointer, "relative-json-pointer": lambda draws: f"{draws.below(3)}{_pointer(draws)}",
    "regex": _regex, "byte": _base64, "base64": _base64,
    "path": lambda draws: f"/data/{_pick(draws, _NAMES)}/report-{draws.below(100)}.txt",
    "ipv4network": lambda draws: "192.0.2.0/24",
}  # fmt: skip
"""Writers by name. Those from `path` on, and `byte`, are not checked: they bind nobody."""


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10 and text.isascii()


_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.A | re.I)
_DURATION = re.compile(r"P(\d+W|(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.A)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\\\"<>^`{|}]*", re.A)
_URI_REFERENCE = re.compile(r"[^\s\\\"<>^`{|}]*")
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


def _is_address(kind: type[IPv4Address] | type[IPv6Address]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return "%" not in text

    return check


def _is_regex(text: str) -> bool:
    try:
        Pattern(text)
    except PatternError:
        return False
    return True


def _is_host(text: str) -> bool:
    return len(text) <= 253 and _HOST.fullmatch(text) is not None


_CHECKS: dict[str, Callable[[str], object]] = {
    "date": _is_date, "time": _TIME.fullmatch, "duration": _DURATION.fullmatch, "uuid": _UUID.fullmatch,
    "date-time": lambda text: _is_date(text[:10]) and text[10:11] in ("T", "t") and _TIME.fullmatch(text[11:]),
    "email": lambda text: "@" in text, "idn-email": lambda text: "@" in text,
    "hostname": _is_host, "ipv4": _is_address(IPv4Address), "ipv6": _is_address(IPv6Address),
    "uri": _URI.fullmatch, "uri-reference": _URI_REFERENCE.fullmatch, "json-pointer": _POINTER.fullmatch,
    "regex": _is_regex,
}  # fmt: skip


def conforms(name: str, text: str) -> bool:
    """Whether `text` has the format; an unknown format is had by every text."""
    check = _CHECKS.get(name)
    return check is None or (len(text) <= _LONGEST_CHECKED and bool(check(text)))
