"""The pytest fixture `mockllm_server`: a running mock server for one test.

    def test_greeting(mockllm_server):
        mockllm_server.script([{"text": "Hello"}])
        client = openai.OpenAI(base_url=mockllm_server.base_url, api_key="any")

It answers without delay; `@pytest.mark.mockllm(ttft_ms=50)` gives settings of `mockllm.Config`.
With `@pytest.mark.mockllm(script_must_be_used=True)`, or the ini option
`mockllm_script_must_be_used = true`, a test that passes but leaves scripted replies unused, or
whose requests found none left, fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mockllm.server import ServerThread

MUST_BE_USED = "script_must_be_used"
FIXTURE = "mockllm_server"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ini option."""
    parser.addini(
        f"mockllm_{MUST_BE_USED}",
        "whether a test fails that leaves replies unused that it scripted for mockllm_server, or asks for more",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"mockllm({MUST_BE_USED}=False, **settings): settings of the server that `{FIXTURE}` runs, and whether "
        "all replies that are scripted for it have to be asked for, and no more",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Look at the script when the test is over, but not yet what it used: so it is the test that fails."""
    result = yield
    server = getattr(item, "funcargs", {}).get(FIXTURE)
    if server is not None and _settings(item).get(MUST_BE_USED):
        _check_script(server)
    return result


@pytest.fixture
def mockllm_server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """A mock LLM server in a thread of its own, without delays unless the marker `mockllm` says so."""
    # Imported here: pytest loads this module in every run where the package is installed.
    from mockllm.config import Config
    from mockllm.server import ServerThread

    settings = {"port": 0, "ttft_ms": 0.0, "itl_ms": 0.0} | _settings(request.node)
    settings.pop(MUST_BE_USED)
    with ServerThread(Config(**settings)) as server:
        yield server


def _settings(item: Any) -> dict[str, Any]:
    """What the markers say, the nearest one last, over the ini file."""
    settings: dict[str, Any] = {MUST_BE_USED: item.config.getini(f"mockllm_{MUST_BE_USED}")}
    for marker in reversed(list(item.iter_markers("mockllm"))):
        settings |= marker.kwargs
    return settings


def _check_script(server: ServerThread) -> None:
    import msgspec

    state = server.script_state()
    if state.left:
        left = "\n".join([f"  {msgspec.json.encode(reply).decode()}" for reply in state.left])
        pytest.fail(f"Scripted replies that were not used ({state.used} were):\n{left}", pytrace=False)
    if state.missed:
        misses = "\n".join([f"  {miss.path}: {miss.message!r}" for miss in state.misses])
        pytest.fail(
            f"Requests that found no scripted reply: {state.missed} ({state.used} found one):\n{misses}", pytrace=False
        )
