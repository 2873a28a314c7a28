"""Texts and numbers for a merged schema."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import ceil, floor, inf, nextafter
from typing import Any

from mockllm.generation.keyed import Draws
from mockllm.generation.pattern import Pattern, PatternError
from mockllm.generation.schema.check import is_multiple
from mockllm.generation.schema.formats import WRITERS, conforms
from mockllm.generation.schema.hints import WORDS, range_for, texts_for
from mockllm.generation.schema.limits import MAX_MAGNITUDE, MAX_TEXT_CHARS, UnmetError, Work, pattern_cost
from mockllm.generation.schema.shape import Shape

HUMAN_SPAN = 1000
"""Between bounds farther apart than this, numbers stay near the nearer end of the usual range."""

KEPT_SPANS = 64
"""Names of properties for which a shape keeps what was worked out; one shape may serve many."""

FAR = 10**18
"""Stands for "no bound", counted in steps from the other bound or from 0."""

UNUSUAL = ("", "A", "7", "Zz-9", "two words", "_x", "a", "0123456789", "Été 2025", "a.b/c", "QUARTER", "x" * 40)
"""Texts for later tries, where a condition that can only be checked has refused plain words."""

FORMAT_TRIES = 24
MULTIPLE_TRIES = 64


def text(draws: Draws, work: Work, shape: Shape, name: str, taboo: set[Any] | None, turn: int) -> str:
    """A string of the right format, pattern and length."""
    low, high = shape.min_length, shape.max_length
    if low > high:
        limit = "the longest text that is made" if high == MAX_TEXT_CHARS else '"maxLength"'
        raise UnmetError(shape.path, f'"minLength" {low} is above {limit}, {high}')
    formats = [node.format for node in shape.nodes if node.format]
    encoded = any(node.encoding == "base64" for node in shape.nodes)
    if formats or encoded or any(node.pattern is not None for node in shape.nodes):
        made = _constrained(draws, work, shape, name, formats or (["byte"] if encoded else []), len(taboo or ()))
    else:
        options = texts_for(name) if turn < 2 else UNUSUAL
        made = options[draws.below(len(options))]
        if taboo and made in taboo:
            made = f"{draws.below(1_000_000)} {made}"
        if not low <= len(made) <= high:
            made = _fitted(draws, made, low, high)
    work.text(shape.path, len(made))
    return made


def _fitted(draws: Draws, option: str, low: int, high: int) -> str:
    """A text cut or continued to a length between the bounds."""
    parts = [option]
    size = len(option)
    while size < low:
        word = WORDS[draws.below(len(WORDS))] if size < 1000 else " ".join(WORDS)
        parts.append(word)
        size += len(word) + 1
    made = " ".join(parts)[:high]
    return made if not made.endswith(" ") else made[:-1] + "s"


def varied(pattern: Pattern, draws: Draws, low: int, high: int, attempt: int) -> str:
    """A text for the pattern; from the second attempt on a longer one, to differ from those before."""
    if attempt:
        with suppress(PatternError):  # it may have no such length
            return pattern.make(draws, min(low + draws.below(12), high), high)
    return pattern.make(draws, low, high)


def _constrained(draws: Draws, work: Work, shape: Shape, name: str, formats: list[str], attempts: int) -> str:
    low, high = shape.min_length, shape.max_length
    patterns = [node.pattern for node in shape.nodes if node.pattern is not None]
    writers = [WRITERS[name] for name in formats if name in WRITERS]
    reason = f"no text was found of {low} to {high} characters"
    if formats:
        reason += f" with the format {' and '.join(formats)[:80]}"
    try:
        for attempt in range(FORMAT_TRIES):
            work.check(shape.path, sum(pattern_cost(pattern.source, low) for pattern in patterns))
            if writers and (attempt < FORMAT_TRIES // 2 or not patterns):
                made = _written(draws, writers[attempt % len(writers)](draws), formats, low, high)
            elif patterns:
                made = varied(patterns[attempt % len(patterns)], draws, low, high, attempt + attempts)
            else:
                options = texts_for(name)
                made = _fitted(draws, options[draws.below(len(options))], low, high)
            fits = low <= len(made) <= high and all(conforms(each, made) for each in formats)
            if fits and all(pattern.search(made) for pattern in patterns):
                return made
    except PatternError as error:
        raise UnmetError(shape.path, f'"pattern": {error}') from None
    if patterns:
        reason += " that matches " + " and ".join(repr(pattern.source[:80]) for pattern in patterns[:3])
    raise UnmetError(shape.path, reason)


_SHORT = {
    "email": "a@b.co",
    "idn-email": "a@b.co",
    "uri": "a:b",
    "hostname": "a",
    "uri-reference": "a",
    "duration": "P1D",
    "ipv6": "::1",
    "regex": "a",
    "json-pointer": "",
}


def _written(draws: Draws, made: str, formats: list[str], low: int, high: int) -> str:
    """A formatted text, lengthened where its format allows that."""
    if len(made) > high:
        made = _SHORT.get(formats[0], made)
    if len(made) >= low:
        return made
    missing = low - len(made)
    name = formats[0]
    if name in ("email", "idn-email"):
        return "a" * missing + made
    if name in ("uri", "url", "iri", "uri-reference", "iri-reference", "path", "json-pointer"):
        return made + "/" + "a" * (missing - 1) if missing > 1 else made + "s"
    if name == "hostname":
        labels = ("a" * 9 + ".") * (missing // 10 + 1)
        return "a" + labels[len(labels) - missing + 1 :] + made if missing > 1 else "a" + made
    if name in ("time", "date-time"):
        return made[:-1] + "." + "0" * max(1, missing - 1) + "Z"
    if name in ("byte", "base64", "binary"):
        return "TW9j" * -(-low // 4)
    return made


def _limits(shape: Shape) -> tuple[Fraction | None, Fraction | None]:
    low = None if shape.low is None else Fraction(shape.low)
    high = None if shape.high is None else Fraction(shape.high)
    if low is not None and high is not None and (low > high or (low == high and (shape.low_open or shape.high_open))):
        raise UnmetError(shape.path, f"no number lies between its bounds {shape.low} and {shape.high}")
    return low, high


def _steps(shape: Shape, step: Fraction, name: str, scale: int = 1) -> tuple[int, int, int, int]:
    """First and last multiple of `step` between the bounds, and the stretch to choose from.

    Kept with the shape: the fractions take ten times as long as the rest of a number.
    """
    key = name, step.numerator, step.denominator, scale
    span = shape.spans.get(key)
    if span is None:
        span = _find_steps(shape, step, name, scale)
        if len(shape.spans) < KEPT_SPANS:
            shape.spans[key] = span
    return span


def _find_steps(shape: Shape, step: Fraction, name: str, scale: int) -> tuple[int, int, int, int]:
    low, high = _limits(shape)
    usual_low, usual_high = range_for(name)
    first = None if low is None else ceil(low / step)
    last = (first or 0) + FAR if high is None else floor(high / step)
    if first is None:
        first = min(0, last) - FAR
    if low is not None and shape.low_open and first * step == low:
        first += 1
    if high is not None and shape.high_open and last * step == high:
        last -= 1
    if first > last:
        between = f"between {shape.low} and {shape.high}" if low is not None and high is not None else "in its bounds"
        raise UnmetError(shape.path, f"no {'multiple of ' + str(step) if shape.multiple else 'integer'} lies {between}")
    near_low = max(first, ceil(Fraction(usual_low) / step))
    near_high = min(last, floor(Fraction(usual_high) / step))
    if near_low > near_high or last - first <= HUMAN_SPAN * scale:
        near_low, near_high = first, last
        if last - first > HUMAN_SPAN * scale:
            if low is None and high is not None and high <= usual_low:
                near_low = last - HUMAN_SPAN // 10
            elif low is None:
                near_low, near_high = 0, min(last, 10)
            else:
                near_high = first + HUMAN_SPAN // 10
            near_low, near_high = max(first, near_low), max(first, min(last, near_high))
    return first, last, near_low, near_high


def integer(draws: Draws, shape: Shape, name: str, taboo: set[Any] | None) -> int:
    """A whole number in a human range where the bounds leave one."""
    if shape.multiple is None and taboo is None and shape.low is None and shape.high is None:
        usual_low, usual_high = range_for(name)
        return usual_low + draws.below(usual_high - usual_low + 1)
    step = shape.multiple.numerator if shape.multiple else 1  # whole multiples of p/q are the multiples of p
    first, last, low, high = _steps(shape, Fraction(step), name)
    if taboo:
        high = min(last, max(high, low + 4 * len(taboo)))  # so that a long array of unique numbers stays quick
    start = low + draws.below(high - low + 1)
    value = start
    for _ in range(len(taboo) + MULTIPLE_TRIES if taboo is not None else MULTIPLE_TRIES):
        made = value * step
        if (taboo is None or (int, made) not in taboo) and _divides(shape, made):
            return made
        value = value + 1 if value < last else first
        if value < first or value == start:
            break
    raise UnmetError(shape.path, "no whole number was found within its conditions")


def _divides(shape: Shape, value: int | float) -> bool:
    return shape.multiple is None or all(
        is_multiple(value, node.multiple) for node in shape.nodes if node.multiple is not None
    )


def number(draws: Draws, shape: Shape, name: str) -> int | float:
    """A number with a few decimals."""
    low, high = _limits(shape)
    steps = [shape.multiple] if shape.multiple is not None else [Fraction(1, 10), Fraction(1, 100), Fraction(1, 10**6)]
    for step in steps:
        try:
            _, _, near_low, near_high = _steps(shape, step, name, scale=100)
        except UnmetError:
            if shape.multiple is not None:
                raise
            continue
        for _ in range(MULTIPLE_TRIES if shape.multiple is not None else 4):
            value = (near_low + draws.below(near_high - near_low + 1)) * step
            made: int | float = _plain_number(value)
            if _inside(shape, made) and _divides(shape, made):
                return made
    if shape.multiple is not None:
        raise UnmetError(shape.path, f"no multiple of {float(shape.multiple)} was found within its bounds")
    return _between(shape, low, high)


def _plain_number(value: Fraction) -> int | float:
    if abs(value) > MAX_MAGNITUDE or (value.denominator == 1 and abs(value) < 10**15):
        return int(value)
    return float(value)


def _between(shape: Shape, low: Fraction | None, high: Fraction | None) -> float:
    """A number between bounds too close, too small or too large for decimals."""
    if low is None or high is None:
        edge = float(low if low is not None else high or 0)
        options = [edge, nextafter(edge, inf if low is not None else -inf)]
    else:
        options = [float((low + high) / 2), float(low), float(high), nextafter(float(low), inf)]
    for option in options:
        if _inside(shape, option):
            return option
    raise UnmetError(shape.path, f"no number was found between its bounds {shape.low} and {shape.high}")


def _inside(shape: Shape, value: int | float) -> bool:
    if shape.low is not None and (value < shape.low or (shape.low_open and value == shape.low)):
        return False
    return shape.high is None or not (value > shape.high or (shape.high_open and value == shape.high))
