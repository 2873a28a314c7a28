"""The clients, what is checked of each, and the table of it that stands in the README.

`python -m tests.clients.matrix` writes the table anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"

FEATURES = ("plain", "stream", "tools", "structured", "embeddings", "errors")
"""A plain call, a stream, a tool round trip, structured output, embeddings, the error path."""

_FIVE = ("plain", "stream", "tools", "structured", "errors")
_ALL = FEATURES


class Client(Struct, frozen=True):
    """A client with an environment of its own.

    Attributes:
        name: Of its requirements file and its environment; for npm packages, of the folder `node`.
        package: The distribution whose version the table shows.
        rows: Its lines of the table, and which features each has.
        script: What runs its checks.
    """

    name: str
    package: str
    rows: dict[str, tuple[str, ...]]
    script: str
    npm: bool = False

    def version(self) -> str:
        """The version that is pinned."""
        if self.npm:
            packages = json.loads((HERE / "node" / "package.json").read_text(encoding="utf-8"))["dependencies"]
            return str(packages[self.package])
        pins = (HERE / "requirements" / f"{self.name}.txt").read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(self.package)}==(.*)$", pins, re.MULTILINE)
        assert found is not None, f"{self.package} is not pinned for {self.name}"
        return found[1]


CLIENTS = (
    Client(
        "openai",
        "openai",
        {
            "openai: chat": _ALL,
            "openai: chat, strict": _ALL,
            "openai: Responses": _FIVE,
            "openai: Responses, strict": _FIVE,
        },
        "with_openai.py",
    ),
    Client(
        "openai-agents",
        "openai-agents",
        {"openai-agents: chat": _FIVE, "openai-agents: Responses": _FIVE},
        "with_openai_agents.py",
    ),
    Client("anthropic", "anthropic", {"anthropic": _FIVE}, "with_anthropic.py"),
    Client("litellm", "litellm", {"litellm: openai": _ALL, "litellm: anthropic": _FIVE}, "with_litellm.py"),
    Client(
        "langchain-openai",
        "langchain-openai",
        {"langchain-openai: chat": _ALL, "langchain-openai: Responses": _FIVE},
        "with_langchain_openai.py",
    ),
    Client(
        "pydantic-ai",
        "pydantic-ai-slim",
        {"pydantic-ai: chat": _FIVE, "pydantic-ai: Responses": _FIVE, "pydantic-ai: anthropic": _FIVE},
        "with_pydantic_ai.py",
    ),
    Client("instructor", "instructor", {"instructor": _FIVE}, "with_instructor.py"),
    Client(
        "node",
        "openai",
        {"openai (npm): chat": _ALL, "openai (npm): Responses": _FIVE},
        "with_openai.mjs",
        npm=True,
    ),
    Client("node", "ai", {"ai (npm): chat": _ALL, "ai (npm): Responses": _FIVE}, "with_ai.mjs", npm=True),
)


def table(mark: Callable[[str, str], str] = lambda row, feature: "✓") -> list[str]:
    """The matrix as the lines of a table.

    Args:
        mark: What stands in a cell, of a row and a feature that the client has.
    """
    lines = ["| client | version | " + " | ".join(FEATURES) + " |", "|---|---|" + "---|" * len(FEATURES)]
    for client in CLIENTS:
        for row, features in client.rows.items():
            cells = [mark(row, feature) if feature in features else "–" for feature in FEATURES]
            lines.append(f"| {row} | {client.version()} | " + " | ".join(cells) + " |")
    return lines


_BLOCK = re.compile(r"(<!-- clients: begin[^>]*-->\n)(.*)(<!-- clients: end -->)", re.DOTALL)


def with_table(text: str) -> str:
    """The README with the table as it should be."""
    return _BLOCK.sub(lambda found: found[1] + "\n".join(table()) + "\n" + found[3], text)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
