"""What all tests share."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_configure(config: pytest.Config) -> None:
    """Use the project's own fixture from a checkout that is not installed, too."""
    if not config.pluginmanager.has_plugin("mockllm"):
        config.pluginmanager.import_plugin("mockllm.pytest_plugin")
