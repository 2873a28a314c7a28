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


class Writer:
    """Writes one document.

    Args:
        draws: Where the choices come from.
        work: Counts the steps.
        shapes: Merged states, kept between documents of one schema.
        strict: Properties that the schema does not name are not invented.
    """

    def __init__(self, draws: Draws, work: Work, shapes: dict[State, Shape | UnmetError], strict: bool) -> None:
        self.draws = draws
        self.work = work
        self.strict = strict
        self.optional: bool | None = None  # all, none, or by draw
        self._shapes = shapes
        self.turn = 0  # which try this is, to begin with another type each time
        self._nesting = 0

    def judge(self, state: State, value: Any) -> bool:
        """Whether a value meets a state."""
        checker = Checker(self.work)
        return all(checker.valid(node, value) for node in state[0]) and not any(
            checker.valid(node, value) for node in state[1]
        )

    def shape(self, state: State) -> Shape:
        """The merged state, out of the store where it was seen before."""
        found = self._shapes.get(state)
        if found is None:
            try:
                found = Shape(state, self.judge)
            except ExhaustedError:
                raise
            except UnmetError as error:
                found = error
            if len(self._shapes) < KEPT_SHAPES:
                self._shapes[state] = found
        if isinstance(found, UnmetError):
            raise found
        return found

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
        first: UnmetError | None = None
        for alternative in order:
            if _height(alternative) >= INFINITE:
                continue
            try:
                return self.value(chosen(state, group, alternative), name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                self.work.fail(path)
                first = first or error
        if first is None:
            raise UnmetError(path, "none of its alternatives can be met")
        if len(alternatives) == 1 or group[0][1] not in ("anyOf", "oneOf"):
            raise first
        raise UnmetError(
            group[1], f"none of its {len(alternatives)} alternatives can be met ({first.path}: {first.reason})"
        )

    def _tried(self, shape: Shape, state: State, name: str, taboo: Taboo) -> Any:
        before = self.optional
        what = "meets all its conditions" if taboo is None else "differs from the others and meets all its conditions"
        last = UnmetError(shape.path, f"no value was found that {what}")
        for attempt in range(RETRIES if shape.checked else 2 * RETRIES):
            if attempt:
                self.work.fail(shape.path)
            self.turn = attempt
            self.optional = before if attempt > 2 or not attempt else attempt == 1
            try:
                value = self._plain(shape, name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                last = error
                continue
            finally:
                self.optional = before
            if taboo is not None and equality_key(value) in taboo:
                continue
            if not shape.checked or self.judge(state, value):
                return value
        raise last

    def _plain(self, shape: Shape, name: str, taboo: Taboo) -> Any:
        order = shape.order
        if not order:
            raise UnmetError(shape.path, "no type is left that meets all its conditions")
        if shape.samples and self.draws.below(2):
            return shape.samples[self.draws.below(len(shape.samples))]
        if len(order) > 1:
            if self.hurried and not self.turn:
                order = sorted(order, key=lambda kind: kind in (OBJECT, ARRAY))
            elif shape.typed or self.turn:
                start = self.draws.below(len(order)) if shape.typed else self.turn % len(order)
                order = order[start:] + order[:start]
        first: UnmetError | None = None
        for kind in order:
            try:
                return _WRITERS[kind](self, shape, name, taboo)
            except ExhaustedError:
                raise
            except UnmetError as error:
                first = first or error
        assert first is not None
        raise first


def _height(alternative: Alternative) -> int:
    return max([node.height for node in alternative[0]], default=0)


_WRITERS: dict[int, Callable[[Writer, Shape, str, Taboo], Any]] = {
    STRING: lambda w, s, n, t: scalars.text(w.draws, w.work, s, n, t),
    INTEGER: lambda w, s, n, t: scalars.integer(w.draws, s, n, t),
    FRACTION: lambda w, s, n, t: scalars.number(w.draws, s, n),
    OBJECT: lambda w, s, n, t: write_object(w, s),
    ARRAY: lambda w, s, n, t: write_array(w, s, n),
    BOOLEAN: lambda w, s, n, t: bool(w.draws.below(2)),
    NULL: lambda w, s, n, t: None,
}
