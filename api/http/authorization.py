"""The signer or key quorum of the agent that agreed to an order, read from the headers of its request.

docs/signers.md. Only the form is looked at here; the signer judges it, from the raw body.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from sanic import Request

from api.http.endpoint import Endpoint
from api.http.single_headers import single
from custody.kit.callers import AgentCaller, Authorization, Caller, ShownSigner
from custody.kit.errors import Invalid
from custody.kit.json_bodies import BadBody, decode_as, look_through
from custody.kit.shapes import Uuid
from custody.protocol.command import declaration_of

MAX_SIGNATURES: Final = 6_144
_MAX_PATH: Final = 8_192
_ID, _SECRET = "x-service-signer-id", "x-service-signer-secret"
_QUORUM, _SIGNATURES = "x-service-key-quorum-id", "x-service-key-quorum-signatures"
_SHAPE: Final = "a JSON array of 1 to 32 objects {signerId, signature}, at most 6,144 bytes"


class AuthorizationMalformed(Invalid):
    """X-Service-Signer-Id and X-Service-Key-Quorum-Id must be UUIDs in lower case; each needs its signature."""


class AuthorizationAmbiguous(Invalid):
    """Authorise an order in one way: by one signer or one key quorum, and beside an agent's token alone."""

    def __init__(self, message: str | None = None, *, code: str = "ambiguous_credentials", **context: Any) -> None:
        super().__init__(message, code=code, **context)


class _Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    signer_id: Uuid
    signature: Annotated[str, Meta(min_length=1, max_length=256)]


def takes_one(endpoint: Endpoint) -> bool:
    """Say whether a route takes a signer or a key quorum beside its caller."""
    return endpoint.who.asks is not None and declaration_of(endpoint.who.asks).authorized


def shown_in(
    request: Request, endpoint: Endpoint, caller: Caller, timestamp: str | None, expires_at: str | None
) -> Authorization | None:
    """Read the authorization besides the caller, or None; raise an error if its form is wrong."""
    given = [name for name in (_ID, _SECRET, _QUORUM, _SIGNATURES) if name in request.headers]
    if not given:
        return None
    if not takes_one(endpoint):
        if given == [_ID]:
            # As any signature whose key nobody knows.
            return None
        raise AuthorizationMalformed("This route takes no signer and no key quorum; omit their headers.")
    if not isinstance(caller, AgentCaller):
        raise AuthorizationAmbiguous("A signer or key quorum authorises beside an agent's token, not beside a session.")
    if "x-service-signing-key-id" in request.headers:
        raise AuthorizationAmbiguous
    path = request.raw_url.decode("ascii", "replace")
    if len(path) > _MAX_PATH:
        raise AuthorizationMalformed("The path of an authorised request may have at most 8,192 characters.")
    quorum, shown = _of_quorum(request, given) if _QUORUM in given or _SIGNATURES in given else _of_signer(request)
    return Authorization(
        method=request.method,
        path=path,
        timestamp=_short(timestamp),
        expires_at=_short(expires_at),
        idempotency_key=single(request, "idempotency-key"),
        body=request.body,
        quorum=quorum,
        shown=shown,
    )


def _of_signer(request: Request) -> tuple[None, tuple[ShownSigner, ...]]:
    signer, secret = single(request, _ID), single(request, _SECRET)
    signature = single(request, "x-service-signature")
    if signer is None or (signature is None and secret is None):
        raise AuthorizationMalformed(
            "Send X-Service-Signer-Id with X-Service-Signature, or with X-Service-Signer-Secret."
        )
    if signature is not None and secret is not None:
        raise AuthorizationAmbiguous("Send X-Service-Signature or X-Service-Signer-Secret, not both.")
    try:
        shown = msgspec.convert({"signer": signer, "signature": signature, "secret": secret}, ShownSigner)
    except msgspec.ValidationError:
        raise AuthorizationMalformed from None
    return None, (shown,)


def _of_quorum(request: Request, given: list[str]) -> tuple[str, tuple[ShownSigner, ...]]:
    if _ID in given or _SECRET in given or "x-service-signature" in request.headers:
        raise AuthorizationAmbiguous("Send a signer's headers or a key quorum's, not both.")
    if len(given) != 2:
        raise AuthorizationMalformed("Send X-Service-Key-Quorum-Id with X-Service-Key-Quorum-Signatures.")
    content = (single(request, _SIGNATURES, MAX_SIGNATURES) or "").encode()
    try:
        quorum = msgspec.convert(single(request, _QUORUM), Uuid)
    except msgspec.ValidationError:
        raise AuthorizationMalformed from None
    try:
        entries = decode_as(content, Annotated[tuple[_Signed, ...], Meta(min_length=1, max_length=32)])
        look_through(content)
    except (msgspec.MsgspecError, BadBody, UnicodeDecodeError, RecursionError):
        raise AuthorizationMalformed(f"X-Service-Key-Quorum-Signatures must be {_SHAPE}.") from None
    return quorum, tuple(ShownSigner(one.signer_id, one.signature) for one in entries)


def _short(time: str | None) -> str | None:
    if time is not None and len(time) > 64:
        raise AuthorizationMalformed("A time of the request may have at most 64 characters.")
    return time
