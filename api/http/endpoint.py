"""The one declaration of a route: router, validation, credentials, envelope and OpenAPI all read it.

A handler is one expression. Its parameters are, in this order: the ports, who asks, on what (the path), what (the
headers, body or query); each is found by its annotation. `media` is what comes instead of JSON, or
`media_too`, which the caller may choose; `oauth` takes the
fields of its body in both spellings and refuses a bad request as RFC 6749 5.2 has it. What is `unsigned` may come
without a signature even where the deployment wants one; a signature that is there is checked all the same.
"""

import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from api.http.who import Who
from api.settings import Limit
from custody.kit.callers import Caller, Origin
from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.kit.shapes import ClientId, TenantId, Uuid
from custody.ports import Ports

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Media = Literal["text/html", "text/csv", "text/event-stream", "application/x-ndjson"]
Handler = Callable[..., Awaitable[Any]]
PATH_SHAPES: dict[str, Any] = {
    "tenant_id": TenantId, "tx_id": Uuid, "approval_id": Uuid, "secret_id": Uuid, "route_id": Uuid,
    "session_id": Uuid, "passkey_id": Uuid, "key_id": Uuid, "app_secret_id": Uuid, "user_id": Uuid,
    "client_id": ClientId, "webhook_id": Uuid, "delivery_id": Uuid,
}  # fmt: skip
# How a path parameter is spelled in the contract.
SPELLED = {
    "agent": "agentId", "tx_id": "txId", "approval_id": "id", "tenant_id": "id", "secret_id": "id", "route_id": "id",
    "session_id": "id", "passkey_id": "id", "key_id": "keyId", "app_secret_id": "secretId", "user_id": "userId",
    "client_id": "clientId", "webhook_id": "id", "delivery_id": "id",
}  # fmt: skip


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One route."""

    method: Method
    path: str
    tag: str
    who: Who
    handler: Handler
    returns: dict[int, Any]
    fails: tuple[type[CustodyError], ...]
    hardened: bool
    unsigned: bool
    private: bool
    shows_secret: bool
    limit: Limit | None
    queues: bool
    raw_answer: bool
    media: Media | None
    media_too: Media | None
    oauth: bool
    lenient: type[CustodyError] | None
    path_names: tuple[str, ...]
    body: Any
    query: Any
    headers: Any
    arguments: tuple[str, ...]
    summary: str
    description: str

    @property
    def contract_path(self) -> str:
        """The path as the contract spells it: `/vault/{agentId}/sign`."""
        path = self.path
        for name in self.path_names:
            path = path.replace(f"<{name}>", "{" + SPELLED.get(name, name) + "}")
        return path


class Routes:
    """The routes of one file, all below one prefix."""

    def __init__(self, prefix: str, *, tag: str) -> None:
        self.prefix = prefix
        self.tag = tag
        self.endpoints: list[Endpoint] = []

    def get(self, *paths: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a GET."""
        return self._declare("GET", paths, declared)

    def post(self, *paths: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a POST."""
        return self._declare("POST", paths, declared)

    def put(self, *paths: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a PUT."""
        return self._declare("PUT", paths, declared)

    def delete(self, *paths: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a DELETE."""
        return self._declare("DELETE", paths, declared)

    def _declare(
        self, method: Method, paths: tuple[str, ...], declared: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            for path in paths:
                self.endpoints.append(_endpoint(method, self.prefix + path, self.tag, handler, **declared))
            return handler

        return declare


def _endpoint(  # noqa: PLR0913 - this is the declaration itself
    method: Method,
    path: str,
    tag: str,
    handler: Handler,
    *,
    who: Who,
    returns: dict[int, Any],
    fails: tuple[type[CustodyError], ...] = (),
    unsigned: bool = False,
    private: bool = False,
    shows_secret: bool = False,
    limit: Limit | None = None,
    queues: bool = False,
    raw_answer: bool = False,
    media: Media | None = None,
    media_too: Media | None = None,
    oauth: bool = False,
    lenient: type[CustodyError] | None = None,
) -> Endpoint:
    hints = typing.get_type_hints(handler, include_extras=True)
    names = tuple(part[1:-1] for part in path.split("/") if part.startswith("<"))
    body = query = headers = None
    arguments: list[str] = []
    for name in inspect.signature(handler).parameters:
        kind = _kind_of(name, hints[name], names)
        arguments.append(kind if kind != "path" else f"path:{name}")
        if kind == "body":
            body = hints[name]
        elif kind == "query":
            query = hints[name]
        elif kind == "headers":
            headers = hints[name]
    summary, _, rest = inspect.cleandoc(handler.__doc__ or "").partition("\n")
    if not summary:
        raise TypeError(f"{method} {path} needs a docstring: it is the contract's summary")
    return Endpoint(
        method=method, path=path, tag=tag, who=who, handler=handler, returns=returns, fails=fails,
        # Every mutation is sensitive, but for sign-in, whose requests bring their own proof (decisions 6).
        hardened=method != "GET" and not path.startswith("/auth/"), unsigned=unsigned, private=private,
        shows_secret=shows_secret, limit=limit, queues=queues, raw_answer=raw_answer, media=media, media_too=media_too,
        oauth=oauth, lenient=lenient, path_names=names, body=body, query=query, headers=headers,
        arguments=tuple(arguments), summary=summary, description=rest.strip(),
    )  # fmt: skip


def _kind_of(name: str, hint: Any, path_names: tuple[str, ...]) -> str:
    if hint is Ports:
        return "ports"
    if hint is AgentRef:
        return "agent"
    if hint is Origin:
        return "origin"
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if all(inspect.isclass(part) and issubclass(part, Caller) for part in parts):
        return "caller"
    if name in path_names:
        return "path"
    if name in {"body", "query", "headers"}:
        return name
    raise TypeError(f"a handler's parameter {name} is neither ports, caller, path, headers, body nor query")
