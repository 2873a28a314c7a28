"""The bodies of `/v1/messages` and `/v1/messages/count_tokens`, decoded and checked.

Fields that are not here are accepted and change nothing.

Source: https://docs.anthropic.com/en/api/messages; `seed`, `min_tokens` and `ignore_eos` as in vLLM.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from mockllm.dialects.decode import decoder


class Source(Struct):
    """Where an image's or a document's content comes from."""

    type: str
    media_type: str = ""
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: str | list[Block] | None = None


class Block(Struct):
    """A content block of any type."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    source: Source | str | None = None

    def __post_init__(self) -> None:
        for field in _NEEDS.get(self.type, ()):
            if getattr(self, field) is None:
                raise ValueError(f"a block of type `{self.type}` needs `{field}`")


_NEEDS = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source",),
    "tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
}


class Turn(Struct):
    """One message of the conversation; `system` may stand among the others, too."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class Thinking(Struct):
    """`thinking`; `budget_tokens` bounds it, here by choosing an effort."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted"] | None = None


class ToolChoiceGiven(Struct):
    """`tool_choice`."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Format(Struct):
    """`output_config.format`."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Struct):
    """`output_config`."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: Format | None = None


class Conversation(Struct):
    """What both endpoints take."""

    messages: list[Turn]
    model: str = ""
    system: str | list[Block] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoiceGiven | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: Format | None = None


class MessagesRequest(Conversation, kw_only=True):
    """The body of `/v1/messages`."""

    max_tokens: int
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    seed: int | None = None
    min_tokens: Annotated[int, Meta(ge=0)] | None = None
    ignore_eos: bool | None = None
    mockllm: Raw | UnsetType = UNSET


decode_messages = decoder(MessagesRequest)
decode_conversation = decoder(Conversation)
