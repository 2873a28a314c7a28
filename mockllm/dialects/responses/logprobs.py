"""Log probabilities of output text, in the shapes of the Responses API.

On deltas a token has no `bytes`; on the finished part it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.dialects.jsontext import plain
from mockllm.dialects.responses_events import Logprob, TopLogprob
from mockllm.generation.logprobs import Scores


class TextLogprobs:
    """Makes the log probabilities of a reply's text.

    Args:
        scores: What the model thought of the tokens.
        count: How many alternatives each token shows, itself among them.
    """

    __slots__ = ("_count", "_scores")

    def __init__(self, scores: Scores, count: int) -> None:
        self._scores = scores
        self._count = count

    def deltas(self, pieces: Sequence[bytes], position: int) -> list[Logprob]:
        """Those of the pieces that send something; `position` is that of the first piece in all the text."""
        return [self._delta(piece, position + offset) for offset, piece in enumerate(pieces) if piece]

    def _delta(self, piece: bytes, position: int) -> Logprob:
        score = self._scores.score(piece, position, self._count)
        token = plain(piece)
        if not self._count:
            return Logprob(token, score.logprob)
        others = self._scores.vocabulary.pieces
        top = [TopLogprob(token if number is None else plain(others[number]), value) for number, value in score.top]
        return Logprob(token, score.logprob, top)


def with_bytes(logprobs: Sequence[Logprob]) -> list[Logprob]:
    """The same as a finished part has them."""
    return [
        Logprob(
            entry.token,
            entry.logprob,
            [TopLogprob(top.token, top.logprob, list(top.token.encode())) for top in entry.top_logprobs or ()],
            list(entry.token.encode()),
        )
        for entry in logprobs
    ]
