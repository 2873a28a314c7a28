"""A conversation, read as the messages that the Chat Completions API would have been sent.

A model sees one conversation, whichever API it came through: the system text is a system turn, a
tool's result a tool's turn, and what an assistant thought is no text of its turn. So the
same conversation is counted, keyed and answered alike in every dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from mockllm.dialects.anthropic.request import Block, Conversation, Source, Thinking, Turn
from mockllm.dialects.decode import invalid
from mockllm.dialects.messages import MediaKind
from mockllm.errors import RequestError
from mockllm.generation.plan import Media, Message, OutputFormat, Prompt, Tool, ToolChoice, call_text
from mockllm.generation.schema import to_json

_MEDIA: dict[str, MediaKind] = {"image": "image", "document": "file"}

_SILENT = frozenset(
    {
        "thinking", "redacted_thinking", "tool_use", "tool_reference", "server_tool_use", "web_search_tool_result",
        "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload", "mcp_tool_use",
        "mcp_tool_result", "compaction", "browser_state",
    }
)  # fmt: skip
"""Blocks that hold nothing which a chat request would: no turn's text."""

_EFFORTS = ((2048, "low"), (8192, "medium"))
"""Up to how many tokens a thinking budget means which effort; above them it is `high`."""


def read_prompt(asked: Conversation) -> Prompt:
    """The conversation in no dialect.

    Raises:
        RequestError: There is none, or a block is of an unknown type.
    """
    if not asked.messages:
        raise RequestError("messages: at least one message is required.", param="messages")
    reading = _Reading()
    if asked.system:
        reading.turns.append(Message("system", reading.text(asked.system, "system")))
    for number, turn in enumerate(asked.messages):
        reading.turn(turn, f"messages[{number}].content")
    return Prompt(tuple(reading.turns), media=tuple(reading.media))


class _Reading:
    """Gathers what a conversation says: messages, and what in them is no text."""

    def __init__(self) -> None:
        self.turns: list[Message] = []
        self.media: list[Media] = []

    def turn(self, turn: Turn, place: str) -> None:
        """Add a turn's messages: one of its own text, and one for each result of a tool."""
        if isinstance(turn.content, str):
            self.turns.append(Message(turn.role, turn.content))
            return
        texts: list[str] = []
        calls: list[str] = []
        results = 0
        before = len(self.media)
        for number, block in enumerate(turn.content):
            if block.type == "tool_result":
                if texts or calls:
                    self.turns.append(Message(turn.role, "".join(texts), tuple(calls), len(self.media) - before))
                    texts, calls, before = [], [], len(self.media)
                text = self._inside(block, f"{place}[{number}]")
                self.turns.append(Message("tool", text, media=len(self.media) - before))
                before = len(self.media)
                results += 1
            elif block.type == "tool_use":
                calls.append(call_text(block.name or "", to_json({} if block.input is None else block.input)))
            else:
                texts.append(self._block(block, f"{place}[{number}]"))
        if texts or calls or not results:
            self.turns.append(Message(turn.role, "".join(texts), tuple(calls), len(self.media) - before))

    def text(self, content: str | Sequence[Block], place: str) -> str:
        """All text of a content; its other blocks are gathered."""
        if isinstance(content, str):
            return content
        return "".join([self._block(block, f"{place}[{number}]") for number, block in enumerate(content)])

    def _block(self, block: Block, place: str) -> str:
        if block.type == "text":
            return block.text or ""
        if block.type == "search_result":
            return self._inside(block, place)
        if block.type in _MEDIA and isinstance(block.source, Source):
            return self._source(block.source, _MEDIA[block.type], place)
        if block.type not in _SILENT:
            raise _wrong(
                f"{place}.type", f"must be text, image, document, tool_use or tool_result, got {block.type[:60]!r}"
            )
        return ""

    def _source(self, source: Source, kind: MediaKind, place: str) -> str:
        """The text of a document that is text; anything else is as it would be in a chat request."""
        if source.type == "text":
            return source.data or ""
        if source.type == "content" and source.content is not None:
            return self.text(source.content, f"{place}.source.content")
        address = source.url or source.file_id or f"data:{source.media_type};base64,{source.data or ''}"
        self.media.append(Media(kind, blake2b(address.encode(), digest_size=16).digest()))
        return ""

    def _inside(self, block: Block, place: str) -> str:
        """The text of a block that holds blocks, or none."""
        if block.content is None:
            return ""
        place = f"{place}.content"
        try:
            content = msgspec.convert(block.content, str | list[Block])
        except msgspec.ValidationError as error:
            text = str(error)
            raise invalid(text.replace("`$", f"`$.{place}") if "`$" in text else f"{text} - at `$.{place}`") from None
        return self.text(content, place)


