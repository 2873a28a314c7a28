"""Tools, the choice among them and the text's format, in the flat shapes of the Responses API.

Source: https://platform.openai.com/docs/api-reference/responses/create (tools, tool_choice, text).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockllm.dialects.responses.inputs import wrong
from mockllm.errors import RequestError
from mockllm.generation.plan import OutputFormat, Tool, ToolChoice

Given = Mapping[str, Any]

_HOSTED = (
    "file_search", "web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11",
    "computer", "computer_use_preview", "computer-preview", "mcp", "code_interpreter", "image_generation",
    "local_shell", "shell", "apply_patch", "tool_search", "namespace", "programmatic_tool_calling",
)  # fmt: skip
"""Tools that the API runs itself; they are accepted and echoed, but a mock has nothing to run."""


def read_tools(given: Sequence[Given] | None) -> tuple[Tool, ...]:
    """The tools that a reply can call.

    Raises:
        RequestError: A tool without a name, or of an unknown type.
    """
    tools: list[Tool] = []
    for number, tool in enumerate(given or ()):
        place = f"tools[{number}]"
        kind = tool.get("type")
        if kind in _HOSTED:
            continue
        if kind not in ("function", "custom"):
            raise wrong(f"{place}.type", f"must be function, custom or a hosted tool's type, got {kind!r}")
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise wrong(f"{place}.name", "must be a string that is not empty")
        parameters = tool.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            raise wrong(f"{place}.parameters", "must be an object: a JSON schema")
        strict = tool.get("strict")
        if strict is not None and not isinstance(strict, bool):
            raise wrong(f"{place}.strict", "must be true or false")
        if kind == "function":
            tools.append(Tool(name, parameters, "function", bool(strict), param=f"{place}.parameters"))
        else:
            tools.append(Tool(name, None, "custom", pattern=_pattern(tool, place), param=f"{place}.format.definition"))
    return tuple(tools)


def _pattern(tool: Given, place: str) -> str:
    """The regular expression that a custom tool's input has to match; "" for any text, or another grammar."""
    given = tool.get("format")
    if given is None or (isinstance(given, dict) and given.get("type") == "text"):
        return ""
    if not isinstance(given, dict) or given.get("type") != "grammar":
        raise wrong(f"{place}.format", "must be {type: text} or a grammar")
    if given.get("syntax") not in ("lark", "regex"):
        raise wrong(f"{place}.format.syntax", f"must be lark or regex, got {given.get('syntax')!r}")
    definition = given.get("definition")
    if not isinstance(definition, str):
        raise wrong(f"{place}.format.definition", "must be a string")
    return definition if given["syntax"] == "regex" else ""


def read_tool_choice(given: str | Given | None, tools: Sequence[Tool], any_tools: bool) -> ToolChoice:
    """Which tools are to be called.

    Args:
        given: The field.
        tools: Those that can be called.
        any_tools: The request has tools, be they hosted ones.

    Raises:
        RequestError: An unknown choice, or a choice of a tool that is not there.
    """
    if given is None:
        return ToolChoice()
    if isinstance(given, str):
        if given not in ("none", "auto", "required"):
            raise wrong("tool_choice", f"must be none, auto, required or an object, got {given[:60]!r}")
        if given == "required" and not any_tools:
            raise RequestError("tool_choice 'required' needs tools to choose from.", param="tool_choice")
        return ToolChoice(given)  # type: ignore[arg-type]  # one of the three, as checked
    kind = given.get("type")
    if kind in ("function", "custom"):
        name = _name(given, "tool_choice", tools)
        return ToolChoice("required", (name,), named=True)
    if kind == "allowed_tools":
        return _allowed(given, tools)
    if kind in _HOSTED:
        return ToolChoice()
    raise wrong("tool_choice.type", f"must be function, custom, allowed_tools or a hosted tool's type, got {kind!r}")


def _allowed(given: Given, tools: Sequence[Tool]) -> ToolChoice:
    mode = given.get("mode")
    if mode not in ("auto", "required"):
        raise wrong("tool_choice.mode", f"must be auto or required, got {mode!r}")
    listed = given.get("tools")
    if not isinstance(listed, list) or not all(isinstance(tool, dict) for tool in listed):
        raise wrong("tool_choice.tools", "must be an array of tools")
    names = [
        _name(tool, f"tool_choice.tools[{number}]", tools)
        for number, tool in enumerate(listed)
        if tool.get("type") in ("function", "custom")
    ]
    return ToolChoice(mode, tuple(names))


def _name(given: Given, place: str, tools: Sequence[Tool]) -> str:
    name = given.get("name")
    if not isinstance(name, str):
        raise wrong(f"{place}.name", "must be a string")
    if not any(tool.name == name and tool.kind == given.get("type") for tool in tools):
        raise RequestError(f"Tool choice {name[:100]!r} not found in 'tools' parameter.", param="tool_choice")
    return name


def read_format(given: Given | None) -> OutputFormat:
    """What the text has to be (`text.format`).

    Raises:
        RequestError: An unknown format, or one without its schema.
    """
    if given is None:
        return OutputFormat()
    kind = given.get("type")
    if kind in ("text", "json_object"):
        return OutputFormat(kind)
    if kind != "json_schema":
        raise wrong("text.format.type", f"must be text, json_object or json_schema, got {kind!r}")
    if not isinstance(given.get("name"), str):
        raise wrong("text.format.name", "must be a string")
    schema = given.get("schema")
    if not isinstance(schema, dict):
        raise wrong("text.format.schema", "must be an object: a JSON schema")
    return OutputFormat("json_schema", schema, strict=given.get("strict") is True, param="text.format.schema")


def echoed_tools(given: Sequence[Given] | None) -> list[dict[str, Any]]:
    """The tools as the response object shows them: with what the API fills in."""
    return [
        {"description": None, "parameters": None, "strict": True, **tool}
        if tool.get("type") == "function"
        else dict(tool)
        for tool in given or ()
    ]


def echoed_format(given: Given | None) -> dict[str, Any]:
    """The format as the response object shows it."""
    if given is None:
        return {"type": "text"}
    if given.get("type") == "json_schema":
        return {"type": "json_schema", "description": None, "name": "", "strict": False, **given}
    return dict(given)
