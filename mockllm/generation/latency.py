"""When tokens are due: TTFT, inter-token latencies, and the whole-reply latency.

Samples are normal, clamped at 0 and never rounded: a mean of 0.25 ms is 0.25 ms. A spacing
without deviation is computed once and shared by every stream, since only its start differs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

from mockllm.generation.keyed import derive, normals

_FIRST_SHARED_STEPS = 1024


class Even:
    """Offsets k · `gap_s` for k = 0, 1, …; one growing array for all streams."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._offsets: Sequence[float] = ()

    def upto(self, steps: int) -> Sequence[float]:
        """At least `steps` offsets. Longer arrays replace shorter ones, which their users keep."""
        if len(self._offsets) < steps:
            count = _FIRST_SHARED_STEPS
            while count < steps:
                count *= 2
            gap_s = self._gap_s
            self._offsets = array("d", [k * gap_s for k in range(count)])
        return self._offsets


class Latency:
    """Draws a reply's timing.

    Args:
        ttft_s, ttft_std_s: Mean and standard deviation of the time to first token, in seconds.
        itl_s, itl_std_s: The same of the time between two tokens.
        whole_s, whole_std_s: The same of a whole (non-streamed) reply; None lets it take as long as
            its stream would.
    """

    def __init__(
        self,
        ttft_s: float,
        ttft_std_s: float,
        itl_s: float,
        itl_std_s: float,
        whole_s: float | None = None,
        whole_std_s: float = 0.0,
    ) -> None:
        self._ttft_s = ttft_s
        self._ttft_std_s = ttft_std_s
        self._itl_s = itl_s
        self._itl_std_s = itl_std_s
        self._whole_s = whole_s
        self._whole_std_s = whole_std_s
        self._even = Even(itl_s)
        self.draws = bool(ttft_std_s or itl_std_s or whole_std_s)
        """Whether samples differ at all, so that a key is needed."""
        if self.draws:
            normals(bytes(16), 1)  # build its table now, not at the first request

    def stream(self, key: bytes, steps: int) -> tuple[float, Sequence[float]]:
        """Timing of a reply sent token by token.

        Args:
            key: Key of the draw; any bytes when `draws` is false.
            steps: How many tokens, ≥ 1.

        Returns:
            Offset of the first token from arrival, and offsets of all tokens from the first one
            (at least `steps` of them), in seconds.
        """
        first_s = self._ttft_s
        if self._ttft_std_s:
            first_s = max(0.0, first_s + self._ttft_std_s * normals(derive(key, b"ttft"), 1)[0])
        if not self._itl_std_s:
            return first_s, self._even.upto(steps)
        itl_s, std_s = self._itl_s, self._itl_std_s
        gaps = [itl_s + std_s * z for z in normals(derive(key, b"itl"), steps - 1)]
        return first_s, array("d", accumulate([gap if gap > 0.0 else 0.0 for gap in gaps], initial=0.0))

    def whole(self, key: bytes) -> float | None:
        """Latency of a whole reply, or None where it follows the stream's timing."""
        if self._whole_s is None:
            return None
        if not self._whole_std_s:
            return self._whole_s
        return max(0.0, self._whole_s + self._whole_std_s * normals(derive(key, b"whole"), 1)[0])
