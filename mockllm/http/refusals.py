"""What h11 lets through and RFC 9110 or RFC 9112 tell (or allow) a server to refuse.

h11 is the authority on the grammar. It is lenient where real clients are odd, and normalises
some things away (folded lines, line ends, repeated lengths), so these rules look at the raw
bytes of the head as well as at h11's event. What h11 0.16 accepts and is refused here:

| what | answer | source |
|---|---|---|
| a major version other than 1 (`HTTP/9.9`, `PRI * HTTP/2.0`) | 505 | RFC 9110 §15.6.6 |
| a line that ends in LF without CR | 400 | RFC 9112 §2.2: accepting it is optional |
| CR without LF | 400 | RFC 9112 §2.2 |
| a header folded over several lines | 400 | RFC 9112 §5.2 |
| control characters, tab excepted | 400 | RFC 9110 §5.5 |
| more than one `Content-Length`, a list of them, equal or not | 400 | RFC 9112 §6.3, item 5 |
| `Content-Length` beside `Transfer-Encoding` | 400 | RFC 9112 §6.1, §6.3 item 3 |
| `Transfer-Encoding` in HTTP/1.0 | 400 | RFC 9112 §6.1 |
| no `Host` in HTTP/1.2 and above | 400 | RFC 9112 §3.2 with RFC 9110 §2.5 |
| a `Host` that is not host[:port] | 400 | RFC 9112 §3.2 |
| a target that is no path, no http(s) URI, and not `OPTIONS *` | 400 | RFC 9112 §3.2 |
| a fragment in the target, a user name in its authority | 400 | RFC 9112 §3.2, RFC 9110 §4.2.4 |
| `CONNECT` | 501 | RFC 9110 §9.1, §9.3.6 |
| an expectation other than `100-continue` | 417 | RFC 9110 §10.1.1 |
| in chunk lines and trailers: LF or CR alone, controls, folds | 400 | RFC 9112 §7.1, §2.2, §5.2 |
| a chunk line of more than 512 bytes, trailers of more than 8192 | 400 | RFC 9112 §7.1.1 |
| more than 256 header lines | 431 | RFC 6585 §5 |

h11 itself refuses: no or two `Host` in HTTP/1.1, white space before the colon or the first
header, signed, empty, non-numeric and differing lengths, names that are no tokens, NUL, and
(501) every transfer coding but one `chunked`. `Upgrade` is ignored (RFC 9110 §7.8), so is an
expectation in HTTP/1.0, and HTTP/1.2 to 1.9 are read as 1.1 (RFC 9110 §2.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mockllm.errors import RequestError


class HttpError(RequestError):
    """A request that HTTP itself forbids, or that is over a limit.

    The reply carries `Connection: close`, and nothing after the request is interpreted, because
    it is not known where the request ends.

    Args:
        status: 400 to 599.
        message: One sentence for a person.
        code: The API's machine-readable code.

    Attributes:
        method: As far as the request line could be read, else "".
        target: The same, without the query.
        first_byte_s: When the request's first byte was read; None when a reader did not raise this.
    """

    def __init__(self, status: int, message: str, code: str = "invalid_request") -> None:
        super().__init__(message, status=status, code=code)
        self.method = ""
        self.target = ""
        self.first_byte_s: float | None = None


MAX_HEADERS = 256

_LONE_CR_OR_LF = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_FOLD = re.compile(rb"\n[ \t]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LENGTH = re.compile(rb"\ncontent-length:([^\n]*)", re.IGNORECASE)

# uri-host [ ":" port ] of RFC 9110 §7.2 over RFC 3986 §3.2.2; the host may be empty. Inside
# brackets also a zone, since that is how link-local addresses are written (RFC 6874).
_HOST = re.compile(
    rb"(?:\[(?:[0-9A-Fa-f:.]+(?:%[A-Za-z0-9\-._~%]+)?|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]"
    rb"|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
)
_ABSOLUTE = re.compile(r"(?i:https?)://([^/?]*)(.*)")


def is_host(value: bytes) -> bool:
    """Whether `value` may stand in `Host` (RFC 9110 §7.2)."""
    return _HOST.fullmatch(value) is not None


def check_count(raw: bytes | bytearray) -> None:
    """Refuse a head of too many lines: each costs time, however short it is.

    Raises:
        HttpError: 431.
    """
    if raw.count(b"\n") > MAX_HEADERS + 2:  # the request line and the empty one
        raise HttpError(431, f"The request has more than {MAX_HEADERS} header lines.", "headers_too_large")


def check_lengths(raw: bytes | bytearray) -> None:
    """Refuse repeated lengths, which h11 makes one of when they are equal.

    Args:
        raw: A head that h11 accepts, from its first byte to the end of the blank line.

    Raises:
        HttpError: 400.
    """
    lengths = _LENGTH.findall(raw)
    if len(lengths) > 1 or (lengths and b"," in lengths[0]):
        raise HttpError(400, "Content-Length is given more than once.")


def check_lines(raw: bytes | bytearray) -> None:
    """Refuse lone CR or LF, folded lines and control characters in any framing bytes.

    Raises:
        HttpError: 400.
    """
    if _LONE_CR_OR_LF.search(raw):
        raise HttpError(400, "Lines must end in CR LF, and neither may stand alone.")
    if _FOLD.search(raw):
        raise HttpError(400, "A header may not be folded over several lines.")
    if _CONTROL.search(raw):
        raise HttpError(400, "A header contains a control character.")


def check_version(version: bytes) -> bool:
    """Tell HTTP/1.0 from HTTP/1.1, and refuse other major versions.

    Args:
        version: As h11 gives it, e.g. `b"1.1"`.

    Returns:
        True for HTTP/1.0.

    Raises:
        HttpError: 505.
    """
    if version[:2] != b"1.":
        said = version.decode("ascii")
        raise HttpError(505, f"HTTP/{said} is not supported; use HTTP/1.1.", "http_version_not_supported")
    return version == b"1.0"


def check_headers(headers: Iterable[tuple[bytes, bytes]], http10: bool) -> dict[bytes, bytes]:
    """Join repeated headers after the checks that need them single.

    Args:
        headers: Lower-case names and values, in order, as h11 gives them.
        http10: The request is HTTP/1.0.

    Returns:
        One value for each name.

    Raises:
        HttpError: 400 or 417.
    """
    joined: dict[bytes, bytes] = {}
    for name, value in headers:
        before = joined.get(name)
        joined[name] = value if before is None else before + b", " + value
    host = joined.get(b"host")
    if host is None:
        if not http10:
            raise HttpError(400, "The Host header is missing.")
    elif not is_host(host):
        raise HttpError(400, "The Host header is not a host name with an optional port.")
    if b"transfer-encoding" in joined:
        if http10:
            raise HttpError(400, "HTTP/1.0 has no Transfer-Encoding.")
        if b"content-length" in joined:
            raise HttpError(400, "Content-Length and Transfer-Encoding exclude each other.")
    if not http10 and not tokens(joined.get(b"expect", b"")) <= {b"100-continue"}:
        raise HttpError(417, "The only expectation known here is 100-continue.", "expectation_failed")
    return joined


def tokens(value: bytes) -> set[bytes]:
    """The elements of a comma-separated list, in lower case (RFC 9110 §5.6.1)."""
    return {token for piece in value.lower().split(b",") if (token := piece.strip(b" \t"))}


def split_target(method: str, target: str) -> tuple[str, str, str | None]:
    """Take a request target apart (RFC 9112 §3.2).

    Args:
        method: The request's method.
        target: What stood between method and version.

    Returns:
        Path (`/…`, or `*`), query, and the authority of an absolute target, else None.

    Raises:
        HttpError: 400, or 501 for CONNECT.
    """
    if method == "CONNECT":
        raise HttpError(501, "CONNECT is not supported: this server is no proxy.", "method_not_supported")
    if "#" in target:
        raise HttpError(400, "The request target contains a fragment.")
    if target == "*" and method == "OPTIONS":
        return "*", "", None
    authority = None
    if target[0] != "/":
        match = _ABSOLUTE.fullmatch(target)
        if match is None:
            raise HttpError(400, "The request target must be a path that begins with a slash, or an http URI.")
        authority, target = match[1], match[2]
        if authority[:1] in ("", ":") or not is_host(authority.encode("ascii")):
            raise HttpError(400, "The request target does not name a valid host.")
        if not target and method == "OPTIONS":
            return "*", "", authority  # RFC 9112 §3.2.4: an empty path stands for the server
    path, _, query = target.partition("?")
    return path or "/", query, authority
