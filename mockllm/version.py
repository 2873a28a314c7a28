"""The version, in a module that imports nothing: the build reads it, and so may every layer."""

from __future__ import annotations

VERSION = "0.1.0"
