"""The handling of a request, top to bottom, one call per step. There is no other middleware."""

import re
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import asyncpg
import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from api.http import addresses, answers, bodies, browser_pages, decoding, envelope, hardening, idempotency, streams
from api.http.cors import Cors, readable
from api.http.credentials import Credentials, shown_by
from api.http.endpoint import PATH_SHAPES, SPELLED, Endpoint
from api.http.held import Held
from api.http.metrics import observe
from api.http.rate_limit import RateLimit, RateLimited
from api.settings import Settings
from custody.kit import clock, ids, stages
from custody.kit.answer_kinds import Recorded, Streamed, Throttled
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, Caller, Origin, SessionCaller, TenantCaller
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.kit.shapes import AgentId
from custody.kit.validation import must_be
from custody.ports import Ports
from custody.version import VERSION

log = logger("api")
_SAFE_ID = re.compile(r"[A-Za-z0-9_\-.:]{1,128}")
_MAX_USER_AGENT = 256
# Responses that clients without a credential or a remaining share can request without limit.
_COUNTED_ONLY = (401, 429)
# What takes longer than this is worth a line, with the time of its stages.
SLOW_SECONDS = 1.0


class DatabaseUnavailable(Unavailable):
    """The database is not reachable. Retry shortly, what acts under the same Idempotency-Key: it may have been done."""


class DatabaseFull(Unavailable):
    """The database has no free space. Contact the operator."""


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
        self.held = Held()
        self.cors = Cors(ports)
        self._settings = settings
        self._trusted = settings.trusted_proxies
        self._secure = settings.public_url.startswith("https:")

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
                response = self._refusal(problem, endpoint, request, request_id)
            except asyncpg.DiskFullError:
                log.error("the database has no room", extra={"request_id": request_id, "route": endpoint.contract_path})
                response = envelope.failure(DatabaseFull(), request_id)
            except (*DatabaseAway, asyncpg.InsufficientResourcesError) as problem:
                log.warning("the database is away", extra={"request_id": request_id, "reason": type(problem).__name__})
                response = envelope.failure(DatabaseUnavailable(), request_id)
            except Exception:  # the edge of the process
                log.exception("unexpected", extra={"request_id": request_id, "route": endpoint.contract_path})
                response = envelope.internal_error(request_id)
            bodies.leave(request)
            if "RateLimit-Limit" not in response.headers:
                response.headers.update(getattr(request.ctx, "limits", {}))
            idempotency.count(self._ports.counts, endpoint, request, response)
            seconds = time.perf_counter() - started
            observe(endpoint.method, endpoint.contract_path, response.status, seconds)
            # Those are counted: a line for each would be a stranger's way to fill the disk. A signature made in time is
            # routine: it has its audit row, and the figures have its time.
            routine = endpoint.queues and response.status < 400 and seconds < SLOW_SECONDS
            if response.status >= 500 or (endpoint.hardened and response.status not in _COUNTED_ONLY and not routine):
                log.info(
                    "request",
                    extra={
                        "request_id": request_id,
                        "method": endpoint.method,
                        "route": endpoint.contract_path,
                        "status": response.status,
                        "ms": round(seconds * 1000, 2),
                        **taken,
                    },
                )
            # Caches do not know our headers for credentials, so what depends on one is for nobody else.
            private = endpoint.private or "public" not in endpoint.who.kinds
            return finish(response, request, request_id, private=private)

        return handle

    async def _run(self, endpoint: Endpoint, request: Request, request_id: str, path: dict[str, str]) -> HTTPResponse:
        address = self.address(request)
        await self.cors.admit(request, address)
        origin = Origin(request_id, address, _user_agent(request))
        caller = await self._admit(endpoint, request, origin, address)
        if isinstance(caller, TenantCaller | AgentCaller):
            await self.cors.admit(request, address, caller.tenant)
        holder = holder_of(caller, address)
        size = bodies.content_length(request, endpoint.max_body)
        self.held.room(holder, size)
        with self.held.hold(holder, size):
            # Only now: nobody else's body is read, and none that a limit refuses.
            await bodies.receive(request, endpoint.max_body)
            route = endpoint.contract_path
            reads = endpoint.method == "GET"
            if reads:
                turn = self.held.read(holder, route, listed=endpoint.listed)
            else:
                turn = self.held.turn(holder, len(request.body), reads=False)
            async with turn:
                response = await self._answer(endpoint, request, caller, origin, path)
                if reads:
                    # A stream has no body.
                    size = len(getattr(response, "body", None) or b"")
                    self.held.remember(holder, route, size, listed=endpoint.listed)
        return streams.whole(response, self.held, holder, request.method)

    async def _answer(
        self, endpoint: Endpoint, request: Request, caller: Caller | None, origin: Origin, path: dict[str, str]
    ) -> HTTPResponse:
        if caller is not None:
            request.ctx.tenant = caller.tenant if isinstance(caller, TenantCaller | AgentCaller) else None
            caller = idempotency.with_key(caller, request, endpoint)
        if caller is not None and endpoint.hardened:
            caller = await hardening.check(self._ports, self._settings, endpoint, request, caller, clock.now())
        if endpoint.reads_body and endpoint.body is None:
            decoding.body_of(request, endpoint)
        arguments = [self._argument(kind, endpoint, request, caller or origin, path) for kind in endpoint.arguments]
        with self._in_flight.hold(caller, endpoint):
            answer = await endpoint.handler(*arguments)
        replayed = isinstance(answer, Answered) and answer.replayed
        answer = answer.answer if isinstance(answer, Answered) else answer
        # A policy's refusal is kept under the key; nothing else that is refused is, and no refusal that time lifts.
        request.ctx.stored = endpoint.queues and isinstance(answer, Recorded) and not isinstance(answer, Throttled)
        if isinstance(answer, Streamed):
            # What is admitted now may not be for as long as the answer lasts.
            again = partial(self._credentials.caller, request, endpoint.who, origin, acts=False)
            return streams.response(answer, again, head=request.method == "HEAD")
        response = answers.response_of(
            answer,
            status=endpoint.status,
            raw=endpoint.raw_answer,
            public_url=self._settings.public_url,
            offset=decoding.query_of(request, endpoint).offset if endpoint.by_offset else None,
        )
        if replayed:
            response.headers["Idempotency-Replayed"] = "true"
        return response

    async def _admit(self, endpoint: Endpoint, request: Request, origin: Origin, address: str) -> Caller | None:
        shown = None if "public" in endpoint.who.kinds else shown_by(request)
        self._limit.refuse_unread(shown, address)
        try:
            caller = await self._credentials.caller(request, endpoint.who, origin, acts=endpoint.hardened)
        except Exception as problem:
            # A valid credential of a kind or role that this route does not take is no guess.
            if isinstance(problem, Unauthenticated):
                self._limit.looked_up(shown, address, good=False)
            # Failed authentication is rate-limited by client address.
            request.ctx.limits = await self._limit.count(None, address)
            raise
        self._limit.looked_up(shown, address, good=True)
        if not endpoint.unlimited:
            request.ctx.limits = await self._limit.count(caller, address, shown)
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
        if kind == "cookies":
            return decoding.cookies_of(request, endpoint, secure=self._secure)
        name = kind.removeprefix("path:")
        return _path_value(caller, name, path[name])

    def _refusal(self, problem: CustodyError, endpoint: Endpoint, request: Request, request_id: str) -> HTTPResponse:
        headers = problem.context.pop("headers", {}) if isinstance(problem, RateLimited) else {}
        if endpoint.oauth and isinstance(problem, Invalid):
            response = envelope.oauth_error(problem)
        elif endpoint.browsed and browser_pages.asks_for_page(request):
            response = browser_pages.refusal(problem, request_id, self._settings.public_url)
        else:
            response = envelope.failure(problem, request_id)
        response.headers.update(headers)
        return response

    def address(self, request: Request) -> str:
        """Return the address that a request comes from."""
        return addresses.client_of(request.ip or "", request.headers.getall("x-forwarded-for", []), self._trusted)


