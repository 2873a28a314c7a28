"""Errors as the Messages API words them.

Source: https://docs.anthropic.com/en/api/errors; the SDK picks its exception by the status alone.
"""

from __future__ import annotations

import msgspec

from mockllm.errors import RequestError

_PATHS = ("/v1/messages", "/messages")

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def speaks_anthropic(path: str) -> bool:
    """Whether who asks for this path expects Anthropic's errors, be they raised before its dialect."""
    return path.startswith(_PATHS)


def anthropic_error(error: RequestError, request_id: str) -> bytes:
    """The body of an error reply."""
    kind = _TYPES.get(error.status) or ("invalid_request_error" if error.status < 500 else "api_error")
    return msgspec.json.encode(
        {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": request_id}
    )
