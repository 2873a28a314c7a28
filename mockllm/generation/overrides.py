"""What one request changes about its own answer, and the replies of a script, which are the same.

An override takes the place of what the settings and the keys would have given; what it does not
name stays. The request's limits, stop sequences, log probabilities and usage apply to what it
gives as to any reply.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from mockllm.generation.distributions import Distribution, Ms

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]

_MOST_TOKENS = 1_000_000
_MOST_CALLS = 1000


class GivenCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool call that a reply makes, whether the request has such a tool or not.

    Attributes:
        arguments: An object, or a text that is sent as it is, good JSON or not.
        id: Its id; a new one where omitted.
    """

    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = {}
    id: Annotated[str, Meta(min_length=1)] | None = None


class Override(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What one request changes about its own answer. What is None is as the server has it."""

    ttft_ms: Annotated[
        Ms | Distribution | None,
        Meta(description="Time to first token, in ms, or a distribution that it is drawn from."),
    ] = None
    itl_ms: Annotated[
        Ms | Annotated[tuple[Ms, ...], Meta(min_length=1)] | Distribution | None,
        Meta(
            description="Time between two tokens, in ms; a list of times, each in turn and then from the first one "
            "again; or a distribution that each is drawn from."
        ),
    ] = None
    output_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=_MOST_TOKENS)] | None,
        Meta(description="Tokens of free text, in place of `--output-tokens`, `min_tokens` and `ignore_eos`."),
    ] = None
    text: Annotated[str | None, Meta(description="The reply's text, exactly.")] = None
    reasoning: Annotated[
        str | None, Meta(description="The reasoning before the reply, exactly; an empty text is none.")
    ] = None
    refusal: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The reply is a refusal with this text, and nothing else."),
    ] = None
    tool_calls: Annotated[
        Annotated[tuple[GivenCall, ...], Meta(max_length=_MOST_CALLS)] | None,
        Meta(
            description="The calls that the reply makes, after `text` if there is one; `arguments` are an object, or a "
            "text that is sent as it is; `id` may be given too. An empty list is no call."
        ),
    ] = None
    finish_reason: Annotated[
        FinishReason | None, Meta(description="How the reply says that it ended, whatever ended it.")
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,
        Meta(description="Takes the place of the request's `seed` and the server's."),
    ] = None
    fault: Annotated[
        Any, Meta(description="What goes wrong with this reply: a table as in `--fault`, a list of them, or its text.")
    ] = None

    @property
    def exact(self) -> bool:
        """Whether it says how long the reply is."""
        return bool(self.tool_calls or self.refusal or self.output_tokens) or self.text is not None

    @property
    def draws(self) -> bool:
        """Whether a timing is drawn, so that a key is needed."""
        return isinstance(self.ttft_ms, Struct) or isinstance(self.itl_ms, Struct)


class Match(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Which requests a scripted reply is for; what is None matches all.

    Attributes:
        model: The model that the request names.
        path: The request's path, with or without `/v1`.
        message: A part of the text of its last message.
    """

    model: str | None = None
    path: str | None = None
    message: str | None = None


class ScriptedReply(Override, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One reply of a script: an override, and which request it is for."""

    match: Match | None = None


KEYS: tuple[str, ...] = Override.__struct_fields__


def merged(under: Override, over: Override) -> Override:
    """Two overrides as one; where both have a key, that of `over` holds."""
    own = {name: value for name in KEYS if (value := getattr(over, name)) is not None}
    return structs.replace(under, **own)
