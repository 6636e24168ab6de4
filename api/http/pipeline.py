"""How a request is handled, top to bottom, one call per step. There is no other middleware."""

import ipaddress
import re
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import asyncpg
import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from api.http import addresses, decoding, envelope, hardening, idempotency, streams
from api.http.credentials import Credentials
from api.http.endpoint import PATH_SHAPES, Endpoint
from api.http.metrics import observe
from api.http.rate_limit import RateLimit, RateLimited
from api.settings import Settings
from custody.kit import clock, ids, stages
from custody.kit.answers import Download, Outcome, Streamed
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


class DatabaseFull(Unavailable):
    """The database has no room to write. Tell the operator."""


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
        self._in_flight = idempotency.InFlight()
        self._settings = settings
        self._trusted = [ipaddress.ip_network(part) for part in settings.trusted_proxies]

    async def close(self) -> None:
        """Let go of what the pipeline itself holds open."""
        await self._limit.close()

    def handler(self, endpoint: Endpoint) -> Callable[..., Coroutine[Any, Any, HTTPResponse]]:
        """The handler of one endpoint."""

        async def handle(request: Request, **path: str) -> HTTPResponse:
            started, taken = time.perf_counter(), stages.begin()
            request_id = request_id_of(request)
            try:
                response = await self._run(endpoint, request, request_id, path)
            except CustodyError as problem:
                request.ctx.code = problem.code
                response = _refusal(problem, endpoint, request_id)
            except asyncpg.DiskFullError:
                log.error("the database has no room", extra={"request_id": request_id, "route": endpoint.contract_path})
                response = envelope.failed(DatabaseFull(), request_id)
            except (*DatabaseAway, asyncpg.InsufficientResourcesError) as problem:
                log.warning("the database is away", extra={"request_id": request_id, "reason": type(problem).__name__})
                response = envelope.failed(DatabaseUnavailable(), request_id)
            except Exception:  # the edge of the process
                log.exception("unexpected", extra={"request_id": request_id, "route": endpoint.contract_path})
                response = envelope.faulted(request_id)
            response.headers.update(getattr(request.ctx, "limits", {}))
            idempotency.count(self._ports.counts, endpoint, request, response)
            seconds = time.perf_counter() - started
            observe(endpoint.method, endpoint.contract_path, response.status, seconds)
            if response.status >= 500 or endpoint.hardened:
                log.info(
                    "request",
                    extra={"request_id": request_id, "method": endpoint.method, "route": endpoint.contract_path,
                           "status": response.status, "ms": round(seconds * 1000, 2), **taken},
                )  # fmt: skip
            # Caches do not know our headers for credentials, so what depends on one is for nobody else.
            return finished(response, request_id, endpoint.private or "public" not in endpoint.who.kinds)

        return handle

    async def _run(self, endpoint: Endpoint, request: Request, request_id: str, path: dict[str, str]) -> HTTPResponse:
        address = self._address(request)
        origin = Origin(request_id, address, _user_agent(request))
        caller = await self._admitted(endpoint, request, origin, address)
        if caller is not None:
            request.ctx.tenant = caller.tenant if isinstance(caller, TenantCaller | AgentCaller) else None
            caller = idempotency.with_key(caller, request, endpoint)
        if caller is not None and endpoint.hardened:
            await hardening.check(self._ports, self._settings, endpoint, request, caller, clock.now())
        arguments = [self._argument(kind, endpoint, request, caller or origin, path) for kind in endpoint.arguments]
        with self._in_flight.hold(caller, endpoint):
            result = await endpoint.handler(*arguments)
        # A policy's refusal is written down with its order; nothing else that is refused is.
        request.ctx.stored = endpoint.queues and isinstance(result, Outcome)
        if isinstance(result, Streamed):
            # What is admitted now may not be for as long as the answer lasts.
            again = partial(self._credentials.caller, request, endpoint.who, origin, acts=False)
            return streams.response(result, again)
        return _answer(endpoint, result)

    async def _admitted(self, endpoint: Endpoint, request: Request, origin: Origin, address: str) -> Caller | None:
        try:
            caller = await self._credentials.caller(request, endpoint.who, origin, acts=endpoint.hardened)
        except Exception:
            # Who guesses credentials is counted by where he comes from, whatever becomes of the guess.
            request.ctx.limits = await self._limit.count(None, address)
            raise
        if endpoint.tag != "Health":
            request.ctx.limits = await self._limit.count(caller, address)
        if endpoint.limit is not None:
            # The narrower of the two is what the caller has to know.
            request.ctx.limits = await self._limit.count_small(endpoint.limit, address) or request.ctx.limits
        return caller

    def _argument(
        self, kind: str, endpoint: Endpoint, request: Request, asker: Caller | Origin, path: dict[str, str]
    ) -> Any:
        if kind == "ports":
            return self._ports
        caller = asker if isinstance(asker, Caller) else None
        if kind == "origin":
            return caller.origin if caller is not None else asker
        if kind == "caller":
            return caller
        if kind == "agent":
            return _agent_ref(caller, path["agent"])
        if kind == "body":
            return decoding.body_of(request, endpoint)
        if kind == "query":
            return decoding.query_of(request, endpoint)
        if kind == "headers":
            return decoding.headers_of(request, endpoint)
        name = kind.removeprefix("path:")
        return _path_value(caller, name, path[name])

    def _address(self, request: Request) -> str:
        return addresses.client_of(request.ip or "", request.headers.getall("x-forwarded-for", []), self._trusted)


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


def _refusal(problem: CustodyError, endpoint: Endpoint, request_id: str) -> HTTPResponse:
    headers = problem.context.pop("headers", {}) if isinstance(problem, RateLimited) else {}
    if endpoint.oauth and isinstance(problem, Invalid):
        response = envelope.refused(problem)
    else:
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
    if isinstance(result, Download):
        kind = f"{result.media}; charset=utf-8"
        return HTTPResponse(result.content, 200, headers=result.headers, content_type=kind)
    if endpoint.media is not None:
        return HTTPResponse(result, 200, content_type=f"{endpoint.media}; charset=utf-8")
    if isinstance(result, Outcome):
        return envelope.answered(result)
    if isinstance(result, Listed):
        response = envelope.succeeded(200, result.rows)
        response.headers["X-Total-Count"] = str(result.total)
        return response
    status = next(iter(endpoint.returns))
    return envelope.raw(status, result) if endpoint.raw_answer else envelope.succeeded(status, result)
