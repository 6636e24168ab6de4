"""Cross-origin requests: which page may read what the api answers.

A page on another origin may, if an enabled app client lists that origin: of any tenant where nobody is known yet, of
the caller's own tenant afterwards. Browsers never send a credential by themselves, for there are no cookies; so a page
gets nothing but what the token that it holds gets anyone. docs/decisions/0053-pages-of-app-clients.md.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Final

import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from api.http.addresses import counted_as
from api.http.contract.headers import AUTHORIZING, HEADERS, SIGNED
from api.http.endpoint import Endpoint
from api.http.paths import Methods
from custody.identity.app_clients import is_origin
from custody.kit.cache import Cache
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from custody.kit.tasks import leave_to_caller, spawn
from custody.kit.windows import Windows
from custody.ports import Ports
from custody.protocol.identity.origins import LookUpOrigin

log = logger("api")
# How long an origin is believed to be listed, or not to be: the most that a change takes to reach pages.
BELIEVED_SECONDS: Final = 1.0
# How long a browser may keep the answer to its question before a request. What it then reads is looked at each time.
PREFLIGHT_SECONDS: Final = 600
# Origins never found listed that one address may have looked up in a second.
STRANGE_A_SECOND: Final = 20
MAX_CHARACTERS: Final = 512
_REMEMBERED: Final = 10_000
# Longer than this identity is not waited for; the page then reads nothing.
_SECONDS: Final = 2.0
_KEYS: Final = {
    "tenant_key": ("Authorization", "X-Service-Key"),
    "app_client": ("Authorization", "X-Service-App-Id"),
    "agent_token": ("Authorization",),
    "session": ("Authorization",),
}
_OF_CHANGES: Final = (*SIGNED.values(), *AUTHORIZING.values())
_EXPOSED: Final = ", ".join([*HEADERS, "X-Service-Version", "ETag", "Allow"])
_Key = tuple[str, str | None]


class Cors:
    """Says which origins may read, and what they may send."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._standing: Cache[_Key, bool] = Cache(_REMEMBERED, BELIEVED_SECONDS)
        # Found listed before, by whatever tenant: these are looked up however many others an address asks about.
        self._met: Cache[str, bool] = Cache(_REMEMBERED)
        self._strange = Windows(1.0)
        self._asking: dict[_Key, asyncio.Task[bool]] = {}

    async def admit(self, request: Request, address: str, tenant: str | None = None) -> None:
        """Note in the request whether a page on its origin may read the answer; with a tenant, one of the tenant's.

        Without an Origin, or with our own, nothing is looked up.
        """
        request.ctx.page = None
        page = _foreign(request)
        if page is not None and await self._is_listed(page, tenant, address):
            request.ctx.page = page

    async def _is_listed(self, page: str, tenant: str | None, address: str) -> bool:
        key = page, tenant
        if (known := self._standing.get(key)) is not None:
            return known
        asking = self._asking.get(key)
        if asking is None:
            if page not in self._met and not self._may_ask(address):
                return False
            asking = self._asking[key] = spawn(self._ask(key), "origin", on_failure=leave_to_caller)
            asking.add_done_callback(lambda _done: self._asking.pop(key, None))
        # Whoever leaves does not take the answer from the others who wait for it.
        return await asyncio.shield(asking)

    def _may_ask(self, address: str) -> bool:
        count, _ends = self._strange.hit(counted_as(address), time.monotonic())
        return count <= STRANGE_A_SECOND

    async def _ask(self, key: _Key) -> bool:
        page, tenant = key
        at = time.monotonic()
        try:
            async with asyncio.timeout(_SECONDS):
                listed = (await self._ports.workers.tell(LookUpOrigin(page, tenant), Origin("origin"))).listed
        except (CustodyError, TimeoutError) as problem:
            log.warning("an origin could not be looked up", extra={"reason": type(problem).__name__})
            listed = False
        else:
            if listed:
                self._met.put(page, True)
        self._standing.put(key, listed, at)
        return listed


def _foreign(request: Request) -> str | None:
    """The origin of a page that is not the api's own; None where there is none, or none that could be listed."""
    given = request.headers.getall("origin", [])
    if len(given) != 1:
        return None
    (page,) = given
    if page.partition("://")[2] == request.headers.get("host") or len(page) > MAX_CHARACTERS:
        return None
    return page if is_origin(page) else None


def readable(response: HTTPResponse, request: Request) -> None:
    """Set what a browser must see in an answer: `Vary` always, the rest for a page that was admitted."""
    response.headers["Vary"] = "Origin"
    page = getattr(request.ctx, "page", None)
    if page is not None:
        response.headers["Access-Control-Allow-Origin"] = page
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED


def is_preflight(request: Request) -> bool:
    """Say whether a browser asks before it sends what a page wants to send."""
    return request.method == "OPTIONS" and "access-control-request-method" in request.headers


class Preflights:
    """Answers browsers that ask what a page may send to a path."""

    def __init__(self, table: Iterable[Endpoint], methods: Methods) -> None:
        self._methods = methods
        self._headers: dict[str, set[str]] = {}
        for endpoint in table:
            self._headers.setdefault(endpoint.path, set()).update(_sendable(endpoint))

    def answer(self, request: Request) -> HTTPResponse | None:
        """Answer a preflight with what a page may send there; None if nothing."""
        paths = self._methods.paths_at(request.path)
        if not paths:
            return None
        headers = {name for path in paths for name in self._headers.get(path, ())} | {"Accept", "X-Request-Id"}
        said = {
            "Access-Control-Allow-Methods": ", ".join(self._methods.at(request.path)),
            "Access-Control-Allow-Headers": ", ".join(sorted(headers)),
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        }
        return HTTPResponse(None, 204, said)


def _sendable(endpoint: Endpoint) -> set[str]:
    """Headers that a page may send to a route; never the operator's key, which has no place in a tenant's page."""
    names = {name for kind in endpoint.who.kinds for name in _KEYS.get(kind, ())}
    if endpoint.who.agent_beside:
        names.add("X-Service-Agent-Token")
    if endpoint.reads_body:
        names.add("Content-Type")
    if endpoint.method != "GET" and "public" not in endpoint.who.kinds:
        names.update(_OF_CHANGES)
    if endpoint.headers is not None:
        names.update(field.encode_name for field in msgspec.structs.fields(endpoint.headers))
    # That one a browser sets itself.
    return names - {"Origin"}
