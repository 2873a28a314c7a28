"""What every fault has in common: which requests it strikes, and what comes of it.

A fault is a frozen struct that is told apart by `kind`. Its own fields say what goes wrong, the
inherited ones whom it concerns; `strike` turns a good reply into the bad one and says in words
what it did. Nothing here waits, draws or counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from mockllm.errors import RequestError
from mockllm.exchange import Reply

Whole = Callable[[int, bytes, bytes, bytes], Reply]
"""`whole(status, content_type_line, more_lines, body)` makes a whole reply that is due at once."""

Count = Annotated[int, Meta(ge=1)]
Tokens = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
Glob = Annotated[str, Meta(max_length=1024)]
"""Becomes a regular expression, and requests may bring their own: 1 MB of it takes seconds."""


class Site(Struct, frozen=True):
    """What a fault may use of the server and of the request.

    Attributes:
        endpoint: The route's path, which tells the dialect.
        error: Makes a whole error reply in the dialect's envelope.
        whole: Makes any other whole reply.
    """

    endpoint: str
    error: Callable[[RequestError], Reply]
    whole: Whole


class Struck(Struct, frozen=True):
    """What a fault made of a reply.

    Attributes:
        words: What it did, for the ledger.
        tokens: Tokens that are still sent of each choice; None for all of them.
        replaced: Nothing of the planned reply is left.
    """

    reply: Reply
    words: str
    tokens: int | None = None
    replaced: bool = False


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind"):
    """Whom a fault concerns; all that is given must hold.

    Attributes:
        probability: Strikes with this probability, drawn by (seed, request, occurrence).
        nth: Strikes every n-th request that it concerns, by arrival.
        first: Strikes the first so many arrivals of what `of` says, and then none.
        of: Of `each` request (one that is sent again counts on), or of `all` that it concerns.
        model: Only requests for this model; `*` stands for any text.
        path: Only requests to this path; `*` stands for any text. Without it, all POST requests to
            the API: a poll of /health or /v1/models uses up no count.
        header: Only requests with this header, `name` or `name:value`.
        also: The faults after this one are looked at too; otherwise the first that strikes is the only one.
    """

    probability: Annotated[float, Meta(ge=0, le=1)] | None = None
    nth: Count | None = None
    first: Count | None = None
    of: Literal["each", "all"] = "each"
    model: Glob | None = None
    path: Glob | None = None
    header: str | None = None
    also: bool = False

    def strike(self, reply: Reply, site: Site) -> Struck | None:
        """Spoil a reply.

        Returns:
            The reply it has become; None where this reply has nothing that could go wrong so.
        """
        raise NotImplementedError
