"""The end of a browser's way through a provider: back at the client with a code or an error, or with an admin's report.

Whatever is wrong with the provider's answer is told to the client in a word and to the tenant's administrators in
full, in an audit row. Nothing of what arrived goes to the client.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, Unavailable
from custody.kit.shapes import Role
from custody.protocol.identity.sign_on import Check, SentBack, Tried
from custody.worker.acts import enter
from custody.worker.audited import vet
from custody.worker.proven import PLATFORM
from identity.context import Identity
from identity.sign_on import codes, people
from identity.sign_on.people import Proven
from identity.sign_on.providers import with_query
from identity.sign_on.requests import Request

_AUDIT = "SELECT audit_append('system', 'sign-on', $1, 'sign_on', $2, $3, $4)"
_SAVE = (
    "INSERT INTO sign_on_tests (tenant_id, provider, report, ended_at) VALUES ($1, $2, $3, service_now()) "
    "ON CONFLICT (tenant_id, provider) DO UPDATE SET report = excluded.report, ended_at = excluded.ended_at"
)
_SHOWN = 500


class Way(msgspec.Struct, frozen=True):
    """One browser's way: its request, where it came from, and what the provider said, for an administrator's try."""

    request: Request
    origin: Origin
    arrived: dict[str, Any]
    # Of a kind of provider: the checks, up to the one that a refusal belongs to.
    checks: Callable[[CustodyError | None], list[Check]]


async def with_code(connection: Any, identity: Identity, way: Way, proven: Proven) -> SentBack | Tried:
    """Back with a code, if the person would come in; else with why not."""
    try:
        await people.demand(connection, identity, proven)
    except CustodyError as refusal:
        return await with_error(connection, identity, way, refusal)
    if way.request.test:
        return await _keep_try(connection, way, None, people.role_of(proven))
    return _back(identity, way.request, {"code": await codes.put(connection, identity, proven, way.request)})


async def with_error(connection: Any, identity: Identity, way: Way, refusal: CustodyError) -> SentBack | Tried:
    """Back with an error of RFC 6749, our code and the sentence."""
    if way.request.test:
        return await _keep_try(connection, way, refusal, None)
    await _note(connection, way.origin, way.request, refusal)
    error = "temporarily_unavailable" if isinstance(refusal, Unavailable) else "access_denied"
    said = {"error": error, "error_code": refusal.code, "error_description": refusal.message}
    return _back(identity, way.request, said)


async def _keep_try(connection: Any, way: Way, refusal: CustodyError | None, role: Role | None) -> Tried:
    """Keep what an administrator's try came to, for the tenant's administrators."""
    tenant, provider = way.request.tenant, way.request.provider
    problem = refusal.message if refusal else None
    tried = Tried(provider, refusal is None, problem, way.checks(refusal), way.arrived, role)
    await enter(connection, tenant or PLATFORM)
    await connection.execute(_SAVE, tenant, provider, msgspec.json.encode(tried).decode())
    said = msgspec.json.encode({"ok": tried.ok, **({"code": refusal.code} if refusal else {})}).decode()
    await connection.execute(_AUDIT, vet("sso.tested"), provider, said, _row(way.origin))
    return tried


def _back(identity: Identity, request: Request, said: dict[str, str]) -> SentBack:
    # RFC 9207: the client knows who answered.
    state = {"state": request.state} if request.state else {}
    return SentBack(with_query(request.redirect_uri, {**said, **state, "iss": identity.public_url}))


async def _note(connection: Any, origin: Origin, request: Request, refusal: CustodyError) -> None:
    """Write an audit row for the tenant's administrators, at most one for each flow that was begun."""
    if request.tenant is None:
        return
    await enter(connection, request.tenant)
    details = {name: str(value)[:_SHOWN] for name, value in refusal.context.items()}
    said = msgspec.json.encode({"code": refusal.code, "reason": refusal.message, **details}).decode()
    await connection.execute(_AUDIT, vet("sso.refused"), request.provider, said, _row(origin))


def _row(origin: Origin) -> list[str | None]:
    return [origin.request_id, origin.ip, origin.user_agent]
