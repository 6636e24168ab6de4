"""The form for clients elsewhere: each request shows the token of its agent, and no session is kept."""

from typing import Any

import msgspec
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.callers import Callers
from mcp_server.outcomes import ToolError
from mcp_server.server import new_server
from mcp_server.settings import Settings, is_token
from mcp_server.vault import MAX_CONNECTIONS, NoAnswer, Vault

# The largest message: a document or demand of 256 KiB, and what is around it.
MAX_BODY_BYTES = 1 << 20
_HEADER = b"authorization"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class OnlyAgents:
    """Lets in those who show an agent's token, counts what each has open, and refuses the rest before any parsing."""

    def __init__(self, inner: ASGIApp, callers: Callers) -> None:
        self._inner, self._callers = inner, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        token = _token(scope)
        if token is None:
            await _refuse(send, 401, "no_credential", "Send the agent's token as `Authorization: Bearer <token>`.")
            return
        try:
            found = await self._callers.find(token)
        except NoAnswer:
            await _refuse(send, 503, "unavailable", "The service gives no answer; try again in a moment.")
            return
        if not found.done:
            status = found.status if found.status in (401, 403, 429) else 503
            await _refuse(send, status, found.code, found.sentence, found.retry_after)
            return
        if not self._callers.enter(found.data):
            await _refuse(send, 429, "too_much_held", "This agent has too many calls open; end some.", 1)
            return
        try:
            await self._inner(scope, receive, send)
        finally:
            self._callers.leave(found.data)


def run(settings: Settings, version: str) -> None:
    """Listen until a signal ends it."""
    assert settings.port is not None  # noqa: S101 - `load` gave it
    callers = Callers(settings)

    async def who_asks(context: Any) -> Vault:
        token = _token(context.request.scope) if context.request is not None else None
        if token is None:
            raise ToolError("no_token: The request shows no token. Tell the user.")
        return await callers.vault(token)

    app = new_server(who_asks, version).streamable_http_app(
        stateless_http=True,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=_names(settings),
    )
    # One process, no access log: a request's path and headers are nobody's reading.
    uvicorn.run(
        OnlyAgents(app, callers),
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_level="warning",
        # Of all clients together; beyond it uvicorn answers 503.
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        server_header=False,
    )


def _names(settings: Settings) -> TransportSecuritySettings:
    """Names by which a request may come: another name is a browser that was led here (421), or sits there (403)."""
    names = [*_LOOPBACK, *settings.allowed_hosts]
    hosts = [form for name in names for form in ((name,) if ":" in name.rpartition("]")[2] else (name, f"{name}:*"))]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins)


def _token(scope: Scope) -> str | None:
    """The bearer token of a request; None where there is none, or two."""
    shown = [value for name, value in scope["headers"] if name == _HEADER]
    if len(shown) != 1:
        return None
    word, _, token = shown[0].decode("latin-1").partition(" ")
    return token if word.lower() == "bearer" and is_token(token) else None


async def _refuse(send: Send, status: int, code: str, sentence: str, retry_after: int | None = None) -> None:
    body = msgspec.json.encode({"ok": False, "error": sentence, "data": {"code": code}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        # No address of metadata: there is no authorization server that a client could ask.
        headers.append((b"www-authenticate", b'Bearer realm="custody"'))
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
