"""The pytest fixture `mockllm_server`: a running mock server for one test.

    def test_greeting(mockllm_server):
        client = openai.OpenAI(base_url=mockllm_server.base_url, api_key="any")

It answers without delay; `@pytest.mark.mockllm(ttft_ms=50)` gives settings of `mockllm.Config`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mockllm.server import ServerThread


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "mockllm(**settings): settings of the server that `mockllm_server` runs")


@pytest.fixture
def mockllm_server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """A mock LLM server in a thread of its own, without delays unless the marker `mockllm` says so."""
    # Imported here: pytest loads this module in every run where the package is installed.
    from mockllm.config import Config
    from mockllm.server import ServerThread

    settings: dict[str, Any] = {"port": 0, "ttft_ms": 0.0, "itl_ms": 0.0}
    for marker in reversed(list(request.node.iter_markers("mockllm"))):
        settings |= marker.kwargs
    with ServerThread(Config(**settings)) as server:
        yield server
