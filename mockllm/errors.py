"""The project's exceptions, told apart by whose fault they are.

An operator's mistake is a `ConfigError` and ends the start; a client's mistake is a
`RequestError` and becomes a 4xx in the API's own shape; a broken recorded stream is a
`ConversionError`. Everything else is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Mapping


class MockLLMError(Exception):
    """Base of every exception that mockllm raises on purpose."""


class ConfigError(MockLLMError):
    """A setting that cannot be used.

    Args:
        name: The setting as the operator wrote it (`--ttft-ms`, `MOCKLLM_TTFT_MS`, `ttft_ms`).
        value: What was given.
        allowed: What would have been accepted, as the end of the sentence "allowed: …".
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name}: {value!r} is not valid; allowed: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


class UnknownSettingError(ConfigError):
    """A setting that does not exist.

    Args:
        name: What the operator wrote.
        value: What was given for it, or None.
        nearest: The existing name most like it, or None.
    """

    def __init__(self, name: str, value: object, nearest: str | None) -> None:
        super().__init__(name, value, nearest or "a setting that --help lists")
        given = "" if value is None else f" (given {value!r})"
        hint = f"did you mean {nearest}?" if nearest else "--help lists all settings"
        self.args = (f"{name}: there is no such setting{given}; {hint}",)


class RequestError(MockLLMError):
    """A request that the API would refuse.

    Args:
        message: One sentence for a person.
        param: The request field at fault, or None.
        code: The API's machine-readable code, e.g. `invalid_request`.
        status: HTTP status, 400–599.
        type: The API's error class, e.g. `invalid_request_error`.
        headers: Further response headers, e.g. `{"allow": "GET"}`.

    Source: https://platform.openai.com/docs/guides/error-codes (the error object).
    """

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = "invalid_request",
        status: int = 400,
        type: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
        self.type = type
        self.headers = dict(headers or {})


class ConversionError(MockLLMError):
    """A chat chunk that cannot be converted.

    Args:
        message: What is wrong.
        chunk: Number of the chunk in its stream, from 0.
        path: JSON path inside the chunk, e.g. `$.choices[0].delta`.
    """

    def __init__(self, message: str, *, chunk: int, path: str = "$") -> None:
        super().__init__(f"chunk {chunk}, at {path}: {message}")
        self.message = message
        self.chunk = chunk
        self.path = path
