"""Tools, functions and the choice among them, in the nested shapes of the Chat Completions API.

Source: https://platform.openai.com/docs/api-reference/chat/create (`tools`, `tool_choice`,
`functions`, `function_call`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockllm.errors import RequestError
from mockllm.generation.plan import Tool, ToolChoice

Given = Mapping[str, Any]
_KINDS = ("function", "custom")


def read_tools(given: Sequence[Given] | None) -> tuple[Tool, ...]:
    """The tools of `tools`.

    Raises:
        RequestError: A tool lacks what its kind needs.
    """
    tools: list[Tool] = []
    for number, tool in enumerate(given or ()):
        place = f"tools[{number}]"
        kind = tool.get("type", "function")
        if kind not in _KINDS:
            raise _wrong(f"{place}.type", f"must be function or custom, got {str(kind)[:60]!r}")
        inside = tool.get(kind)
        if not isinstance(inside, dict):
            raise _wrong(f"{place}.{kind}", "must be an object")
        tools.append((_function if kind == "function" else _custom)(inside, f"{place}.{kind}"))
    return tuple(tools)


def read_functions(given: Sequence[Given] | None) -> tuple[Tool, ...]:
    """The functions of `functions`, which came before `tools`.

    Raises:
        RequestError: A function has no name, or its parameters are no schema.
    """
    return tuple([_function(function, f"functions[{number}]") for number, function in enumerate(given or ())])


def _function(given: Given, place: str) -> Tool:
    parameters, strict = given.get("parameters"), given.get("strict")
    if parameters is not None and not isinstance(parameters, dict | bool):
        raise _wrong(f"{place}.parameters", "must be a JSON schema")
    if not isinstance(given.get("description", ""), str | None):
        raise _wrong(f"{place}.description", "must be a string")
    if strict is not None and not isinstance(strict, bool):
        raise _wrong(f"{place}.strict", "must be true or false")
    return Tool(_name(given, place), parameters, "function", bool(strict), param=f"{place}.parameters")


def _custom(given: Given, place: str) -> Tool:
    name = _name(given, place)
    wanted = given.get("format")
    if wanted is None:
        return Tool(name, None, "custom", param=place)
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return Tool(name, None, "custom", param=place)
    if kind != "grammar":
        raise _wrong(f"{place}.format.type", f"must be text or grammar, got {str(kind)[:60]!r}")
    # Some write the grammar's fields beside its type, as the Responses API has them.
    grammar = wanted.get("grammar", wanted)
    if not isinstance(grammar, dict):
        raise _wrong(f"{place}.format.grammar", "must be an object")
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    if syntax not in ("lark", "regex"):
        raise _wrong(f"{place}.format.grammar.syntax", f"must be lark or regex, got {str(syntax)[:60]!r}")
    if not isinstance(definition, str) or not definition:
        raise _wrong(f"{place}.format.grammar.definition", "must be a string that is not empty")
    # A Lark grammar is taken as it is and not followed: its tool gets free text.
    return Tool(
        name,
        None,
        "custom",
        pattern=definition if syntax == "regex" else "",
        param=f"{place}.format.grammar.definition",
    )


def read_tool_choice(given: str | Given | None, tools: Sequence[Tool]) -> ToolChoice:
    """What `tool_choice` asks for.

    Raises:
        RequestError: An unknown choice, or a choice of a tool that is not there.
    """
    if given is None or given == "auto":
        return ToolChoice()
    if isinstance(given, str):
        if given not in ("none", "required"):
            raise _wrong("tool_choice", f"must be none, auto, required or an object, got {given[:60]!r}")
        if given == "required" and not tools:
            raise RequestError("tool_choice 'required' needs tools to choose from.", param="tool_choice")
        return ToolChoice(given)  # type: ignore[arg-type]  # one of two, as checked
    kind = given.get("type", "function")
    if kind in _KINDS:
        return ToolChoice("required", (_chosen(given, "tool_choice", tools),), named=True)
    if kind != "allowed_tools":
        raise _wrong("tool_choice.type", f"must be function, custom or allowed_tools, got {str(kind)[:60]!r}")
    allowed = given.get("allowed_tools")
    if not isinstance(allowed, dict):
        raise _wrong("tool_choice.allowed_tools", "must be an object")
    mode, listed = allowed.get("mode"), allowed.get("tools")
    if mode not in ("auto", "required"):
        raise _wrong("tool_choice.allowed_tools.mode", f"must be auto or required, got {str(mode)[:60]!r}")
    if not isinstance(listed, list) or not listed or not all(isinstance(tool, dict) for tool in listed):
        raise _wrong("tool_choice.allowed_tools.tools", "must be an array of tools that is not empty")
    names = [_chosen(tool, f"tool_choice.allowed_tools.tools[{k}]", tools) for k, tool in enumerate(listed)]
    return ToolChoice(mode, tuple(names))


def read_function_call(given: str | Given | None, functions: Sequence[Tool]) -> ToolChoice:
    """What `function_call` asks for, which came before `tool_choice`.

    Raises:
        RequestError: An unknown choice, or a function that is not there.
    """
    if given is None or given in ("auto", "none"):
        return ToolChoice("none" if given == "none" else "auto", legacy=True)
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str):
        raise _wrong("function_call", "must be none, auto or an object with a name")
    if not any(function.name == name for function in functions):
        raise RequestError(f"Function {name[:100]!r} not found in 'functions' parameter.", param="function_call")
    return ToolChoice("required", (name,), named=True, legacy=True)


def _chosen(given: Given, place: str, tools: Sequence[Tool]) -> str:
    kind = given.get("type", "function")
    inside = given.get(kind) if kind in _KINDS else None
    if not isinstance(inside, dict):
        raise _wrong(place, "must have type function or custom, and the name of the tool in an object of that key")
    name = _name(inside, f"{place}.{kind}")
    if not any(tool.name == name and tool.kind == kind for tool in tools):
        raise RequestError(f"Tool choice {name[:100]!r} not found in 'tools' parameter.", param="tool_choice")
    return name


def _name(given: Given, place: str) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong(f"{place}.name", "must be a string that is not empty")
    return name


def _wrong(place: str, problem: str) -> RequestError:
    return RequestError(f"Invalid request, at $.{place}: {problem}", param=place)
