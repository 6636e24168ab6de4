"""The only place where the api is wired together."""

import asyncio
import contextlib
import functools
import hashlib
from functools import partial
from typing import Any

import asyncpg
import msgspec
from sanic import Request, Sanic
from sanic.exceptions import SanicException
from sanic.response import HTTPResponse

from api.areas.webhooks import stream
from api.http import bodies, envelope, errors, metrics, openapi, pages, sign_in_pages, streams
from api.http.cors import Preflights, is_preflight
from api.http.front_page import FrontPage
from api.http.paths import Methods, find_shadowed
from api.http.pipeline import BadPath, Pipeline, finish, holder_of, request_id_of
from api.http.request import BadSegment, CheckedRequest
from api.routes import approve, device, docs, endpoints, invitation
from api.routes.auth import hosted
from api.settings import Settings
from custody.chains.node_shares import NodeShares
from custody.chains.rpc import Rpc
from custody.kit import db, models
from custody.kit.callers import Origin
from custody.kit.deployment import Deployment
from custody.kit.dns_records import DnsRecords
from custody.kit.errors import CustodyError, Invalid
from custody.kit.logs import logger
from custody.kit.outside import Fetcher, Outside
from custody.kit.outside_urls import loopback_allowed
from custody.kit.poolers import refuse_forgetful
from custody.kit.tasks import spawn
from custody.notifications.mail import Mail
from custody.notifications.sms import Sms
from custody.ports import CHECKS, Ports
from custody.protocol.client import SignerClient
from custody.protocol.command import WorkerName
from custody.protocol.common import Status
from custody.protocol.workers import Workers

log = logger("api")
# Bytes of a request line and its headers.
MAX_HEADERS = 16 * 1024
STATUS_SECONDS = 5.0
COUNTS_SECONDS = 1.0
LAST_COUNTS_SECONDS = 1.0
DATABASE_SECONDS = 30.0
# Stands in a contract where its deployment's address will.
_NO_URL = "custody:public-url"
ASSETS = approve.ASSETS | device.ASSETS | hosted.ASSETS | invitation.ASSETS | docs.ASSETS | sign_in_pages.ASSETS


