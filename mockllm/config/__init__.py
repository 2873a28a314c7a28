"""The settings: one struct, from which flags, variables, file keys, help and checks are derived."""

from __future__ import annotations

from .option import Option, options, setting
from .settings import Config
from .sources import CONFIG_FILE, load, nearest
from .values import Settings

__all__ = ["CONFIG_FILE", "Config", "Option", "Settings", "load", "nearest", "options", "setting"]
