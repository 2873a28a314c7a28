"""`POST /v1/rerank`, and the same at `/v2/rerank`: documents by how well they match a query.

Source: vLLM's `RerankRequest` and `RerankResponse`, which follow Jina's and Cohere's;
`return_documents` is theirs.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from mockllm.dialects.decode import decoder
from mockllm.dialects.messages import ContentPart, content_text
from mockllm.dialects.reader import ReadContext, Reading, ReadRequest, Written, in_one_step
from mockllm.dialects.score import Content, pair, score, text_of
from mockllm.errors import RequestError


class Document(Struct):
    """A document as an object, with its text in one of two ways."""

    text: str | None = None
    content: list[str | ContentPart] | None = None


class RerankRequest(ReadRequest, kw_only=True):
    """The body; fields that are not here are accepted and change nothing."""

    query: str | Content
    documents: list[str | Document]
    top_n: Annotated[int, Meta(ge=0)] | None = None
    return_documents: bool | None = None


_decode = decoder(RerankRequest)


class Rerank:
    """The Rerank dialect; a pair has the score that the Score dialect gives it."""

    id_prefix = "rerank-"

    def decode(self, body: bytes) -> tuple[RerankRequest, Reading]:
        """See `Reader`."""
        asked = _decode(body)
        if not asked.documents:
            raise RequestError("documents must not be empty.", param="documents")
        query = text_of(asked.query)
        texts = [_text(document, number) for number, document in enumerate(asked.documents)]
        return asked, Reading(asked.model, tuple([pair(query, text) for text in texts]), "documents", asked.overrides)

    def write(self, context: ReadContext) -> Written:
        """See `Reader`."""
        asked: RerankRequest = context.body
        prompts = context.reading.prompts
        scores = [score(context.seed, prompt) for prompt in prompts]
        best = sorted(range(len(scores)), key=lambda k: (-scores[k], k))[: asked.top_n or None]
        results: list[dict[str, Any]] = []
        for k in best:
            result: dict[str, Any] = {"index": k, "relevance_score": scores[k]}
            if asked.return_documents is not False:
                result["document"] = {"text": prompts[k].messages[1].text, "multi_modal": None}
            results.append(result)
        tokens = context.prompt_tokens
        return in_one_step(
            msgspec.json.encode(
                {
                    "id": context.id,
                    "model": context.model,
                    "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
                    "results": results,
                }
            )
        )


def _text(document: str | Document, number: int) -> str:
    if isinstance(document, str):
        return document
    if document.text is not None:
        return document.text
    if document.content is None:
        raise RequestError(
            f"Invalid request, at $.documents[{number}]: must be a text, or an object with `text` or `content`",
            param=f"documents[{number}]",
        )
    return content_text(document.content)
