"""The application between the protocol and the dialects."""

from mockllm.app.app import App, Observer

__all__ = ["App", "Observer"]
