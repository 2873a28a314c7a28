"""The response object made from a plan: which items a reply has, and how each one ends up.

The stream's closing events and the whole reply are made of the same items, so they cannot differ.

Rules:
- Text and refusals that follow each other are parts of one message; every stretch of reasoning
  and every call is an item of its own.
- Reasoning is shown as a summary of one part where the request asks for a summary, as OpenAI's
  API shows it, and else as raw `reasoning_text`, as servers of open models do. Every token of it
  is streamed either way.
- What a cut hit, the last item, is `incomplete`, and so is the response then.
- A reply of which a content filter left nothing is a refusal that says so, as in the converter; it is no
  token of the reply.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import shake_128
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from mockllm.dialects.dialect import Context
from mockllm.dialects.jsontext import inner, plain
from mockllm.dialects.responses.body import ResponsesBody
from mockllm.dialects.responses.logprobs import TextLogprobs, with_bytes
from mockllm.dialects.responses.request import ResponsesRequest
from mockllm.dialects.responses_events import (
    FILTER_REFUSAL,
    CustomToolCallItem,
    FunctionCallItem,
    IncompleteDetails,
    InputTokensDetails,
    Item,
    ItemStatus,
    Logprob,
    MessageItem,
    OutputText,
    OutputTokensDetails,
    ReasoningItem,
    ReasoningText,
    Refusal,
    Response,
    SummaryText,
    Usage,
)
from mockllm.generation.keyed import derive
from mockllm.generation.plan import Choice, Segment

ID_PREFIX = "resp_"
_FIRST_INPUT = 0x8000
_PREFIXES = {"reasoning": "rs_", "text": "msg_", "refusal": "msg_", "tool": "fc_"}
_WITHHELD = Segment("refusal", [inner(FILTER_REFUSAL)])
_CUTS: dict[str, Any] = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Draft(Struct, gc=False):
    """An item to come: its place, and the segments that fill it."""

    id: str
    output_index: int
    segments: list[Segment]
    cut: bool = False

    @property
    def kind(self) -> str:
        kind = self.segments[0].kind
        return "text" if kind == "refusal" else kind

    @property
    def status(self) -> ItemStatus:
        """How the item ends."""
        return "incomplete" if self.cut else "completed"


def item_id(response_id: str, prefix: str, number: int) -> str:
    """The id of a response's item: the response's own with another prefix and four more digits."""
    return f"{prefix}{response_id.removeprefix(ID_PREFIX)}{number:04x}"


def input_item_id(response_id: str, prefix: str, number: int) -> str:
    """The id of an item of the response's input."""
    return item_id(response_id, prefix, _FIRST_INPUT + number)


def response_of_item(identity: str) -> tuple[str, int, bool]:
    """The response that an item belongs to, the item's number there, and whether it is of its input."""
    stem, digits = identity[:-4].partition("_")[2], identity[-4:]
    try:
        number = int(digits, 16)
    except ValueError:
        return "", 0, False
    return ID_PREFIX + stem, number % _FIRST_INPUT, number >= _FIRST_INPUT


def drafts(response_id: str, choice: Choice) -> list[Draft]:
    """The items of a reply, in order."""
    items: list[Draft] = []
    for segment in choice.segments:
        if not segment.steps:
            continue
        is_content = segment.kind in ("text", "refusal")
        if is_content and items and items[-1].kind == "text":
            items[-1].segments.append(segment)
            continue
        prefix = _PREFIXES[segment.kind]
        if segment.call is not None and segment.call.kind == "custom":
            prefix = "ctc_"
        items.append(Draft(item_id(response_id, prefix, len(items)), len(items), [segment]))
    if choice.finish_reason == "content_filter" and all(draft.kind == "reasoning" for draft in items):
        items.append(Draft(item_id(response_id, "msg_", len(items)), len(items), [_WITHHELD]))
    if items and choice.finish_reason in _CUTS:
        items[-1].cut = True
    return items


def opened(draft: Draft) -> Item:
    """The item as `output_item.added` shows it."""
    call = draft.segments[0].call
    if call is not None:
        kind = CustomToolCallItem if call.kind == "custom" else FunctionCallItem
        return kind(draft.id, call.id, call.name, "", "in_progress")
    if draft.kind == "reasoning":
        return ReasoningItem(draft.id, status="in_progress")
    return MessageItem(draft.id, "in_progress")


