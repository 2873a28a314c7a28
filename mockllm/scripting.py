"""What a test asks of a server in its own process: scripted replies, and what its client sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from mockllm.app import App
from mockllm.app.script import ScriptState
from mockllm.dialects.overrides import to_script
from mockllm.generation.overrides import ScriptedReply
from mockllm.truth.received import ReceivedRequest

T = TypeVar("T")


class Scripting:
    """A server's methods for tests."""

    def _with_app(self, do: Callable[[App], T]) -> T:
        """Call `do` where the server runs."""
        raise NotImplementedError

    def script(self, replies: Iterable[ScriptedReply | Mapping[str, Any]], *, strict: bool = False) -> None:
        """Queue replies for the requests to come, behind those that are left.

        Each request takes the first reply that it matches. One that matches none is answered as
        without a script, and listed in `script_state().misses`.

        Args:
            replies: `ScriptedReply`s, or the same as mappings: `{"text": "Hello"}`.
            strict: From now on, a request that matches none is answered 404.

        Raises:
            RequestError: A reply is not valid; its param is the place.
        """
        checked = to_script(replies)
        self._with_app(lambda app: app.script.add(checked, strict))

    def script_state(self) -> ScriptState:
        """Which replies are left, and which requests found none."""
        return self._with_app(lambda app: app.script.state())

    def clear_script(self) -> ScriptState:
        """Forget the script and its misses; returns where it stood."""
        return self._with_app(lambda app: app.script.clear())

    @property
    def requests(self) -> tuple[ReceivedRequest, ...]:
        """The last requests that had a body (setting `keep_bodies`), in the order in which they came."""
        return self._with_app(lambda app: app.received.all())
