"""What a schema may ask for, and the errors inside this package.

A schema comes from a client: it may be 10,000 levels deep, want a million items, or double its
work with each level. Every loop of the package is bounded by one of these numbers, and beyond
them the schema is refused with a message that says so.
"""

from __future__ import annotations

MAX_SCHEMA_NODES = 10_000
"""Subschemas of one schema; OpenAI allows 5,000 properties."""

MAX_ENUM_VALUES = 20_000
"""Values in `enum`, `const` and `examples`, nested ones counted; OpenAI allows 1,000."""

MAX_PATTERNS_CHARS = 100_000
"""Length of all regular expressions of one schema together (2 µs for each character)."""

MAX_PATH_CHARS = 300
"""Where a subschema stands is told up to this length: paths are kept for each of them."""

MAX_SCHEMA_DEPTH = 100
"""Levels of subschemas within one another, and of nesting in literal values."""

MAX_NESTING = 60
"""Steps into a value, branches and references counted: bounds the depth of the call stack."""

MAX_CHECK_DEPTH = 100
"""The same for the check of a value, counted where several subschemas judge one value; a step is
four to six frames of the call stack."""

MAX_STEPS = 10_000
"""Values that may be written for one document (about 5 µs each)."""

MAX_FAILURES = 600
"""Values and branches that may fail for one document (about 100 µs each)."""

MAX_CHECKS = 100_000
"""Subschemas that may be checked for one document (1 to 2 µs each); a pattern counts for more."""

MAX_TOTAL_CHARS = 1 << 20
"""Characters that the strings of one document may have together."""

SOFT_DEPTH = 5
SOFT_STEPS = 300
"""Beyond either, only what is required is written, and the shallowest branch goes first."""

MAX_TEXT_CHARS = 65_536
"""Longest single string, as `generation.pattern` has it."""

MAX_ITEMS = 5_000
"""Longest array and largest object that are ever made."""

RETRIES = 12
"""Draws for a value whose schema has conditions that can only be checked (`not`, `oneOf`, …)."""

KEPT_SHAPES = 2000
"""Pairings of subschemas whose merged form is kept."""

MAX_MAGNITUDE = 1.7e308
"""Bounds of numbers beyond a double's range cannot be met by a JSON number that others read."""


class UnmetError(Exception):
    """No value was found, or the schema is malformed.

    Args:
        path: JSON pointer (as a fragment, `#/properties/a`) of the subschema at fault.
        reason: What is wrong there, as the end of a sentence.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


class ExhaustedError(UnmetError):
    """The limit of work was reached: nothing else is tried."""


class Work:
    """Counts the steps of one document."""

    __slots__ = ("chars", "checks", "failures", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.failures = 0
        self.checks = 0
        self.chars = 0

    def step(self, path: str) -> None:
        """Count a value that is written."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ExhaustedError(path, f"more than {MAX_STEPS} values would have to be written")

    def fail(self, path: str) -> None:
        """Count a value or a branch that turned out wrong."""
        self.failures += 1
        if self.failures > MAX_FAILURES:
            raise ExhaustedError(path, f"no value was found in {MAX_FAILURES} tries")

    def check(self, path: str, cost: int = 1) -> None:
        """Count a subschema that is checked."""
        self.checks += cost
        if self.checks > MAX_CHECKS:
            raise ExhaustedError(path, "its conditions take too many steps to check")

    def text(self, path: str, size_chars: int) -> None:
        """Count a string that is written."""
        self.chars += size_chars
        if self.chars > MAX_TOTAL_CHARS:
            raise ExhaustedError(path, f"its strings would be longer than {MAX_TOTAL_CHARS} characters together")


def pattern_cost(source: str, size_chars: int) -> int:
    """What matching a pattern counts for, in checks: measured at 1 to 2 µs for each."""
    return 5 + len(source) * (1 + size_chars // 256) // 2
