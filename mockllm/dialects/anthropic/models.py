"""Models as Anthropic's API lists them, for whoever sends its `anthropic-version` header.

Source: https://docs.anthropic.com/en/api/models-list.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from mockllm.dialects.models import Models

VERSION_HEADER = b"anthropic-version"


def model_list(models: Models) -> bytes:
    """The body that lists all, on one page."""
    data = [_info(card) for card in models.cards]
    return msgspec.json.encode({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})


def one_model(models: Models, name: str) -> bytes:
    """The body for one.

    Raises:
        RequestError: 404, there is no such model.
    """
    return msgspec.json.encode(_info(models.card(name)))


def _info(card: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "model",
        "id": card["id"],
        "display_name": card["id"],
        "created_at": datetime.fromtimestamp(card["created"], UTC),
        "lifecycle": "active",
        "max_input_tokens": card["max_model_len"],
        "max_tokens": card["max_model_len"],
    }