async def build(settings: Settings) -> Sanic[Any, Any]:
    """The application, connected to its database and ready to serve."""
    ports = Ports(
        pool=await db.open_pool_when_there(settings.database_url, size=settings.pool_size, seconds=DATABASE_SECONDS),
        workers=Workers(
            SignerClient(str(settings.sign_socket), "api"), SignerClient(str(settings.identity_socket), "api")
        ),
        chains=settings.chains,
        rpc=Rpc(),
        allow_broad_routes=settings.allow_broad_routes,
        allow_cookie_injection=settings.allow_cookie_injection,
        mail=_mail(settings) if settings.smtp_url else None,
        sms=Sms(settings.sms_url, settings.sms_per_hour) if settings.sms_url else None,
        presets=settings.presets,
        prices=settings.prices,
        quotas=settings.quotas,
        node_shares=NodeShares(settings.node_calls),
        oauth_secrets=settings.oauth_secrets,
        oidc_secrets=settings.oidc_secrets,
        fetcher=Fetcher(outside := Outside(loopback_allowed=loopback_allowed(settings.public_url))),
        checks=Fetcher(outside, CHECKS),
        deployment=_deployment(settings),
        dns=DnsRecords(settings.dns_server),
    )
    await refuse_forgetful(settings.database_url)
    await models.load("api.areas.accounts.models")
    app: Sanic[Any, Any] = Sanic("custody", configure_logging=False, request_class=CheckedRequest)
    app.config.update(
        AUTO_EXTEND=False,
        ACCESS_LOG=False,
        REQUEST_MAX_SIZE=bodies.MAX_THROWN_AWAY,
        # The signatures of a key quorum beside two tokens and all the rest.
        REQUEST_MAX_HEADER_SIZE=MAX_HEADERS,
        GRACEFUL_SHUTDOWN_TIMEOUT=15.0,
        KEEP_ALIVE_TIMEOUT=75,
        REQUEST_TIMEOUT=30,
        RESPONSE_TIMEOUT=60,
    )
    pipeline = Pipeline(ports, settings)
    table = endpoints()
    # Every problem is answered below; without a format, the server parses each handler's source to find one.
    add = partial(app.add_route, strict_slashes=True, stream=True, error_format="json")
    for endpoint in table:
        add(
            pipeline.handler(endpoint),
            _sanic_path(endpoint.path),
            methods=_methods(endpoint.method),
            name=_name(endpoint),
        )
    for endpoint, path, values in find_shadowed(table):
        # Among its siblings an agent may be called `batch`; the router would stop at the path of that name.
        add(
            partial(pipeline.handler(endpoint), **values),
            path,
            methods=_methods(endpoint.method),
            name=f"{_name(endpoint)}_at{path.replace('/', '_')}",
        )
    documents = _contracts(settings.public_url)

    async def document(request: Request) -> HTTPResponse:
        bodies.drop(request)
        await pipeline.cors.admit(request, pipeline.address(request))
        contract, tag = documents[request.path]
        # Who has it asks each time whether it is still the same, which costs nobody 400 KiB.
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return finish(HTTPResponse(b"", 304, headers), request, request_id_of(request), private=False)
        answer = HTTPResponse(contract, 200, headers, "application/json")
        try:
            holder = holder_of(None, pipeline.address(request))
            answer = streams.whole(answer, pipeline.held, holder, request.method)
        except CustodyError as problem:
            request_id = request_id_of(request)
            return finish(envelope.failure(problem, request_id), request, request_id)
        return finish(answer, request, request_id_of(request), private=False)

    async def asset(request: Request) -> HTTPResponse:
        bodies.drop(request)
        return finish(pages.asset(ASSETS[request.path]), request, request_id_of(request))

    served = {**dict.fromkeys(documents, document), **dict.fromkeys(ASSETS, asset)}
    for path, handler in served.items():
        add(handler, path, methods=_methods("GET"), name=path.strip("/").replace("/", "_").replace(".", "_"))
    beside = [("GET", path) for path in served]
    methods = Methods([*((endpoint.method, endpoint.path) for endpoint in table), *beside])
    preflights = Preflights(table, methods)
    front = FrontPage(settings.public_url)

    # What the server refuses before a route is found: still with the envelope.
    @app.exception(Exception)
    async def outside_the_table(request: Request, problem: Exception) -> HTTPResponse:
        bodies.leave(request)
        request_id = request_id_of(request)
        if isinstance(problem, SanicException):
            await pipeline.cors.admit(request, pipeline.address(request))
            if is_preflight(request) and request.ctx.page and (answer := preflights.answer(request)) is not None:
                return finish(answer, request, request_id)
            if (page := front.answer(request)) is not None:
                return finish(page, request, request_id)
            refusal = _translate(problem, methods.at(request.path))
            return finish(envelope.failure(refusal, request_id), request, request_id)
        log.error("unexpected", exc_info=problem, extra={"request_id": request_id})
        return finish(envelope.internal_error(request_id), request, request_id)

    app.ctx.leaving = ports.leaving
    _keep_on(app, ports, settings)

    @app.after_server_stop
    async def close(_app: Any) -> None:
        # Not called off when it takes long: the driver would wait until the database has heard of that.
        await asyncio.wait([spawn(_write_counts(ports), "last counts")], timeout=LAST_COUNTS_SECONDS)
        await asyncio.gather(*(sender.close() for sender in (ports.mail, ports.sms) if sender is not None))
        await pipeline.close()
        await ports.workers.close()
        await ports.rpc.close()
        await db.close_pool(ports.pool)

    return app


@functools.cache
def contracts() -> dict[str, bytes]:
    """Each form of the contract by path, without the deployment's address: a process that forks makes it before."""
    return {path: msgspec.json.encode(one) for path, one in openapi.documents(endpoints(), _NO_URL).items()}


def _contracts(public_url: str) -> dict[str, tuple[bytes, str]]:
    """Each form of the contract, and its tag, by path."""
    old, new = (msgspec.json.encode(url) for url in (_NO_URL, public_url))
    made = {path: content.replace(old, new, 1) for path, content in contracts().items()}
    # Two megabytes each, which nobody asks for again.
    contracts.cache_clear()
    return {path: (content, f'"{hashlib.sha256(content).hexdigest()[:32]}"') for path, content in made.items()}


