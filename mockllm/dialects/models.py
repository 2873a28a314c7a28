"""`GET /v1/models` and `GET /v1/models/{id}`.

Source: https://platform.openai.com/docs/api-reference/models; `max_model_len` and `root` as in vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mockllm.errors import RequestError

MOST_CHARACTERS = 1024
"""Of a model's name: it stands in every chunk of a stream and in every record."""


class Models:
    """The models that are served.

    Args:
        names: At least one; the first is the one a request without a model gets.
        created: Unix time in whole seconds.
        max_model_len: Context length in tokens.
        strict: Requests for other models are refused, rather than served like these.
    """

    def __init__(self, names: Sequence[str], created: int, max_model_len: int, *, strict: bool = False) -> None:
        self._strict = strict
        self._default = names[0]
        self._cards = {
            name: {
                "id": name,
                "object": "model",
                "created": created,
                "owned_by": "mockllm",
                "root": name,
                "parent": None,
                "max_model_len": max_model_len,
            }
            for name in names
        }

    def resolve(self, name: str) -> str:
        """The model that answers a request for `name`; `""` asks for none in particular, as vLLM allows.

        Raises:
            RequestError: 404, there is no such model and `strict` is on; 400, the name is too long for any.
        """
        if not name:
            return self._default
        if len(name) > MOST_CHARACTERS:
            raise RequestError(
                f"model must have at most {MOST_CHARACTERS} characters, got {len(name)}.",
                param="model",
            )
        if self._strict and name not in self._cards:
            raise unknown_model(name)
        return name

    def list(self) -> bytes:
        """The body that lists all."""
        return msgspec.json.encode({"object": "list", "data": self.cards})

    def one(self, name: str) -> bytes:
        """The body for one.

        Raises:
            RequestError: 404, there is no such model.
        """
        return msgspec.json.encode(self.card(name))

    @property
    def cards(self) -> Sequence[Mapping[str, Any]]:
        """What is told of each model."""
        return tuple(self._cards.values())

    def card(self, name: str) -> Mapping[str, Any]:
        """What is told of one.

        Raises:
            RequestError: 404, there is no such model.
        """
        card = self._cards.get(name)
        if card is None:
            raise unknown_model(name)
        return card


def unknown_model(name: str) -> RequestError:
    """The error for a model that is not served."""
    return RequestError(
        f"The model {name[:200]!r} does not exist.",
        status=404,
        type="invalid_request_error",
        param="model",
        code="model_not_found",
    )
