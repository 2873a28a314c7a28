"""Rate limits that are counted: requests and tokens in the last minute, per API key.

The window slides. Arrivals within a tenth of a second are kept together, so that a key costs at most
600 entries however many requests it sends, and a request a few operations; what a window lets in is
so exact to a six-hundredth. Each worker process counts what it gets.

Source: https://platform.openai.com/docs/guides/rate-limits (headers, and what a request is charged).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from hashlib import blake2b

from mockllm.errors import RequestError
from mockllm.exchange import Exchange
from mockllm.faults import duration

WINDOW_S = 60.0
SLOT_S = 0.1

_KEY_BYTES = 256  # longer ones are kept as their digests

KEYS_KEPT = 10_000
"""How many keys are counted; then the one longest unseen begins anew."""


class Window:
    """What was used in the last minute.

    Args:
        limit: How much may be, ≥ 1.
    """

    __slots__ = ("_entries", "_used", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: deque[list[float]] = deque()  # [first instant of a slot, amount]
        self._used = 0

    def used(self, now: float) -> int:
        """How much was used in the minute before `now`."""
        entries, since = self._entries, now - WINDOW_S
        while entries and entries[0][0] <= since:
            self._used -= int(entries.popleft()[1])
        return self._used

    def use(self, now: float, amount: int) -> None:
        """Use so much, whether or not there is so much."""
        self._used += amount
        entries = self._entries
        if entries and now - entries[-1][0] < SLOT_S:
            entries[-1][1] += amount
        elif amount:
            entries.append([now, amount])

    def wait_s(self, now: float, amount: int) -> float:
        """How long until so much is free; only for an amount that the limit allows at all."""
        over = self.used(now) + amount - self.limit
        for first_s, used in self._entries:
            if over <= 0:
                return 0.0
            over -= int(used)
            if over <= 0:
                return min(WINDOW_S, first_s + WINDOW_S - now)
        return 0.0

    def reset_s(self, now: float) -> float:
        """How long until all is free, if nothing more is used."""
        return min(WINDOW_S, max(0.0, self._entries[-1][0] + WINDOW_S - now)) if self._entries else 0.0


class Account:
    """The windows of one key.

    Args:
        rpm: Requests a minute, or None for no limit.
        tpm: Tokens a minute, or None.
    """

    __slots__ = ("_requests", "_tokens")

    def __init__(self, rpm: int | None, tpm: int | None) -> None:
        self._requests = None if rpm is None else Window(rpm)
        self._tokens = None if tpm is None else Window(tpm)

    def admit(self, exchange: Exchange) -> None:
        """Let a request in and count it.

        Raises:
            RequestError: 429, the requests of this minute are used up.
        """
        if self._requests is not None:
            _take(self._requests, "requests", 1, exchange)

    def charge(self, exchange: Exchange) -> None:
        """Count the tokens of a request that is planned: its prompt and its limit, or its reply where it has none.

        Raises:
            RequestError: 429, the tokens of this minute do not suffice.
        """
        if self._tokens is None:
            return
        limit = exchange.limit_tokens
        answer = exchange.tokens if limit is None else limit * exchange.choices
        try:
            _take(self._tokens, "tokens", exchange.prompt_tokens + answer, exchange)
        except RequestError:
            exchange.tokens, exchange.finish_reason = 0, ""
            raise

    def lines(self, now: float) -> bytes:
        """The head lines that tell the limits and what is left of them."""
        requests = b"" if self._requests is None else _lines(_REQUESTS, self._requests, now)
        return requests if self._tokens is None else requests + _lines(_TOKENS, self._tokens, now)


class RateLimits:
    """The accounts of all keys.

    Args:
        rpm, tpm: See `Account`.
    """

    def __init__(self, rpm: int | None, tpm: int | None) -> None:
        self._limits = rpm, tpm
        self._accounts: OrderedDict[bytes, Account] = OrderedDict()

    def account(self, headers: Mapping[bytes, bytes]) -> Account:
        """The account of the key that a request came with; requests without one share theirs."""
        key = headers.get(b"authorization") or headers.get(b"x-api-key") or b""
        if len(key) > _KEY_BYTES:
            key = blake2b(key).digest()
        account = self._accounts.get(key)
        if account is not None:
            self._accounts.move_to_end(key)
            return account
        account = self._accounts[key] = Account(*self._limits)
        if len(self._accounts) > KEYS_KEPT:
            self._accounts.popitem(last=False)
        return account


def _template(name: str) -> bytes:
    return (
        f"x-ratelimit-limit-{name}: %d\r\nx-ratelimit-remaining-{name}: %d\r\nx-ratelimit-reset-{name}: %b\r\n"
    ).encode()


_REQUESTS, _TOKENS = _template("requests"), _template("tokens")


def _lines(template: bytes, window: Window, now: float) -> bytes:
    left = window.limit - window.used(now)
    return template % (window.limit, max(0, left), duration(window.reset_s(now)).encode())


def _take(window: Window, name: str, amount: int, exchange: Exchange) -> None:
    now = exchange.arrival_s
    used = window.used(now)
    if used + amount <= window.limit:
        window.use(now, amount)
        return
    short = {"requests": "RPM", "tokens": "TPM"}[name]
    figures = f"{name} per min ({short}): Limit {window.limit}, Used {used}, Requested {amount}."
    model = f" for {exchange.model}" if exchange.model else ""
    if amount > window.limit:
        raise _refused(f"Request too large{model} on {figures} Shorten the input or the output.", name, {})
    wait_s = window.wait_s(now, amount)
    headers = {"retry-after": str(_ceil(wait_s)), "retry-after-ms": str(_ceil(wait_s * 1e3))}
    raise _refused(f"Rate limit reached{model} on {figures} Please try again in {duration(wait_s)}.", name, headers)


def _ceil(value: float) -> int:
    return -int(-value // 1)


def _refused(message: str, name: str, headers: dict[str, str]) -> RequestError:
    return RequestError(message, status=429, type=name, code="rate_limit_exceeded", headers=headers)
