"""How a request is handled, top to bottom, one call per step. There is no other middleware."""

import ipaddress
import re
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from api.http import decoding, envelope, idempotency
from api.http.credentials import Credentials
from api.http.endpoint import PATH_SHAPES, Endpoint
from api.http.metrics import observe
from api.http.rate_limit import RateLimit, RateLimited
from api.settings import Settings
from custody.kit import ids, stages
from custody.kit.answers import Outcome
from custody.kit.callers import AgentCaller, Caller, Origin, TenantCaller
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError, Forbidden, Invalid, NotFound, Unavailable
from custody.kit.logs import logger
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.kit.shapes import AgentId
from custody.ports import Ports
from custody.protocol.client import Replayed
from custody.version import VERSION

log = logger("api")
_SAFE_ID = re.compile(r"[A-Za-z0-9_\-.:]{1,128}")
_MAX_USER_AGENT = 256


class DatabaseUnavailable(Unavailable):
    """The database is not reachable right now; try again shortly."""


class BadPath(Invalid):
    """An id in the path is malformed."""


class OtherAgent(Forbidden):
    """This token belongs to another agent."""


class Pipeline:
    """Turns an endpoint into a Sanic handler."""

    def __init__(self, ports: Ports, settings: Settings) -> None:
        self._ports = ports
        self._credentials = Credentials(ports)
        self._limit = RateLimit(settings)
        self._trusted = [ipaddress.ip_network(part) for part in settings.trusted_proxies]

    def handler(self, endpoint: Endpoint) -> Callable[..., Coroutine[Any, Any, HTTPResponse]]:
        """The handler of one endpoint."""

        async def handle(request: Request, **path: str) -> HTTPResponse:
            started, taken = time.perf_counter(), stages.begin()
            request_id = request_id_of(request)
            try:
                response = await self._run(endpoint, request, request_id, path)
            except CustodyError as problem:
                response = _refusal(problem, request_id)
            except DatabaseAway as problem:
                log.warning("the database is away", extra={"request_id": request_id, "reason": type(problem).__name__})
                response = envelope.failed(DatabaseUnavailable(), request_id)
            except Exception:  # the edge of the process
                log.exception("unexpected", extra={"request_id": request_id, "route": endpoint.contract_path})
                response = envelope.faulted(request_id)
            response.headers.update(getattr(request.ctx, "limits", {}))
            seconds = time.perf_counter() - started
            observe(endpoint.method, endpoint.contract_path, response.status, seconds)
            if response.status >= 500 or endpoint.hardened:
                log.info(
                    "request",
                    extra={"request_id": request_id, "method": endpoint.method, "route": endpoint.contract_path,
                           "status": response.status, "ms": round(seconds * 1000, 2), **taken},
                )  # fmt: skip
            return finished(response, request_id, endpoint.private)

        return handle

    async def _run(self, endpoint: Endpoint, request: Request, request_id: str, path: dict[str, str]) -> HTTPResponse:
        address = self._address(request)
        origin = Origin(request_id, address, _user_agent(request))
        caller = await self._admitted(endpoint, request, origin, address)
        if caller is not None:
            caller = idempotency.with_key(caller, request, endpoint)
        arguments = [self._argument(kind, endpoint, request, caller, path) for kind in endpoint.arguments]
        return _answer(endpoint, await endpoint.handler(*arguments))

    async def _admitted(self, endpoint: Endpoint, request: Request, origin: Origin, address: str) -> Caller | None:
        try:
            caller = await self._credentials.caller(request, endpoint.who, origin, acts=endpoint.hardened)
        except CustodyError:
            # Who guesses credentials is counted by where he comes from.
            request.ctx.limits = await self._limit.count(None, address)
            raise
        if endpoint.tag != "Health":
            request.ctx.limits = await self._limit.count(caller, address)
        return caller

    def _argument(
        self, kind: str, endpoint: Endpoint, request: Request, caller: Caller | None, path: dict[str, str]
    ) -> Any:
        if kind == "ports":
            return self._ports
        if kind == "caller":
            return caller
        if kind == "agent":
            return _agent_ref(caller, path["agent"])
        if kind == "body":
            return decoding.body_of(request, endpoint)
        if kind == "query":
            return decoding.query_of(request, endpoint)
        name = kind.removeprefix("path:")
        return _path_value(caller, name, path[name])

    def _address(self, request: Request) -> str:
        peer: str = request.ip or ""
        forwarded = request.headers.get("x-forwarded-for")
        if not forwarded or not self._is_trusted(peer):
            return peer
        # From the right: the first address that none of our own proxies has is the client's.
        for part in reversed([part.strip() for part in forwarded.split(",")]):
            if not self._is_trusted(part):
                return str(part[:64])
        return peer

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._trusted)


def _user_agent(request: Request) -> str | None:
    # It goes to the audit trail, which keeps neither NUL nor bytes that are no text.
    given = request.headers.get("user-agent") or ""
    return "".join(letter if letter.isprintable() else "?" for letter in given[:_MAX_USER_AGENT]) or None


def request_id_of(request: Request) -> str:
    """The caller's X-Request-Id if it is safe to repeat, else one of ours."""
    given = request.headers.get("x-request-id", "")
    return given if _SAFE_ID.fullmatch(given) else ids.new_uuid()


def finished(response: HTTPResponse, request_id: str, private: bool = True) -> HTTPResponse:
    """The headers that every answer carries."""
    response.headers["X-Request-Id"] = request_id
    response.headers["X-Service-Version"] = VERSION
    response.headers["X-Content-Type-Options"] = "nosniff"
    if private:
        response.headers["Cache-Control"] = "no-store"
    return response


def _refusal(problem: CustodyError, request_id: str) -> HTTPResponse:
    headers = problem.context.pop("headers", {}) if isinstance(problem, RateLimited) else {}
    response = envelope.failed(problem, request_id)
    response.headers.update(headers)
    return response


def _agent_ref(caller: Caller | None, agent: str) -> AgentRef:
    """The agent in the path, of the caller's own tenant: the only way to come by a ref."""
    _checked(agent, AgentId, "agentId")
    if isinstance(caller, AgentCaller):
        # The same answer whether the other agent exists or not.
        if agent != caller.agent:
            raise OtherAgent
        return AgentRef(caller.tenant, agent)
    assert isinstance(caller, TenantCaller)  # noqa: S101 - a route with an agent in its path takes no one else
    return AgentRef(caller.tenant, agent)


class NoSuchTenant(NotFound):
    """There is no such tenant."""


def _path_value(caller: Caller | None, name: str, value: str) -> str:
    _checked(value, PATH_SHAPES[name], name)
    if name == "tenant_id" and isinstance(caller, TenantCaller) and value != caller.tenant:
        raise NoSuchTenant
    return value


def _checked(value: str, shape: Any, name: str) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        raise BadPath(f"{name} in the path is malformed.", fields=[name]) from None


def _answer(endpoint: Endpoint, result: Any) -> HTTPResponse:
    if isinstance(result, Replayed):
        response = _answer(endpoint, result.data)
        response.headers["Idempotency-Replayed"] = "true"
        return response
    if isinstance(result, HTTPResponse):
        return result
    if isinstance(result, Outcome):
        return envelope.answered(result)
    if isinstance(result, Listed):
        response = envelope.succeeded(200, result.rows)
        response.headers["X-Total-Count"] = str(result.total)
        return response
    status = next(iter(endpoint.returns))
    return envelope.raw(status, result) if endpoint.raw_answer else envelope.succeeded(status, result)
