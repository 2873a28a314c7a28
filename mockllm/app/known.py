"""What is known of a request that was seen before, byte for byte.

Load generators send the same body for ever, and an answer is a function of the request: what was
decoded, validated and planned once need not be done again. Only what differs between equal
requests is made anew: the reply's id, its time, and what the exchange records. Where anything but
the body has a say (drawn timings, a script, headers with overrides), nothing is kept or used.

Factor: 2.2 for a whole reply of 16 tokens, 1.5 for a stream of 128 (`python -m bench whole stream`;
the row with prompts of their own shows what it is without).
"""

from __future__ import annotations

from mockllm.dialects.dialect import Context

MOST_BODIES = 256
MOST_BODY_BYTES = 8192
MOST_TOKENS = 4096
"""Bounds what is kept, to some ten megabytes at worst."""

MOST_ONCE = 4096
"""Digests of bodies that came once. Bodies that never come again are not kept: 6 µs less for each."""

TURNED_AWAY = 16
"""When all places are taken, one in so many replaces the oldest: 12 µs less where 3,000 bodies take turns."""

_CREATED = b'"created":'


class Known:
    """Whole requests of one dialect, by their bodies."""

    __slots__ = ("_bodies", "_once", "_turned_away", "find")

    def __init__(self) -> None:
        self._bodies: dict[bytes, Seen] = {}
        self._once: set[int] = set()
        self._turned_away = 0
        self.find = self._bodies.get

    def keep(self, body: bytes, context: Context) -> None:
        """Keep the answer to a body that came for the second time, unless it is large or one of a kind."""
        digest = hash(body)  # only decides what is worth keeping, never what is answered
        if digest not in self._once:
            if len(self._once) >= MOST_ONCE:
                self._once.clear()
            self._once.add(digest)
            return
        if len(self._bodies) >= MOST_BODIES:
            # Where more bodies take turns than are kept, replacing each would cost more than it saves.
            self._turned_away += 1
            if self._turned_away % TURNED_AWAY:
                return
            del self._bodies[next(iter(self._bodies))]
        plan = context.plan
        if len(body) > MOST_BODY_BYTES or plan.completion_tokens > MOST_TOKENS:
            return
        if plan.choices[0].scores is not None or plan.choices[0].prompt is not None:
            return  # these make a token hundreds of bytes long
        if any(segment.call is not None for choice in plan.choices for segment in choice.segments):
            return  # a call has an id of its own each time
        self._bodies[body] = Seen(context)


class Seen:
    """One request that was answered."""

    __slots__ = ("_parts", "context", "planned")

    def __init__(self, context: Context) -> None:
        self.context = context
        self._parts: tuple[bytes, bytes, bytes] | None = None
        self.planned = b""  # head lines with the planned values

    def rendered(self, body: bytes, context: Context) -> None:
        """Keep a whole body that was made for it, but for the id and the time in it."""
        own_id = context.id.encode()
        before, _, rest = body.partition(own_id)
        between, found, after = rest.partition(b"%b%d" % (_CREATED, context.created))
        if found and own_id not in after:
            self._parts = before, between + _CREATED, after

    def whole(self, id: str, created: int) -> bytes | None:
        """The whole body with another id and time; None where it has to be made."""
        parts = self._parts
        return None if parts is None else b"%b%b%b%d%b" % (parts[0], id.encode(), parts[1], created, parts[2])
