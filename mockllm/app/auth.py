"""Who may use the API routes: whoever sends one of the keys.

Source: https://platform.openai.com/docs/api-reference/authentication, RFC 6750 §2.1;
`x-api-key` is how Anthropic's clients send theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest

from mockllm.errors import RequestError

_SHOWN = 4
"""How many characters of either end of a long key an error repeats; of a short one, none."""


class Keys:
    """The keys that open the API routes.

    Args:
        keys: At least one; compared as UTF-8.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Pass a request that has a key.

        Args:
            headers: Lower-case names.

        Raises:
            RequestError: 401, it has none, or only wrong ones.
        """
        given = [key for key in (_bearer(headers.get(b"authorization")), headers.get(b"x-api-key")) if key]
        if not given:
            raise _refused("You didn't provide an API key; send it as 'Authorization: Bearer KEY'.", None)
        # Every key is compared with every other, whatever came of the last: the time tells nothing.
        # Digests have one length, so that the keys' own lengths do not show either.
        matches = [compare_digest(_digest(key), digest) for key in given for digest in self._digests]
        if not any(matches):
            raise _refused(f"Incorrect API key provided: {_masked(given[0])}.", "invalid_api_key")


def read_keys(text: str) -> list[str]:
    """The keys in a file's text: one a line; empty lines and those that begin with `#` are none."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


def _bearer(value: bytes | None) -> bytes | None:
    """The token of a Bearer credential; the scheme's case does not count (RFC 9110 §11.1)."""
    if value is None:
        return None
    scheme, _, token = value.strip().partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else None


def _masked(key: bytes) -> str:
    text = key.decode("utf-8", "replace")
    if len(text) < 4 * _SHOWN:
        return "*" * len(text)
    return f"{text[:_SHOWN]}{'*' * 8}{text[-_SHOWN:]}"


def _refused(message: str, code: str | None) -> RequestError:
    return RequestError(message, status=401, code=code, headers={"www-authenticate": "Bearer"})
