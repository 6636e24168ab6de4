"""Times and signatures of sensitive requests: `X-Service-Request-*`, `X-Service-Signature`. Spec 1/5, decisions 6.

docs/request-signature.md. What a request brings is checked even where the deployment does not demand it.
"""

import hashlib
from datetime import datetime

from sanic import Request

from api.http.endpoint import Endpoint
from api.settings import Settings
from custody.identity.request_signature import check_times
from custody.kit.callers import Caller
from custody.kit.errors import Invalid, Unauthenticated
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import CheckRequestSignature

_MAX_HEADER = 1024


class RequestTimeRequired(Unauthenticated):
    """This deployment wants X-Service-Request-Timestamp or X-Service-Request-Expires-At on every change."""


class SignatureRequired(Unauthenticated):
    """This deployment wants X-Service-Signature on every change."""


class IdempotencyKeyRequired(Invalid):
    """A signed request needs an Idempotency-Key."""


class HeaderMalformed(Invalid):
    """A header of a signed request is given more than once, is too long, or is not ASCII."""


async def check(
    ports: Ports, settings: Settings, endpoint: Endpoint, request: Request, caller: Caller, now: datetime
) -> None:
    """Raise unless times and signature of a sensitive request are as they must be."""
    timestamp, expires_at = _header(request, "request-timestamp"), _header(request, "request-expires-at")
    if timestamp is None and expires_at is None and settings.require_request_expiry:
        raise RequestTimeRequired
    check_times(timestamp, expires_at, now)
    signature = _header(request, "signature")
    if signature is None:
        if settings.require_auth_signature and not endpoint.unsigned:
            raise SignatureRequired
        return
    key = _single(request, "idempotency-key")
    if key is None:
        raise IdempotencyKeyRequired
    message = CheckRequestSignature(
        method=request.method, path=request.raw_url.decode("ascii", "replace"), timestamp=timestamp,
        expires_at=expires_at, idempotency_key=key, body_sha256=hashlib.sha256(request.body).hexdigest(),
        signature=signature, key_id=_header(request, "signing-key-id"), signer_id=_header(request, "signer-id"),
    )  # fmt: skip
    await asked(ports.signer, message, caller)


def _header(request: Request, name: str) -> str | None:
    return _single(request, f"x-service-{name}")


def _single(request: Request, name: str) -> str | None:
    # Two values: one would be checked, the other perhaps meant.
    values = request.headers.getall(name, [])
    if len(values) > 1 or any(len(value) > _MAX_HEADER or not value.isascii() for value in values):
        raise HeaderMalformed
    return values[0] if values else None
