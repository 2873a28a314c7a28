"""mockllm: a mock LLM server that works as a measuring instrument.

async with mockllm.Server(mockllm.Config(ttft_ms=50, port=0)) as server:
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="any")
"""

from __future__ import annotations

from mockllm.version import VERSION

TYPE_CHECKING = False  # as type checkers know it by name; importing `typing` for it would take 6 of 7 ms
if TYPE_CHECKING:
    from mockllm.clock import FakeClock, SystemClock
    from mockllm.config import Config
    from mockllm.errors import ConfigError, ConversionError, MockLLMError, RequestError
    from mockllm.generation.overrides import GivenCall, Match, ScriptedReply
    from mockllm.server import Server, ServerThread
    from mockllm.truth import ExchangeRecord, Ledger, Statistics
    from mockllm.truth.received import ReceivedRequest
    from mockllm.virtual import VirtualServer

__version__ = VERSION

# What is imported from where, when it is first asked for: `import mockllm` alone stays in the low
# milliseconds.
_HOMES = {
    "Config": "config",
    "ConfigError": "errors",
    "ConversionError": "errors",
    "ExchangeRecord": "truth",
    "FakeClock": "clock",
    "GivenCall": "generation.overrides",
    "Ledger": "truth",
    "Match": "generation.overrides",
    "MockLLMError": "errors",
    "ReceivedRequest": "truth.received",
    "RequestError": "errors",
    "ScriptedReply": "generation.overrides",
    "Server": "server",
    "ServerThread": "server",
    "Statistics": "truth",
    "SystemClock": "clock",
    "VirtualServer": "virtual",
}

__all__ = [
    "Config",
    "ConfigError",
    "ConversionError",
    "ExchangeRecord",
    "FakeClock",
    "GivenCall",
    "Ledger",
    "Match",
    "MockLLMError",
    "ReceivedRequest",
    "RequestError",
    "ScriptedReply",
    "Server",
    "ServerThread",
    "Statistics",
    "SystemClock",
    "VirtualServer",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"mockllm.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
