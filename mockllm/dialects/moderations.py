"""`POST /v1/moderations`.

A text is flagged in the categories whose names are words of it, so that a test can have any of
them: "violence/graphic, please" is flagged as `violence/graphic`. All other scores are small, and
functions of (seed, input).

Source: https://platform.openai.com/docs/api-reference/moderations/create.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mockllm.dialects.decode import decoder
from mockllm.dialects.messages import ContentPart, content_text
from mockllm.dialects.reader import ReadContext, Reading, ReadRequest, Written, in_one_step, text_prompt
from mockllm.errors import RequestError
from mockllm.generation.keyed import make_key, u16s

CATEGORIES = (
    "harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
    "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
)  # fmt: skip
_OF_IMAGES = ("self-harm", "self-harm/instructions", "self-harm/intent", "sexual", "violence", "violence/graphic")
"""The categories in which images are judged, too."""

_NAMES = "|".join(sorted(CATEGORIES, key=len, reverse=True))
_find_names = re.compile(rf"(?<![\w/-])(?:{_NAMES})(?![\w/-])", re.IGNORECASE).findall


class ModerationRequest(ReadRequest, kw_only=True):
    """The body."""

    input: str | list[str | ContentPart]


_decode = decoder(ModerationRequest)


class Moderations:
    """The Moderations dialect."""

    id_prefix = "modr-"

    def decode(self, body: bytes) -> tuple[ModerationRequest, Reading]:
        """See `Reader`."""
        asked = _decode(body)
        given = [asked.input] if isinstance(asked.input, str) else asked.input
        texts = [part for part in given if isinstance(part, str)]
        if not given:
            raise RequestError("input must not be empty.", param="input")
        if not texts:  # parts of one input
            texts = [content_text(given)]
        elif len(texts) != len(given):
            raise RequestError("input must be texts, or parts of one input, but not both.", param="input")
        return asked, Reading(asked.model, tuple([text_prompt(text) for text in texts]), "input", asked.overrides)

    def write(self, context: ReadContext) -> Written:
        """See `Reader`."""
        asked: ModerationRequest = context.body
        parts = [] if isinstance(asked.input, str) else [p for p in asked.input if isinstance(p, ContentPart)]
        images = any(part.type == "image_url" for part in parts)
        texts = not parts or any(part.type == "text" for part in parts)
        results = [
            _judge(context.seed, prompt.messages[0].text, texts=texts, images=images)
            for prompt in context.reading.prompts
        ]
        return in_one_step(msgspec.json.encode({"id": context.id, "model": context.model, "results": results}))


def _judge(seed: int, text: str, *, texts: bool, images: bool) -> dict[str, Any]:
    named = {name.lower() for name in _find_names(text)}
    draws = u16s(make_key(seed, b"moderation:" + text.encode("utf-8", "surrogatepass")), len(CATEGORIES))
    scores = {
        name: 0.9 + draw / 655_360 if name in named else draw / 6_553_600
        for name, draw in zip(CATEGORIES, draws, strict=True)
    }
    return {
        "flagged": bool(named),
        "categories": {name: name in named for name in CATEGORIES},
        "category_scores": scores,
        "category_applied_input_types": {
            name: ["text"] * texts + ["image"] * (images and name in _OF_IMAGES) for name in CATEGORIES
        },
    }
