"""The Responses API: `POST /v1/responses`, its stream, and what is read back of it."""

from mockllm.dialects.responses.body import ResponsesBody
from mockllm.dialects.responses.dialect import Responses
from mockllm.dialects.responses.store import ResponseStore, Stored

__all__ = ["ResponseStore", "Responses", "ResponsesBody", "Stored"]