def _mail(settings: Settings) -> Mail:
    return Mail(settings.smtp_url, settings.public_url, plain=not settings.production)


def _deployment(settings: Settings) -> Deployment:
    return Deployment(
        public_url=settings.public_url,
        require_request_expiry=settings.require_request_expiry,
        require_auth_signature=settings.require_auth_signature,
        empty_policy=settings.empty_policy,
        allow_broad_routes=settings.allow_broad_routes,
        scoped_platform_keys=settings.scoped_platform_keys,
    )


def _methods(method: str) -> list[str]:
    """HEAD works where GET does: the same answer without its body."""
    return [method, "HEAD"] if method == "GET" else [method]


def _sanic_path(path: str) -> str:
    return path.replace(">", ":str>")


def _name(endpoint: Any) -> str:
    return (
        f"{endpoint.method}_{endpoint.path}".replace("/", "_")
        .replace("<", "")
        .replace(">", "")
        .replace("-", "_")
        .replace(".", "_")
    )


def _translate(problem: SanicException, allowed: list[str]) -> CustodyError:
    if problem.status_code == 404:
        return errors.NoSuchRoute()
    if problem.status_code == 405:
        return errors.WrongMethod(allow=allowed)
    if problem.status_code == 413:
        # The server says the same of a head that is too large.
        return errors.HeadersTooLarge() if "header" in str(problem) else errors.BodyTooLarge()
    if problem.status_code == 431:
        return errors.HeadersTooLarge()
    if isinstance(problem, BadSegment):
        return BadPath(
            "A segment of the path is . or .., or hides a slash, a control character or bytes that are not UTF-8. "
            "Percent-encode each id once, by itself.",
            fields=[],
        )
    return Invalid("The request is malformed.", code="malformed_request")


def _keep_on(app: Sanic[Any, Any], ports: Ports, settings: Settings) -> None:
    """Run the tasks beside the requests."""
    _keep_figures(app, ports, settings)
    _keep_counts(app, ports)
    _keep_listening(app, ports, settings)


def _keep_counts(app: Sanic[Any, Any], ports: Ports) -> None:
    """Write what was counted of idempotency keys once a second, and a last time at the end."""

    async def keep(_app: Any) -> None:
        while True:
            await asyncio.sleep(COUNTS_SECONDS)
            await _write_counts(ports)

    app.add_task(keep)  # type: ignore[arg-type]


async def _write_counts(ports: Ports) -> None:
    try:
        await ports.counts.flush(ports.pool)
    except (*db.DatabaseAway, asyncpg.PostgresError) as problem:
        log.warning("figures were not written", extra={"reason": type(problem).__name__})


def _keep_listening(app: Sanic[Any, Any], ports: Ports, settings: Settings) -> None:
    """Hear of new events, and at the end send those home who wait for them."""

    async def listen(_app: Any) -> None:
        await ports.notifier.listen(settings.database_url, stream.CHANNEL)

    app.add_task(listen)  # type: ignore[arg-type]

    @app.before_server_stop
    async def last(_app: Any) -> None:
        await ports.notifier.close()


def _keep_figures(app: Sanic[Any, Any], ports: Ports, settings: Settings) -> None:
    if settings.worker != 0:
        return
    names: tuple[WorkerName, ...] = ("signer", "identity")
    figures = metrics.WorkerFigures()
    if not metrics.serve(settings.metrics_host, settings.metrics_port, figures, metrics.DiskFigures(settings.home)):
        return

    async def listen(_app: Any, name: WorkerName) -> None:
        while True:
            with contextlib.suppress(CustodyError, TimeoutError):
                async with asyncio.timeout(STATUS_SECONDS):
                    figures.hear(name, await ports.workers.only(name).tell(Status(), Origin("metrics")))
            await asyncio.sleep(STATUS_SECONDS)

    # Each on its own: a worker that does not answer must not make the other look silent.
    for name in names:
        app.add_task(partial(listen, name=name))  # type: ignore[arg-type]
