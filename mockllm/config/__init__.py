"""The settings: one struct, from which flags, variables, file keys, help and checks are derived."""

from __future__ import annotations

from mockllm.config.option import Option, options, setting
from mockllm.config.settings import Config
from mockllm.config.sources import CONFIG_FILE, load, nearest
from mockllm.config.values import Settings, read, split_list

__all__ = ["CONFIG_FILE", "Config", "Option", "Settings", "load", "nearest", "options", "read", "setting", "split_list"]
