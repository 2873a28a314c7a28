"""A plan is walked alike in steps of any size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.dialects.dialect import StepStream
from mockllm.generation.plan import Choice, Plan, Segment, ToolCall


class Labels:
    """A writer whose events say what was asked of it."""

    def open(self, choice: Choice) -> list[bytes]:
        return [b"open %d" % choice.index]

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return [b"begin %d %b" % (choice.index, segment.kind.encode())]

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        pieces = segment.pieces[first:upto]
        return [b"%d:%d %b" % (choice.index, before + number, piece) for number, piece in enumerate(pieces)]

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return [b"end %d" % choice.index]

    def close(self, choice: Choice) -> list[bytes]:
        return [b"close %d" % choice.index]

    def finish(self) -> list[bytes]:
        return [b"finish"]


def choice(index: int, lengths: list[int], called: bool) -> Choice:
    segments = [Segment("text", [b"%d" % n for n in range(length)]) for length in lengths]
    if called:
        segments.append(Segment("tool", [b"{", b"}"], ToolCall("call_1", "look")))
    return Choice(index, tuple(segments), "stop", sum([segment.steps for segment in segments]), bytes(16))


choices = st.builds(choice, st.just(0), st.lists(st.integers(1, 12), min_size=1, max_size=3), st.booleans())


@given(choices, st.lists(st.integers(1, 5)))
def test_any_cut_gives_the_same_events_in_the_same_order(one: Choice, sizes: list[int]) -> None:
    plan = Plan((one,), 1, one.tokens, 0.0, [0.0] * one.tokens)
    whole = StepStream(plan, Labels()).render(0, plan.steps)
    assert whole[0] == b"open 0"
    assert whole[-2:] == [b"close 0", b"finish"]
    stream, events, at = StepStream(plan, Labels()), [], 0
    for size in [*sizes, plan.steps]:
        upto = min(at + size, plan.steps)
        if upto > at:
            events += stream.render(at, upto)
        at = upto
    assert events == whole
