"""What is asked for and what will be answered, in no dialect.

Every dialect decodes its body into a `GenerationRequest`; the planner turns that into a `Plan`;
the dialect renders the plan. Texts are held as *pieces*: one token's text each, as the inside of
a JSON string (escaped, UTF-8), so that a chunk is a prefix, a piece and a suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw, Struct

SegmentKind = Literal["reasoning", "text", "refusal", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class Message(Struct, frozen=True, gc=False):
    """One turn of the prompt: its role and all its text, parts joined in order."""

    role: str
    text: str


class Prompt(Struct, frozen=True, gc=False):
    """One prompt: messages, or plain text (a single message of role ""), or token ids.

    `extra_tokens` counts what is no text: images, audio, files.
    """

    messages: tuple[Message, ...] = ()
    token_ids: tuple[int, ...] | None = None
    extra_tokens: int = 0


class Tool(Struct, frozen=True):
    """A tool the model may call. `parameters` is its JSON schema, None for none given."""

    name: str
    parameters: dict[str, Any] | bool | None = None
    kind: Literal["function", "custom"] = "function"
    strict: bool = False


class ToolChoice(Struct, frozen=True):
    """Which tools are to be called: `names` narrows them (one name, or `allowed_tools`).

    `named` is true where the request forces one tool by name (its finish reason is `stop`).
    """

    mode: Literal["none", "auto", "required"] = "auto"
    names: tuple[str, ...] = ()
    named: bool = False


class OutputFormat(Struct, frozen=True):
    """What the text has to be. `schema` for `json_schema`, `choices` for `choice`, `pattern` for `regex`."""

    kind: Literal["text", "json_object", "json_schema", "choice", "regex"] = "text"
    schema: dict[str, Any] | bool | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    strict: bool = False


class GenerationRequest(Struct):
    """A request for generation in no dialect; field names follow the Chat Completions API.

    Attributes:
        prompts: One reply (times `n`) for each.
        limit_tokens: Longest reply allowed, ≥ 0; None for no limit. `limit_param` names the field it came from,
            `prompt_param` the prompt's.
        exact: The reply has exactly `limit_tokens` tokens (`ignore_eos`).
        stop: Sequences before which the text is cut.
        logprobs: None for none; else how many alternatives a token has (0 for just its own).
        echo: The reply begins with the prompt (completions).
        seed: The request's own, which takes the place of the server's.
        overrides: The body key `mockllm`, undecoded.
    """

    model: str
    prompts: tuple[Prompt, ...]
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    n: int = 1
    best_of: int | None = None
    limit_tokens: int | None = None
    limit_param: str = "max_tokens"
    prompt_param: str = "messages"
    min_tokens: int = 0
    exact: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False
    seed: int | None = None
    logprobs: int | None = None
    echo: bool = False
    suffix: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    format: OutputFormat = OutputFormat()
    reasoning_effort: str | None = None
    overrides: Raw | None = None


class ToolCall(Struct, frozen=True, gc=False):
    """A call's identity; `id` is unique, the rest is part of the answer."""

    id: str
    name: str
    kind: Literal["function", "custom"] = "function"


class Segment(Struct, frozen=True, gc=False):
    """A run of tokens of one kind.

    Attributes:
        kind: What the tokens are.
        pieces: One token each. A token whose text was cut away (a stop sequence) is `b""`: it is
            counted and takes its time, but sends nothing.
        call: For `tool`: the call, whose id and name take one step of their own before the pieces.
    """

    kind: SegmentKind
    pieces: list[bytes]
    call: ToolCall | None = None

    @property
    def steps(self) -> int:
        """How many steps of the timeline it takes."""
        return len(self.pieces) + (self.call is not None)


class Choice(Struct, frozen=True, gc=False):
    """One reply: its segments one after the other.

    Attributes:
        index: Its index among all choices of the request.
        tokens: Completion tokens, as `usage` counts them: the steps of its segments.
        key: Key of its text, for what else is derived from it (logprobs).
        stop_reason: vLLM's: the stop string or token id that ended it.
    """

    index: int
    segments: tuple[Segment, ...]
    finish_reason: FinishReason
    tokens: int
    key: bytes
    reasoning_tokens: int = 0
    stop_reason: str | int | None = None


class Plan(Struct, gc=False):
    """A whole answer, before any dialect.

    All choices advance together, a token each a step, as a server decodes a batch: step k sends
    token k of every choice that has one. `offset_s` and `after_s` are those of `Timeline`;
    `whole_s`, where set, is when a whole reply is due in place of its last token.
    """

    choices: tuple[Choice, ...]
    prompt_tokens: int
    steps: int
    offset_s: float
    after_s: Sequence[float]
    whole_s: float | None = None
    cached_tokens: int = 0

    @property
    def end_s(self) -> float:
        """Offset of the whole reply from arrival."""
        if self.whole_s is not None:
            return self.whole_s
        return self.offset_s + self.after_s[self.steps - 1]

    @property
    def itl_s(self) -> float:
        """Planned mean time between two tokens; 0 for a single one."""
        return self.after_s[self.steps - 1] / (self.steps - 1) if self.steps > 1 else 0.0

    @property
    def completion_tokens(self) -> int:
        return sum(choice.tokens for choice in self.choices)

    @property
    def reasoning_tokens(self) -> int:
        return sum(choice.reasoning_tokens for choice in self.choices)
