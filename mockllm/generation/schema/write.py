"""The writer: a value for a state, by keyed choices, checks and second tries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockllm.generation.keyed import Draws
from mockllm.generation.schema import scalars
from mockllm.generation.schema.check import Checker
from mockllm.generation.schema.containers import write_array, write_object
from mockllm.generation.schema.limits import (
    KEPT_SHAPES,
    MAX_NESTING,
    RETRIES,
    SOFT_DEPTH,
    SOFT_STEPS,
    ExhaustedError,
    UnmetError,
    Work,
)
from mockllm.generation.schema.node import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INFINITE,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    equality_key,
)
from mockllm.generation.schema.shape import Alternative, Shape, State, chosen

Taboo = set[Any] | None
Kept = tuple[Shape | None, str, str, int]
"""A merged state, or the path and reason of its refusal; and the checks that merging took."""


class Writer:
    """Writes one document.

    Args:
        draws: Where the choices come from.
        work: Counts the steps.
        shapes: Merged states, kept between documents of one schema.
        strict: Properties that the schema does not name are not invented.
    """

    def __init__(self, draws: Draws, work: Work, shapes: dict[State, Kept], strict: bool) -> None:
        self.draws = draws
        self.work = work
        self.strict = strict
        self.optional: bool | None = None  # all, none, or by draw
        self._shapes = shapes
        self._used: dict[State, Kept] = {}
        self.turn = 0  # which try this is, to begin with another type each time
        self._nesting = 0

    def judge(self, state: State, value: Any) -> bool:
        """Whether a value meets a state."""
        checker = Checker(self.work)
        return all(checker.valid(node, value) for node in state[0]) and not any(
            checker.valid(node, value) for node in state[1]
        )

    def shape(self, state: State) -> Shape:
        """The merged state, out of the store where it was seen before.

        What merging cost is counted once for each document, stored or not: a document is the same
        whichever came before it.
        """
        kept = self._used.get(state)
        if kept is None:
            kept = self._shapes.get(state)
            if kept is None:
                kept = self._merge(state)
                if len(self._shapes) < KEPT_SHAPES:
                    self._shapes[state] = kept
            elif kept[3]:
                self.work.check(kept[1], kept[3])
            self._used[state] = kept
        shape, path, reason, _ = kept
        if shape is None:
            raise UnmetError(path, reason)
        return shape

    def _merge(self, state: State) -> Kept:
        before = self.work.checks
        try:
            shape = Shape(state, self.judge)
        except ExhaustedError:
            raise
        except UnmetError as error:
            return None, error.path, error.reason, self.work.checks - before
        return shape, shape.path, "", self.work.checks - before

    @property
    def hurried(self) -> bool:
        """Whether to write only what must be."""
        return self._nesting > SOFT_DEPTH or self.work.steps > SOFT_STEPS

    def value(self, state: State, name: str = "", taboo: Taboo = None) -> Any:
        """A value that meets the state.

        Args:
            state: What it has to meet.
            name: Name of the property it is for, as a hint.
            taboo: Equality keys of values that it must not equal.

        Raises:
            UnmetError: None was found.
        """
        path = state[0][0].path if state[0] else "#"
        self.work.step(path)
        if self._nesting > MAX_NESTING:
            raise UnmetError(path, f"its values would be nested deeper than {MAX_NESTING} levels")
        self._nesting += 1
        try:
            shape = self.shape(state)
            if shape.values is not None:
                return self._listed(shape, state, taboo)
            if shape.groups:
                return self._choice(shape, state, name, taboo)
            if shape.excluded:
                taboo = shape.excluded if taboo is None else taboo | shape.excluded
            if not shape.checked and taboo is None:
                return self._plain(shape, name, None)
            return self._tried(shape, state, name, taboo)
        finally:
            self._nesting -= 1

    def _listed(self, shape: Shape, state: State, taboo: Taboo) -> Any:
        values = shape.values or []
        sure = len(values) <= 1000
        start = self.draws.below(len(values))
        for offset in range(len(values)):
            value = values[(start + offset) % len(values)]
            if (taboo is None or equality_key(value) not in taboo) and (sure or self.judge(state, value)):
                return value
        raise UnmetError(shape.path, "its enum has no value left that meets the other conditions")

    def _choice(self, shape: Shape, state: State, name: str, taboo: Taboo) -> Any:
        group = shape.groups[0]
        path, alternatives = group[1], group[2]
        start = self.draws.below(len(alternatives))
        order = alternatives[start:] + alternatives[:start]
        if self.hurried:
            order = sorted(order, key=_height)
        refusal: tuple[str, str] | None = None
        for alternative in order:
            if _height(alternative) >= INFINITE:
                continue
            try:
                return self.value(chosen(state, group, alternative), name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                self.work.fail(path)
                refusal = refusal or (error.path, error.reason)
        if refusal is None:
            raise UnmetError(path, "none of its alternatives can be met")
        if len(alternatives) == 1 or group[0][1] not in ("anyOf", "oneOf"):
            raise UnmetError(*refusal)
        where, reason = refusal
        raise UnmetError(path, f"none of its {len(alternatives)} alternatives can be met ({where}: {reason})"[:500])

    def _tried(self, shape: Shape, state: State, name: str, taboo: Taboo) -> Any:
        before = self.optional, self.turn
        what = "meets all its conditions" if taboo is None else "differs from the others and meets all its conditions"
        refusal = shape.path, f"no value was found that {what}"
        for attempt in range(RETRIES if shape.checked else 2 * RETRIES):
            if attempt:
                self.work.fail(shape.path)
            self.turn = attempt
            self.optional = before[0] if attempt > 2 or not attempt else attempt == 1
            try:
                value = self._plain(shape, name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                refusal = error.path, error.reason
                continue
            finally:
                self.optional, self.turn = before
            if taboo is not None and equality_key(value) in taboo:
                continue
            if not shape.checked or self.judge(state, value):
                return value
        raise UnmetError(*refusal)

    def _plain(self, shape: Shape, name: str, taboo: Taboo) -> Any:
        order = shape.order
        if shape.samples and self.draws.below(2):
            return shape.samples[self.draws.below(len(shape.samples))]
        if len(order) > 1:
            late = self.hurried if shape.typed else self._nesting > 3 * SOFT_DEPTH
            if late and not self.turn:
                order = sorted(order, key=lambda kind: kind in (OBJECT, ARRAY))
            elif shape.typed or self.turn:
                start = self.draws.below(len(order)) if shape.typed else self.turn % len(order)
                order = order[start:] + order[:start]
        refusal: tuple[str, str] | None = None
        for kind in order:
            try:
                return _WRITERS[kind](self, shape, name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                refusal = refusal or (error.path, error.reason)
        raise UnmetError(*(refusal or (shape.path, "no type is left that meets all its conditions")))


def _height(alternative: Alternative) -> int:
    return max([node.height for node in alternative[0]], default=0)


_WRITERS: dict[int, Callable[[Writer, Shape, str, Taboo], Any]] = {
    STRING: lambda w, s, n, t: scalars.text(w.draws, w.work, s, n, t, w.turn),
    INTEGER: lambda w, s, n, t: scalars.integer(w.draws, s, n, t),
    FRACTION: lambda w, s, n, t: scalars.number(w.draws, s, n),
    OBJECT: lambda w, s, n, t: write_object(w, s),
    ARRAY: lambda w, s, n, t: write_array(w, s, n),
    BOOLEAN: lambda w, s, n, t: bool(w.draws.below(2)),
    NULL: lambda w, s, n, t: None,
}