def holder_of(caller: Caller | None, address: str) -> str:
    """Name the share of memory that a request takes: its tenant's, the operator's, or a stranger's network's."""
    if isinstance(caller, TenantCaller | AgentCaller):
        return f"tenant {caller.tenant}"
    return "platform" if caller is not None else f"address {addresses.counted_as(address)}"


def _user_agent(request: Request) -> str | None:
    # It goes to the audit trail, which keeps neither NUL nor bytes that are no text.
    given = request.headers.get("user-agent") or ""
    return "".join(letter if letter.isprintable() else "?" for letter in given[:_MAX_USER_AGENT]) or None


def request_id_of(request: Request) -> str:
    """The caller's X-Request-Id if it is safe to repeat, else a new one."""
    given = request.headers.get("x-request-id", "")
    return given if _SAFE_ID.fullmatch(given) else ids.new_uuid()


def finish(response: HTTPResponse, request: Request, request_id: str, *, private: bool = True) -> HTTPResponse:
    """The headers that every answer carries."""
    readable(response, request)
    response.headers["X-Request-Id"] = request_id
    response.headers["X-Service-Version"] = VERSION
    response.headers["X-Content-Type-Options"] = "nosniff"
    if private:
        response.headers["Cache-Control"] = "no-store"
    return response


def _agent_ref(caller: Caller | None, agent: str) -> AgentRef:
    """The agent in the path, of the caller's own tenant: the only way to come by a ref."""
    _check(agent, AgentId, "agentId")
    if isinstance(caller, AgentCaller):
        # The same answer whether the other agent exists or not.
        if agent != caller.agent:
            raise OtherAgent
        return AgentRef(caller.tenant, agent)
    if isinstance(caller, SessionCaller) and caller.agent not in (None, agent):
        raise OtherAgent
    assert isinstance(caller, TenantCaller)  # noqa: S101 - a route with an agent in its path takes no one else
    return AgentRef(caller.tenant, agent)


# Names of path parameters that are the caller's own tenant.
OWN_TENANT = frozenset({"tenant_id", "own_tenant_id"})


class NoSuchTenant(NotFound):
    """No such tenant."""


def _path_value(caller: Caller | None, name: str, value: str) -> str:
    _check(value, PATH_SHAPES[name], name)
    if name in OWN_TENANT and isinstance(caller, TenantCaller) and value != caller.tenant:
        raise NoSuchTenant
    return value


def _check(value: str, shape: Any, name: str) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        spelled = SPELLED.get(name, name)
        raise BadPath(f"{spelled} in the path {must_be(shape)}.", fields=[spelled]) from None
