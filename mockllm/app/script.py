"""The script: replies that were queued for the requests to come, and what became of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from mockllm.app.faults import parse_faults
from mockllm.errors import RequestError
from mockllm.exchange import Exchange
from mockllm.generation.overrides import ScriptedReply
from mockllm.generation.plan import GenerationRequest

MOST_REPLIES = 10_000
KEPT_MISSES = 100
SHOWN_CHARACTERS = 200


class Miss(Struct, frozen=True):
    """A request that found no reply in the script.

    Attributes:
        seq: Its number, as in the ledger.
        message: The beginning of its last message.
    """

    seq: int
    request_id: str
    path: str
    model: str
    message: str


class ScriptState(Struct, frozen=True):
    """Where a script stands.

    Attributes:
        left: The replies that nobody has asked for yet, in order.
        used: How many have been given.
        missed: How many requests found none, once there was a script.
        misses: The last of these.
        strict: Such a request is refused, and not answered as without a script.
    """

    left: tuple[ScriptedReply, ...]
    used: int
    missed: int
    misses: tuple[Miss, ...]
    strict: bool


class Script:
    """The queue of one server.

    Attributes:
        given: There is or was a script, since the last `clear`.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.given = False
        self._left: list[ScriptedReply] = []
        self._used = 0
        self._missed = 0
        self._misses: deque[Miss] = deque(maxlen=KEPT_MISSES)
        self._strict = False

    def add(self, replies: Iterable[ScriptedReply], strict: bool) -> None:
        """Queue replies behind those that are left; `strict` holds for all from now on.

        Raises:
            RequestError: The text of a fault cannot be read, or there would be too many; then none is queued.
        """
        replies = list(replies)
        if len(self._left) + len(replies) > MOST_REPLIES:
            raise RequestError(
                f"A script can have at most {MOST_REPLIES} replies; "
                f"{len(self._left)} are left, and {len(replies)} more were given.",
                param="script",
            )
        for number, reply in enumerate(replies):
            if isinstance(reply.fault, str):
                parse_faults(reply.fault, f"script[{number}].fault")
        self._left += replies
        self._strict = strict
        self.given = True

    def clear(self) -> ScriptState:
        """Forget the script; returns where it stood."""
        state = self.state()
        self._begin()
        return state

    def state(self) -> ScriptState:
        """Where it stands."""
        return ScriptState(tuple(self._left), self._used, self._missed, tuple(self._misses), self._strict)

    def find(self, asked: GenerationRequest, exchange: Exchange) -> ScriptedReply | None:
        """The first reply that a request matches, which stays in the queue until it is `taken`.

        Raises:
            RequestError: There is none, and the script is strict.
        """
        message = _last_message(asked)
        for reply in self._left:
            if _matches(reply, asked.model, exchange, message):
                return reply
        if self._strict:
            self._miss(asked, exchange, message)
            raise RequestError(
                f"The script has no reply for this request; {len(self._left)} for others are left.",
                status=404,  # SDKs retry a 5xx
                type="not_found_error",
                code="no_scripted_reply",
            )
        return None

    def taken(self, reply: ScriptedReply | None, asked: GenerationRequest, exchange: Exchange) -> None:
        """A request was answered with what `find` gave."""
        if reply is None:
            self._miss(asked, exchange, _last_message(asked))
            return
        self._used += 1
        # By identity: equal replies may stand in the queue several times.
        self._left.pop(next(number for number, other in enumerate(self._left) if other is reply))

    def _miss(self, asked: GenerationRequest, exchange: Exchange, message: str) -> None:
        self._missed += 1
        self._misses.append(
            Miss(exchange.seq, exchange.request_id, exchange.path, asked.model, message[:SHOWN_CHARACTERS])
        )


def _last_message(asked: GenerationRequest) -> str:
    messages = asked.prompts[0].messages if asked.prompts else ()
    return messages[-1].text if messages else ""


def _matches(reply: ScriptedReply, model: str, exchange: Exchange, message: str) -> bool:
    match = reply.match
    if match is None:
        return True
    if match.model is not None and match.model != model:
        return False
    if match.path is not None and _bare(match.path) not in (_bare(exchange.path), _bare(exchange.endpoint)):
        return False
    return match.message is None or match.message in message


def _bare(path: str) -> str:
    return path.removeprefix("/v1")
