"""The handlers of the endpoints that read and generate nothing."""

from __future__ import annotations

from mockllm.app.generate import Generator
from mockllm.app.router import Handler, Route
from mockllm.dialects.embeddings import Embeddings
from mockllm.dialects.moderations import Moderations
from mockllm.dialects.reader import ReadContext, Reader
from mockllm.dialects.rerank import Rerank
from mockllm.dialects.score import Score
from mockllm.exchange import Exchange, Reply, Request
from mockllm.generation.plan import Plan
from mockllm.generation.tokens import Tokenizer


def reading_handler(generator: Generator, reader: Reader) -> Handler:
    """The handler of one dialect's endpoint."""

    def handle(request: Request, exchange: Exchange, _rest: str) -> Reply:
        generator.arrived(exchange)

        def read(given: bytes) -> tuple[ReadContext, Plan]:
            body, reading = reader.decode(given)
            return generator.reading(reader.id_prefix, body, reading, request, exchange)

        context, plan = generator.leniently(request.body, read)
        written = reader.write(context)
        if written.steps == 1:
            return generator.whole(exchange, plan, b"".join(written.render(0, 1)))
        return generator.in_parts(exchange, plan, written.steps, written.render)

    return handle


def reading_routes(generator: Generator, tokenizer: Tokenizer, dimensions: int) -> list[Route]:
    """The route table's lines.

    Args:
        generator: Plans answers.
        tokenizer: Tells what text token ids stand for.
        dimensions: Length of embeddings where a request names none.
    """
    readers: dict[str, Reader] = {
        "/v1/embeddings": Embeddings(tokenizer, dimensions),
        "/v1/rerank": Rerank(),
        "/v1/score": Score(),
        "/v1/moderations": Moderations(),
    }
    return [Route(path, {"POST": reading_handler(generator, reader)}) for path, reader in readers.items()] + [
        Route("/v2/rerank", {"POST": reading_handler(generator, readers["/v1/rerank"])})
    ]