def closed(draft: Draft, asked: ResponsesRequest, choice: Choice, logprobs: Sequence[Sequence[Logprob]] = ()) -> Item:
    """The item as it stays; `logprobs`, where asked for, are those of the deltas of each of its segments."""
    call = draft.segments[0].call
    if call is not None:
        kind = CustomToolCallItem if call.kind == "custom" else FunctionCallItem
        return kind(draft.id, call.id, call.name, text_of(draft.segments[0]), draft.status)
    if draft.kind == "reasoning":
        return _reasoning(draft, asked, choice)
    scored = [*logprobs, *[()] * len(draft.segments)]
    return MessageItem(draft.id, draft.status, [part(*pair) for pair in zip(draft.segments, scored, strict=False)])


def part(segment: Segment, logprobs: Sequence[Logprob]) -> OutputText | Refusal:
    """The finished part of a message; `logprobs` are those of its deltas."""
    if segment.kind == "text":
        return OutputText(text_of(segment), (), with_bytes(logprobs))
    return Refusal(text_of(segment))


def logprobs_of(context: Context) -> TextLogprobs | None:
    """Makes the text's log probabilities, where they were asked for."""
    scores = context.plan.choices[0].scores
    return None if scores is None else TextLogprobs(scores, context.request.logprobs or 0)


def text_of(segment: Segment) -> str:
    """All the text of a segment."""
    return plain(b"".join(segment.pieces))


def _reasoning(draft: Draft, asked: ResponsesRequest, choice: Choice) -> ReasoningItem:
    text = text_of(draft.segments[0])
    # Opaque by design, and as long as sealed text would be; a client can only send it back.
    sealed = (
        b64encode(shake_128(derive(choice.key, b"sealed:%d" % draft.output_index)).digest(len(text) + 64)).decode()
        if asked.with_encrypted_reasoning
        else UNSET
    )
    if asked.summary is not None:
        return ReasoningItem(draft.id, [SummaryText(text)], encrypted_content=sealed, status=draft.status)
    return ReasoningItem(draft.id, (), [ReasoningText(text)], encrypted_content=sealed, status=draft.status)


# ---- the response -------------------------------------------------------------------------------


def opening(context: Context) -> Response:
    """The response before its first token, with everything that is echoed."""
    body: ResponsesBody = context.body
    asked = body.asked
    reasoning = asked.reasoning
    return Response(
        id=context.id,
        created_at=context.created,
        status="in_progress",
        background=bool(asked.background),
        instructions=asked.instructions,
        max_output_tokens=asked.max_output_tokens,
        max_tool_calls=asked.max_tool_calls,
        model=context.request.model,
        parallel_tool_calls=asked.parallel_tool_calls is not False,
        previous_response_id=asked.previous_response_id,
        prompt_cache_key=asked.prompt_cache_key,
        reasoning={"effort": reasoning.effort if reasoning is not None else None, "summary": asked.summary},
        safety_identifier=asked.safety_identifier,
        service_tier=asked.service_tier or "auto",
        store=asked.stored,
        temperature=1.0 if asked.temperature is None else asked.temperature,
        top_logprobs=asked.top_logprobs or 0,
        top_p=1.0 if asked.top_p is None else asked.top_p,
        truncation=asked.truncation or "disabled",
        user=asked.user,
        metadata=asked.metadata or {},
        prompt_cache_retention=asked.prompt_cache_retention or UNSET,
        **body.echo,
    )


_TIERS = {"auto": "default", "fast": "priority"}


def ended(base: Response, context: Context, output: list[Item]) -> Response:
    """The response after its last token."""
    plan = context.plan
    cut = _CUTS.get(plan.choices[0].finish_reason)
    tier = base.service_tier or "auto"
    return replace(
        base,
        status="completed" if cut is None else "incomplete",
        completed_at=None if cut is not None else int(context.created + plan.end_s),
        incomplete_details=None if cut is None else IncompleteDetails(cut),
        output=output,
        service_tier=_TIERS.get(tier, tier),
        usage=Usage(
            input_tokens=plan.prompt_tokens,
            input_tokens_details=InputTokensDetails(plan.cached_tokens),
            output_tokens=plan.completion_tokens,
            output_tokens_details=OutputTokensDetails(plan.reasoning_tokens),
            total_tokens=plan.prompt_tokens + plan.completion_tokens,
        ),
    )


def whole_response(context: Context) -> Response:
    """The response as a whole reply holds it, and as it is read back from the store."""
    choice = context.plan.choices[0]
    asked: ResponsesRequest = context.body.asked
    scorer = logprobs_of(context)
    output: list[Item] = []
    position = 0
    for draft in drafts(context.id, choice):
        logprobs: list[list[Logprob]] = []
        if scorer is not None and draft.kind == "text":
            for segment in draft.segments:
                is_text = segment.kind == "text"
                logprobs.append(scorer.deltas(segment.pieces, position) if is_text else [])
                position += len(segment.pieces) if is_text else 0
        output.append(closed(draft, asked, choice, logprobs))
    return ended(opening(context), context, output)
