"""Times and signatures of sensitive requests: `X-Service-Request-*`, `X-Service-Signature`.

docs/api.md. What a request brings is checked even where the deployment does not demand it.
"""

import hashlib
from datetime import datetime

import msgspec
from sanic import Request

from api.http import authorization
from api.http.endpoint import Endpoint
from api.http.single_headers import single
from api.settings import Settings
from custody.identity.request_signature import check_times
from custody.kit.callers import Caller
from custody.kit.errors import Invalid, Unauthenticated
from custody.ports import Ports
from custody.protocol.identity.credentials import CheckRequestSignature


class RequestTimeRequired(Unauthenticated):
    """This deployment requires X-Service-Request-Timestamp or X-Service-Request-Expires-At on every change."""


class SignatureRequired(Unauthenticated):
    """This deployment requires X-Service-Signature on every change."""


class IdempotencyKeyRequired(Invalid):
    """A signed request requires an Idempotency-Key header."""


async def check(
    ports: Ports, settings: Settings, endpoint: Endpoint, request: Request, caller: Caller, now: datetime
) -> Caller:
    """The caller, with what authorises the request beside it; raises unless times and signature are as they must be."""
    timestamp, expires_at = (
        single(request, "x-service-request-timestamp"),
        single(request, "x-service-request-expires-at"),
    )
    if timestamp is None and expires_at is None and settings.require_request_expiry:
        raise RequestTimeRequired
    check_times(timestamp, expires_at, now)
    signature, key_id = single(request, "x-service-signature"), single(request, "x-service-signing-key-id")
    shown = authorization.shown_in(request, endpoint, caller, timestamp, expires_at)
    if shown is not None:
        # Checked and used up with the order that it authorises, by the signer alone.
        is_signed = any(one.signature is not None for one in shown.shown)
        if is_signed and shown.idempotency_key is None:
            raise IdempotencyKeyRequired
        if not is_signed and settings.require_auth_signature:
            raise SignatureRequired
        return msgspec.structs.replace(caller, authorization=shown)
    if signature is None:
        if settings.require_auth_signature and not endpoint.unsigned:
            raise SignatureRequired
        return caller
    key = single(request, "idempotency-key")
    if key is None:
        raise IdempotencyKeyRequired
    message = CheckRequestSignature(
        method=request.method,
        path=request.raw_url.decode("ascii", "replace"),
        timestamp=timestamp,
        expires_at=expires_at,
        idempotency_key=key,
        body_sha256=hashlib.sha256(request.body).hexdigest(),
        signature=signature,
        key_id=key_id,
        signer_id=single(request, "x-service-signer-id"),
    )
    await ports.workers.ask(message, caller)
    return caller
