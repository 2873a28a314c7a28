"""Which handler answers a method and a path.

The API's routes are served with and without `/v1`. A path is looked up as it was sent; only where
that fails is it percent-decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from mockllm.errors import RequestError
from mockllm.exchange import Exchange, Reply, Request

Handler = Callable[[Request, Exchange, str], Reply]
"""`handler(request, exchange, rest)`; `rest` is what followed a prefix route's path, decoded."""


class Route(Struct):
    """One path. With `prefix`, also every path below it; `open` needs no API key.

    Requests to a route that is not `recorded` are about the server itself and no load. The handler of
    one that is `overridable` reads the body key `mockllm`.
    """

    path: str
    handlers: dict[str, Handler]
    prefix: bool = False
    open: bool = False
    recorded: bool = True
    overridable: bool = False

    @property
    def allow(self) -> str:
        """Value of the `Allow` header."""
        methods = [*self.handlers, "OPTIONS"]
        if "GET" in self.handlers:
            methods.insert(1, "HEAD")
        return ", ".join(methods)


class Router:
    """The route table."""

    def __init__(self) -> None:
        self._exact: dict[str, Route] = {}
        self._prefixes: list[Route] = []
        self.routes: list[Route] = []

    def add(self, route: Route, *, api: bool = False) -> None:
        """Add a route; with `api`, it is served both with and without `/v1` before it."""
        self.routes.append(route)
        bare = route.path.removeprefix("/v1")
        for path in (bare, "/v1" + bare) if api else (route.path,):
            if route.prefix:
                self._prefixes.append(replace(route, path=path))
            else:
                self._exact[path] = route

    def find(self, target: str) -> tuple[Route, str]:
        """The route of a request target, and the rest of the path for a prefix route.

        Raises:
            RequestError: 404.
        """
        route = self._exact.get(target)
        if route is not None:
            return route, ""
        for route in self._prefixes:
            if target.startswith(route.path) and len(target) > len(route.path):
                return route, unquote(target[len(route.path) :])
        if "%" in target:
            route = self._exact.get(unquote(target))
            if route is not None:
                return route, ""
        raise RequestError(
            f"There is nothing at {target[:200]!r}; GET / lists the endpoints.",
            status=404,
            type="not_found_error",
            code="not_found",
        )

    def handler(self, route: Route, method: str) -> Handler:
        """The route's handler for a method; HEAD is answered by GET's.

        Raises:
            RequestError: 405 with `Allow` (RFC 9110 §15.5.6).
        """
        handler = route.handlers.get("GET" if method == "HEAD" else method)
        if handler is None:
            raise RequestError(
                f"Method {method[:40]} is not allowed for {route.path}; allowed: {route.allow}.",
                status=405,
                type="invalid_request_error",
                code="method_not_allowed",
                headers={"allow": route.allow},
            )
        return handler
