"""What a schema may ask for, and the errors inside this package.

A schema comes from a client: it may be 10,000 levels deep, want a million items, or double its
work with each level. Every loop of the package is bounded by one of these numbers, and beyond
them the schema is refused with a message that says so.
"""

from __future__ import annotations

MAX_SCHEMA_NODES = 20_000
"""Subschemas of one schema; OpenAI allows 5,000 properties."""

MAX_ENUM_VALUES = 100_000
"""Values in `enum`, `const` and `examples`, nested ones counted; OpenAI allows 1,000."""

MAX_SCHEMA_DEPTH = 100
"""Levels of subschemas within one another, and of nesting in literal values."""

MAX_NESTING = 60
"""Steps into a value, branches and references counted: bounds the depth of the call stack."""

MAX_CHECK_DEPTH = 150
"""The same for the check of a value; each step is one frame, two for a property."""

MAX_STEPS = 20_000
"""Values that may be tried for one document, and a tenth of the subschemas checked (10 µs each)."""

SOFT_DEPTH = 4
SOFT_STEPS = 300
"""Beyond either, only what is required is written, and the shallowest branch goes first."""

MAX_TEXT_CHARS = 65_536
"""Longest single string, as `generation.pattern` has it."""

MAX_ITEMS = 10_000
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
    """Counts the steps of one document.

    Args:
        limit: Steps allowed.
    """

    __slots__ = ("checks", "limit", "steps")

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self.steps = 0
        self.checks = 0
        self.limit = limit

    def step(self, path: str) -> None:
        """Count a value that is tried."""
        self.steps += 1
        if self.steps > self.limit:
            raise ExhaustedError(path, f"more than {self.limit} values would have to be written or tried")

    def check(self, path: str) -> None:
        """Count a subschema that is checked."""
        self.checks += 1
        if self.checks > 10 * self.limit:
            raise ExhaustedError(path, "its conditions take too many steps to check")
