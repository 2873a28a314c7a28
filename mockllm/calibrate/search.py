"""Which numbers of streams to try, given which ones were held. No I/O: a decision and nothing else."""

from __future__ import annotations


class Search:
    """Doubles until a load is not held, then halves the gap.

    Args:
        first: Where to begin, ≥ 1.
        most: Never more than this.
        refinements: How often the gap between held and not held is halved.
    """

    def __init__(self, first: int, most: int, refinements: int) -> None:
        self._next: int | None = min(first, most)
        self._most = most
        self._refinements = refinements
        self.held = 0
        """The largest load that was held."""
        self.failed: int | None = None
        """The smallest load that was not."""

    @property
    def next(self) -> int | None:
        """The load to try now; None when the search is over."""
        return self._next

    def tell(self, held: bool) -> None:
        """Whether the load `next` was held."""
        tried = self._next
        if tried is None:
            raise ValueError("the search is over")
        if held:
            self.held = max(self.held, tried)
        else:
            self.failed = tried if self.failed is None else min(self.failed, tried)
        self._next = self._choose()

    def _choose(self) -> int | None:
        if self.failed is None:
            return None if self.held >= self._most else min(2 * self.held, self._most)
        middle = _round((self.held + self.failed) // 2)
        if self._refinements == 0 or not self.held < middle < self.failed:
            return None
        self._refinements -= 1
        return middle


def _round(count: int) -> int:
    """To two digits: the knee is not sharper than that."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return max(1, count // unit * unit)
