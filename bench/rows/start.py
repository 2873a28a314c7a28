"""The row about the start: time to the first reply, time to import, packages installed."""

from __future__ import annotations

import tomllib

from bench import startup
from bench.measure import Figures, Row, Settings

REPLY_MS = 200.0
IMPORT_MS = 100.0
PACKAGES = 2


def start(settings: Settings) -> list[Row]:
    """From exec to the first reply, each in a fresh process."""
    startup.reply_s()  # writes the bytecode caches
    figures = {
        "mockllm exec to reply": Figures("ms", [startup.reply_s() * 1e3 for _ in range(settings.repeats)]),
        "mockllm import": Figures("ms", [startup.import_s("mockllm") * 1e3 for _ in range(settings.repeats)]),
        "bare interpreter": Figures("ms", [startup.bare_s() * 1e3 for _ in range(settings.repeats)]),
    }
    project = tomllib.loads((startup.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = sorted(startup.packages(project["dependencies"]))
    reply, imported, bare = [runs.median for runs in figures.values()]
    return [
        Row(
            "start",
            f"exec to first 200 ≤ {REPLY_MS:g} ms, import ≤ {IMPORT_MS:g} ms, {PACKAGES} packages",
            figures,
            ratio=f"{reply / bare:.1f} × a bare interpreter",
            reached=reply <= REPLY_MS and imported <= IMPORT_MS and len(brought) == PACKAGES,
            notes=[f"packages beside mockllm itself: {', '.join(brought)}"],
        )
    ]
