"""What is asked for and what will be answered, in no dialect.

Every dialect decodes its body into a `GenerationRequest`; the planner turns that into a `Plan`;
the dialect renders the plan. Texts are held as *pieces*: one token's text each, as the inside of
a JSON string (escaped, UTF-8), so that a chunk is a prefix, a piece and a suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw, Struct

from mockllm.generation.logprobs import Scores
from mockllm.generation.overrides import FinishReason as FinishReason
from mockllm.generation.overrides import Override

SegmentKind = Literal["reasoning", "text", "refusal", "tool"]


class Message(Struct, frozen=True, gc=False):
    """One turn of the prompt: its role, all its text, parts joined in order, and its calls as `call_text` has them.

    `media` is how many of the prompt's are in it.
    """

    role: str
    text: str
    calls: tuple[str, ...] = ()
    media: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """All that a model reads of it, each part by itself."""
        return (self.text, *self.calls)


def call_text(name: str, arguments: str) -> str:
    """A tool call in a prompt, as the model that has made it reads it again: `forecast({"city":"Paris"})`.

    Calls are part of what was said, and count as such; their ids are not.
    """
    return f"{name}({arguments})"


class Media(Struct, frozen=True, gc=False):
    """A part of a prompt that is no text. It is never fetched, decoded or looked into.

    `digest` tells one image, recording or file from another: of its address, data or id.
    """

    kind: Literal["image", "audio", "file"]
    digest: bytes = b""


class Prompt(Struct, frozen=True, gc=False):
    """One prompt: messages, or plain text (a single message of role ""), or token ids.

    `media` is what is no text, of all messages in order; `suffix` the text that follows the reply
    (completions), which a model reads as well. `extra_tokens` counts what is neither.
    """

    messages: tuple[Message, ...] = ()
    token_ids: tuple[int, ...] | None = None
    media: tuple[Media, ...] = ()
    suffix: str = ""
    extra_tokens: int = 0


class Tool(Struct, frozen=True):
    """A tool the model may call.

    Attributes:
        parameters: Its JSON schema, None for none given.
        pattern: What the input of a custom tool matches, as a regular expression; "" for any text.
        param: The request field that holds the schema or the pattern, for errors.
    """

    name: str
    parameters: dict[str, Any] | bool | None = None
    kind: Literal["function", "custom"] = "function"
    strict: bool = False
    pattern: str = ""
    param: str = "tools"


class ToolChoice(Struct, frozen=True):
    """Which tools are to be called: `names` narrows them (one name, or `allowed_tools`).

    `named` is true where the request forces one tool by name (its finish reason is `stop`), `legacy`
    where the call is a `function_call`: one call, without an id, whose finish reason says so.
    """

    mode: Literal["none", "auto", "required"] = "auto"
    names: tuple[str, ...] = ()
    named: bool = False
    legacy: bool = False


class OutputFormat(Struct, frozen=True):
    """What the text has to be. `schema` for `json_schema`, `choices` for `choice`, `pattern` for `regex`.

    `param` is the request field that says so, for errors.
    """

    kind: Literal["text", "json_object", "json_schema", "choice", "regex"] = "text"
    schema: dict[str, Any] | bool | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    strict: bool = False
    param: str = "response_format"


class GenerationRequest(Struct):
    """A request for generation in no dialect; field names follow the Chat Completions API.

    Attributes:
        prompts: One reply (times `n`) for each.
        limit_tokens: Longest reply allowed, ≥ 0; None for no limit. `limit_param` names the field it came from,
            `prompt_param` the prompt's.
        exact: The reply has exactly `limit_tokens` tokens (`ignore_eos`).
        best_of: How many replies are made, of which `n` are given; it changes nothing here, since all are as good.
        stop, stop_token_ids: Sequences before which the text is cut, and tokens that end it; neither is looked for
            in the first `min_tokens` tokens.
        include_stop: The text is cut behind them instead.
        logprobs: None for none; else how many alternatives a token has (0 for just its own).
        prompt_logprobs: The same for the prompt's tokens (vLLM).
        echo: The reply begins with the prompt (completions), or with the last message, if that is the
            assistant's (vLLM's chat).
        token_ids: The reply shows the tokens' ids (vLLM's `return_token_ids`).
        tokens_as_ids: Logprobs name tokens as `token_id:N` (vLLM's `return_tokens_as_token_ids`).
        stream_interval: A stream's chunks have so many tokens each, but for the first one's (vLLM).
        prompt_limit_tokens: Of a longer prompt only its last tokens are read (vLLM's `truncate_prompt_tokens`).
        reasoning_limit_tokens: Longest reasoning (vLLM's `thinking_token_budget`).
        seed: The request's own, which takes the place of the server's.
        prediction: The text that the client expects (`prediction`).
        ending: Ends the reply in this way, whatever the probabilities say.
        limit_is_default: The limit is the API's and not the request's: it cuts no text that is given as it is.
        text_only: The API has no place for reasoning and calls.
        reply_id: What follows the prefix in the reply's id, as the inside of a JSON string (vLLM's `request_id`).
        overrides: The body key `mockllm`, undecoded.
        override: What the request, or a script, changes about the answer.
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
    prompt_logprobs: int | None = None
    echo: bool = False
    token_ids: bool = False
    tokens_as_ids: bool = False
    stream_interval: int = 1
    prompt_limit_tokens: int | None = None
    reasoning_limit_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    format: OutputFormat = OutputFormat()
    reasoning_effort: str | None = None
    prediction: str | None = None
    ending: Literal["refusal", "content_filter"] | None = None
    limit_is_default: bool = False
    text_only: bool = False
    reply_id: str | None = None
    overrides: Raw | None = None
    override: Override | None = None


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
        ids: The ids of the pieces, where they are to be shown.
    """

    kind: SegmentKind
    pieces: list[bytes]
    call: ToolCall | None = None
    ids: list[int] | None = None

    @property
    def steps(self) -> int:
        """How many steps of the timeline it takes."""
        return len(self.pieces) + (self.call is not None)


class PromptTokens(Struct, frozen=True, gc=False):
    """A prompt's tokens.

    Attributes:
        pieces: Their texts, as those of a `Segment`.
        ids: Their ids; parallel to `pieces`.
        scores: Their logprobs, where they were asked for; the first token has none.
    """

    pieces: list[bytes]
    ids: list[int]
    scores: Scores | None = None


class Choice(Struct, frozen=True, gc=False):
    """One reply: its segments one after the other.

    Attributes:
        index: Its index among all choices of the request.
        tokens: Completion tokens, as `usage` counts them: the steps of its segments.
        key: Key of its text, for what else is derived from it.
        stop_reason: vLLM's: the stop string or token id that ended it.
        scores: The logprobs of its visible text, where they were asked for.
        prompt: Its prompt's tokens, where they are to be shown.
    """

    index: int
    segments: tuple[Segment, ...]
    finish_reason: FinishReason
    tokens: int
    key: bytes
    reasoning_tokens: int = 0
    stop_reason: str | int | None = None
    scores: Scores | None = None
    prompt: PromptTokens | None = None


class Plan(Struct, gc=False):
    """A whole answer, before any dialect.

    All choices advance together, a token each a step, as a server decodes a batch: step k sends
    token k of every choice that has one. `offset_s` and `after_s` are those of `Timeline`;
    `whole_s`, where set, is when a whole reply is due in place of its last token. `accepted_tokens`
    and `rejected_tokens` divide the client's prediction.
    """

    choices: tuple[Choice, ...]
    prompt_tokens: int
    steps: int
    offset_s: float
    after_s: Sequence[float]
    whole_s: float | None = None
    cached_tokens: int = 0
    prompt_audio_tokens: int = 0
    accepted_tokens: int = 0
    rejected_tokens: int = 0

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
        choices = self.choices
        return choices[0].tokens if len(choices) == 1 else sum([choice.tokens for choice in choices])

    @property
    def reasoning_tokens(self) -> int:
        return sum(choice.reasoning_tokens for choice in self.choices)
