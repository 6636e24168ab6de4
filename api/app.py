"""The only place where the api is wired together."""

import asyncio
from functools import partial
from typing import Any

import asyncpg
import msgspec
from sanic import Request, Sanic
from sanic.exceptions import SanicException
from sanic.response import HTTPResponse

from api.http import envelope, errors, metrics, openapi
from api.http.paths import Methods, shadowed
from api.http.pipeline import Pipeline, finished, request_id_of
from api.routes import device, endpoints
from api.settings import Settings
from custody.chains.rpc import Rpc
from custody.kit import db
from custody.kit.callers import Origin
from custody.kit.deployment import Deployment
from custody.kit.errors import CustodyError, Invalid
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.client import SignerClient
from custody.protocol.messages import Done, Status
from custody.senders.mail import Mail
from custody.senders.sms import Sms
from custody.webhooks import stream

log = logger("api")
STATUS_SECONDS = 5.0
COUNTS_SECONDS = 1.0
LAST_COUNTS_SECONDS = 1.0
DATABASE_SECONDS = 30.0
CONTRACT_PATH = "/openapi.json"


async def build(settings: Settings) -> Sanic[Any, Any]:
    """The application, connected to its database and ready to serve."""
    ports = Ports(
        pool=await db.open_pool_when_there(settings.database_url, size=settings.pool_size, seconds=DATABASE_SECONDS),
        signer=SignerClient(str(settings.sign_socket), "api"),
        chains=settings.chains,
        rpc=Rpc(),
        allow_broad_routes=settings.allow_broad_routes,
        allow_cookie_injection=settings.allow_cookie_injection,
        mail=_mail(settings) if settings.smtp_url else None,
        sms=Sms(settings.sms_url, settings.sms_per_hour) if settings.sms_url else None,
        presets=settings.presets,
        prices=settings.prices,
        deployment=_deployment(settings),
    )
    app: Sanic[Any, Any] = Sanic("custody", configure_logging=False)
    app.config.update(
        AUTO_EXTEND=False, ACCESS_LOG=False, REQUEST_MAX_SIZE=envelope_limit(), GRACEFUL_SHUTDOWN_TIMEOUT=15.0,
        KEEP_ALIVE_TIMEOUT=75,
        REQUEST_TIMEOUT=30, RESPONSE_TIMEOUT=60,
    )  # fmt: skip
    pipeline = Pipeline(ports, settings)
    table = endpoints()
    for endpoint in table:
        app.add_route(
            pipeline.handler(endpoint), _sanic_path(endpoint.path), methods=[endpoint.method], name=_name(endpoint),
            strict_slashes=True,
        )  # fmt: skip
    for endpoint, path, values in shadowed(table):
        # Among its siblings an agent may be called `batch`; the router would stop at the path of that name.
        app.add_route(
            partial(pipeline.handler(endpoint), **values), path, methods=[endpoint.method],
            name=f"{_name(endpoint)}_at{path.replace('/', '_')}", strict_slashes=True,
        )  # fmt: skip
    document = msgspec.json.encode(openapi.document(table, settings.public_url))

    async def contract(_request: Request) -> HTTPResponse:
        return finished(HTTPResponse(document, 200, content_type="application/json"), request_id_of(_request))

    app.add_route(contract, CONTRACT_PATH, methods=["GET"], name="openapi", strict_slashes=True)

    async def asset(request: Request) -> HTTPResponse:
        return finished(device.asset(request.path), request_id_of(request))

    for path in device.ASSETS:
        app.add_route(asset, path, methods=["GET"], name=path.strip("/").replace("/", "_"), strict_slashes=True)
    beside = [("GET", path) for path in (CONTRACT_PATH, *device.ASSETS)]
    methods = Methods([*((endpoint.method, endpoint.path) for endpoint in table), *beside])

    # What the server refuses before a route is found: still with the envelope.
    @app.exception(Exception)
    async def outside_the_table(request: Request, problem: Exception) -> HTTPResponse:
        request_id = request_id_of(request)
        if isinstance(problem, SanicException):
            return finished(envelope.failed(_translated(problem, methods.at(request.path)), request_id), request_id)
        log.error("unexpected", exc_info=problem, extra={"request_id": request_id})
        return finished(envelope.faulted(request_id), request_id)

    app.ctx.leaving = ports.leaving
    _keep_figures(app, ports, settings)
    _keep_counts(app, ports)
    _keep_listening(app, ports, settings)

    @app.after_server_stop
    async def close(_app: Any) -> None:
        # Not called off when it takes long: the driver would wait until the database has heard of that.
        await asyncio.wait([asyncio.ensure_future(_write_counts(ports))], timeout=LAST_COUNTS_SECONDS)
        await asyncio.gather(*(sender.close() for sender in (ports.mail, ports.sms) if sender is not None))
        await pipeline.close()
        await ports.signer.close()
        await ports.rpc.close()
        await db.close_pool(ports.pool)

    return app


def _mail(settings: Settings) -> Mail:
    return Mail(settings.smtp_url, settings.public_url, plain=not settings.production)


def _deployment(settings: Settings) -> Deployment:
    return Deployment(
        public_url=settings.public_url, require_request_expiry=settings.require_request_expiry,
        require_auth_signature=settings.require_auth_signature, empty_policy=settings.empty_policy,
        allow_broad_routes=settings.allow_broad_routes, scoped_platform_keys=settings.scoped_platform_keys,
    )  # fmt: skip


def envelope_limit() -> int:
    """What the server reads of a body before it gives up; the pipeline's own limit answers with the envelope."""
    return 1024 * 1024 + 1


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


def _translated(problem: SanicException, allowed: list[str]) -> CustodyError:
    if problem.status_code == 404:
        return errors.NoSuchRoute()
    if problem.status_code == 405:
        return errors.WrongMethod(allow=allowed)
    if problem.status_code == 413:
        # The server says the same of a head that is too large.
        return errors.HeadersTooLarge() if "header" in str(problem) else errors.BodyTooLarge()
    if problem.status_code == 431:
        return errors.HeadersTooLarge()
    return Invalid("The request is malformed.", code="malformed_request")


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
        await ports.bell.listen(settings.database_url, stream.CHANNEL)

    app.add_task(listen)  # type: ignore[arg-type]

    @app.before_server_stop
    async def last(_app: Any) -> None:
        await ports.bell.close()


def _keep_figures(app: Sanic[Any, Any], ports: Ports, settings: Settings) -> None:
    if settings.worker != 0:
        return
    figures = metrics.SignerFigures()
    try:
        metrics.serve(settings.metrics_port, figures)
    except OSError as problem:
        log.error("no metrics: the port is taken", extra={"port": settings.metrics_port, "reason": problem.strerror})
        return

    async def listen(_app: Any) -> None:
        while True:
            try:
                outcome = (await ports.signer.tell(Status(), Origin("metrics"))).outcome
                if isinstance(outcome, Done):
                    figures.hear(outcome.data["counters"])
            except CustodyError:
                pass
            await asyncio.sleep(STATUS_SECONDS)

    app.add_task(listen)  # type: ignore[arg-type]
