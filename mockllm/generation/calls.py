"""Which tools a reply calls, and with what.

A model that has to call a tool calls the first one that it may; where it makes several calls, it
goes on to the next ones, and then begins anew.
"""

from __future__ import annotations

from collections.abc import Callable

from mockllm.errors import RequestError
from mockllm.generation import pattern
from mockllm.generation.content import sentence
from mockllm.generation.keyed import Draws, derive
from mockllm.generation.overrides import GivenCall
from mockllm.generation.pieces import pieces_of
from mockllm.generation.plan import FinishReason, GenerationRequest, Prompt, Segment, Tool, ToolCall, ToolChoice
from mockllm.generation.schema import Compiled, to_json
from mockllm.generation.structured import Schemas
from mockllm.generation.tokens import Tokenizer

_RESULTS = ("tool", "function")
"""Roles of messages that bring a call's result: after one a model answers."""

_NO_ARGUMENTS = [b"{", b"}"]


class Calls:
    """Makes the tool calls of replies.

    Args:
        tokenizer: Cuts arguments into tokens.
        schemas: Reads the tools' schemas.
        new_id: Makes a unique id out of a prefix.
        probability: How often a reply calls a tool where it may choose, 0 to 1.
        fewest, most: How many calls a reply makes.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        schemas: Schemas,
        new_id: Callable[[str], str],
        *,
        probability: float,
        fewest: int,
        most: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._schemas = schemas
        self._new_id = new_id
        self._probability = probability
        self._fewest = fewest
        self._most = most

    def check(self, tools: tuple[Tool, ...]) -> None:
        """Refuse tools whose arguments could not be made, whether they will be called or not.

        Raises:
            RequestError: A schema or a pattern is malformed or cannot be met.
        """
        for tool in tools:
            if tool.parameters is not None:
                self._read(tool)
            if tool.pattern:
                pattern.generate(tool.pattern, bytes(16), param=tool.param)

    def make(self, request: GenerationRequest, prompt: Prompt, key: bytes) -> list[Segment]:
        """The calls of one choice; none where it answers with text.

        Args:
            request: Its tools are not empty.
            prompt: What the choice answers.
            key: 16 bytes, the choice's.
        """
        choice = request.tool_choice
        own = derive(key, b"calls")
        if choice.mode == "none" or (choice.mode == "auto" and not self._wants_to(prompt, own)):
            return []
        tools = [tool for tool in request.tools if not choice.names or tool.name in choice.names]
        if not tools:
            return []
        single = choice.named or choice.legacy or not request.parallel_tool_calls
        count = 1 if single else self._fewest + Draws(derive(own, b"count")).below(self._most - self._fewest + 1)
        return [self._call(tools[number % len(tools)], derive(own, b"%d" % number), choice) for number in range(count)]

    def given(self, request: GenerationRequest, call: GivenCall, pieces: Callable[[str], list[bytes]]) -> Segment:
        """A call that an override makes; its kind is that of the request's tool with its name.

        Args:
            request: What it answers.
            call: The call.
            pieces: Cuts its arguments.

        Raises:
            RequestError: The arguments are nested too deeply to be written.
        """
        tool = next((tool for tool in request.tools if tool.name == call.name), None)
        kind = "function" if tool is None else tool.kind
        identity = "" if request.tool_choice.legacy else call.id or self._new_id("call_")
        try:
            text = call.arguments if isinstance(call.arguments, str) else to_json(call.arguments)
        except RecursionError:
            raise RequestError("The arguments are nested too deeply.", param="mockllm.tool_calls") from None
        return Segment("tool", pieces(text), ToolCall(identity, call.name, kind))

    def _wants_to(self, prompt: Prompt, key: bytes) -> bool:
        if not self._probability or (prompt.messages and prompt.messages[-1].role in _RESULTS):
            return False
        return Draws(key).uniform() < self._probability

    def _call(self, tool: Tool, key: bytes, choice: ToolChoice) -> Segment:
        call = ToolCall("" if choice.legacy else self._new_id("call_"), tool.name, tool.kind)
        return Segment("tool", self._arguments(tool, key), call)

    def _arguments(self, tool: Tool, key: bytes) -> list[bytes]:
        if tool.kind == "custom":
            text = pattern.generate(tool.pattern, key, param=tool.param) if tool.pattern else sentence(Draws(key))
        else:
            arguments = {} if tool.parameters is None else self._read(tool).generate(key)
            if not arguments:
                return _NO_ARGUMENTS
            text = to_json(arguments)
        return pieces_of(self._tokenizer, text)

    def _read(self, tool: Tool) -> Compiled:
        """A function's parameters, which are an object's schema whether they say so or not."""
        schema = {} if tool.parameters is True else tool.parameters
        if isinstance(schema, dict) and schema.get("type") != "object":
            kind = schema.get("type", "object")
            if kind != "object" and not (isinstance(kind, list) and "object" in kind):
                raise RequestError(
                    f"Invalid schema for function {tool.name[:100]!r}: schema must have type 'object', got {kind!r}.",
                    param=tool.param,
                    code="invalid_function_parameters",
                )
            schema = {**schema, "type": "object"}
        return self._schemas.read(schema or False, strict=tool.strict, param=tool.param)


def finish_reason(choice: ToolChoice) -> FinishReason:
    """How a reply that calls tools ends.

    Source: OpenAI and vLLM alike end with `stop` where the request names the function.
    """
    if choice.named:
        return "stop"
    return "function_call" if choice.legacy else "tool_calls"
