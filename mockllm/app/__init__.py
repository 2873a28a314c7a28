"""The application between the protocol and the dialects."""

from mockllm.app.app import App
from mockllm.app.base import BaseApp, Observer
from mockllm.app.books import BooksApp
from mockllm.app.worker import Worker

__all__ = ["App", "BaseApp", "BooksApp", "Observer", "Worker"]