# ---- tools, effort, format ---------------------------------------------------------------------


def read_tools(given: Sequence[Mapping[str, Any]] | None) -> tuple[Tool, ...]:
    """The tools that a reply can call: those with a schema of their own.

    Tools whose type is Anthropic's (`web_search_…`, `bash_…`) are accepted and never called.

    Raises:
        RequestError: A tool without a name or a schema.
    """
    tools: list[Tool] = []
    for number, tool in enumerate(given or ()):
        place = f"tools[{number}]"
        kind = tool.get("type")
        if kind is not None and not isinstance(kind, str):
            raise _wrong(f"{place}.type", "must be a string")
        if kind not in (None, "custom"):
            continue
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise _wrong(f"{place}.name", "must be a string that is not empty")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            raise _wrong(f"{place}.input_schema", "must be an object: a JSON schema")
        tools.append(Tool(name, schema, "function", tool.get("strict") is True, param=f"{place}.input_schema"))
    return tuple(tools)


def read_tool_choice(asked: Conversation, tools: Sequence[Tool]) -> ToolChoice:
    """Which tools are to be called.

    Raises:
        RequestError: A tool is to be called, and there is none, or none of that name.
    """
    given = asked.tool_choice
    if given is None or given.type == "auto":
        return ToolChoice()
    if given.type == "none":
        return ToolChoice("none")
    if given.type == "any":
        if not asked.tools:
            raise RequestError("tool_choice 'any' needs tools to choose from.", param="tool_choice")
        return ToolChoice("required")
    if not given.name:
        raise _wrong("tool_choice.name", "this field is required")
    if not any(tool.name == given.name for tool in tools):
        raise RequestError(
            f"tool_choice.name: there is no tool {given.name[:100]!r} among the tools.", param="tool_choice.name"
        )
    return ToolChoice("required", (given.name,), named=True)


def read_effort(asked: Conversation, limit_tokens: int) -> str | None:
    """How much is to be thought; None where the request does not say.

    Raises:
        RequestError: A budget is missing, too small, or above the limit.
    """
    thinking, config = asked.thinking, asked.output_config
    if thinking is None:
        return None
    if thinking.type == "disabled":
        return "none"
    if config is not None and config.effort is not None:
        return config.effort
    if thinking.type != "enabled":
        return "high"  # what the API says an effort that is not given means
    return _effort_of(thinking, limit_tokens)


def _effort_of(thinking: Thinking, limit_tokens: int) -> str:
    budget = thinking.budget_tokens
    if budget is None:
        raise _wrong("thinking.budget_tokens", "this field is required")
    if budget < 1024:
        raise _wrong("thinking.budget_tokens", f"must be at least 1024, got {budget}")
    if budget >= limit_tokens:
        raise RequestError(
            f"max_tokens must be greater than thinking.budget_tokens: got {limit_tokens} and {budget}.",
            param="max_tokens",
        )
    return next((effort for most, effort in _EFFORTS if budget <= most), "high")


def read_format(asked: Conversation) -> OutputFormat:
    """What the text has to be; `output_format` is the older name of `output_config.format`."""
    config = asked.output_config
    place, given = "output_format", asked.output_format
    if config is not None and config.format is not None:
        place, given = "output_config.format", config.format
    return OutputFormat() if given is None else OutputFormat("json_schema", given.schema, param=f"{place}.schema")


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
