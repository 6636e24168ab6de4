"""The headers of the contract: those that requests may have on many routes, and those of answers."""

from typing import Any

import msgspec

from api.http.authorization import MAX_SIGNATURES, takes_one
from api.http.contract.schemas import UUID
from api.http.endpoint import Endpoint
from custody.kit.answer_kinds import Redirect
from custody.kit.paging import NEXT_OFFSET, TOTAL_IS_ESTIMATE
from custody.kit.shapes import Uuid


def _header(text: str, **schema: Any) -> dict[str, Any]:
    return {"description": text, "schema": {"type": "string", **schema}}


def _number(text: str) -> dict[str, Any]:
    return _header(text, type="integer", minimum=0)


# Of answers, by name.
HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": _header("The id of this request: the one that was sent, or a new one. Name it to the operator."),
    "RateLimit-Limit": _number("Requests that the narrowest limit allows in its window."),
    "RateLimit-Remaining": _number("Requests that are left in this window."),
    "RateLimit-Reset": _number("Seconds until the window begins again."),
    "X-RateLimit-Limit": _number("The same as `RateLimit-Limit`."),
    "X-RateLimit-Remaining": _number("The same as `RateLimit-Remaining`."),
    "X-RateLimit-Reset": _number("The same as `RateLimit-Reset`."),
    "Retry-After": _number("Seconds to wait before the next request."),
    "X-Total-Count": _number("Number of items in all, counted up to a thousand beyond this page."),
    TOTAL_IS_ESTIMATE: _header("`true`: `X-Total-Count` is the least there are; absent otherwise.", const="true"),
    NEXT_OFFSET: _number("The `offset` of the next page, which may begin before `limit` rows; absent on the last one."),
    "X-Next-Cursor": _header("The `cursor` of the next page or file; absent on the last one."),
    "Content-Disposition": _header("The name of a file; JSON has none."),
    "Idempotency-Replayed": _header("`true`: the answer was stored under this Idempotency-Key.", const="true"),
    "Location": _header("The address that the browser goes to."),
    "Set-Cookie": _header("Binds the sign-in to this browser; for no script, and for ten minutes."),
    "WWW-Authenticate": _header("Scheme to authenticate with."),
}
_FILES = frozenset({"text/csv", "application/x-ndjson"})
_LIMITED = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_OF_STATUS = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After", *_LIMITED, *(f"X-{name}" for name in _LIMITED)),
    503: ("Retry-After",),
}

# Of requests that change something, by their names in the contract.
SIGNED: dict[str, str] = {
    "requestTimestamp": "X-Service-Request-Timestamp",
    "requestExpiresAt": "X-Service-Request-Expires-At",
    "signature": "X-Service-Signature",
    "signingKeyId": "X-Service-Signing-Key-Id",
    "idempotencyKey": "Idempotency-Key",
}
# Of orders that signers of the agent authorise.
AUTHORIZING: dict[str, str] = {
    "signerId": "X-Service-Signer-Id",
    "signerSecret": "X-Service-Signer-Secret",
    "keyQuorumId": "X-Service-Key-Quorum-Id",
    "keyQuorumSignatures": "X-Service-Key-Quorum-Signatures",
}
_AUTHORIZES = {
    "signerId": "A signer of the agent; with `X-Service-Signature` or `X-Service-Signer-Secret` (docs/signers.md).",
    "signerSecret": "The signer's credential itself, instead of a signature.",
    "keyQuorumId": "A key quorum of the agent; with `X-Service-Key-Quorum-Signatures`.",
    "keyQuorumSignatures": "A JSON array of 1 to 32 objects `{signerId, signature}`.",
}
_MEANING = {
    "requestTimestamp": "Time of the request: Unix seconds, Unix milliseconds, or RFC 3339.",
    "requestExpiresAt": "Time of the request's expiry, in the same forms.",
    "signature": "A signature over the request (docs/api.md).",
    "signingKeyId": "The key that made the signature; without it every active one is tried.",
}
_ID: dict[str, Any] = msgspec.json.schema(Uuid) | {"pattern": UUID, "format": "uuid"}
_KEY = {
    "type": "string",
    "minLength": 8,
    "maxLength": 255,
    "pattern": "^[\\x20-\\x7e]{8,255}$",
    "examples": ["payment-2026-000123"],
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "idempotencyKey": {
        "name": SIGNED["idempotencyKey"],
        "in": "header",
        "required": False,
        "description": "Names this act, so that sending it again has no second effect and gets the same answer.",
        "schema": _KEY,
    },
    **{
        name: {
            "name": SIGNED[name],
            "in": "header",
            "required": False,
            "description": text,
            "schema": _ID if name.endswith("Id") else {"type": "string", "maxLength": 1024},
        }
        for name, text in _MEANING.items()
    },
}
AUTHORIZING_PARAMETERS: dict[str, Any] = {
    name: {
        "name": header,
        "in": "header",
        "required": False,
        "description": _AUTHORIZES[name],
        "schema": _ID if name.endswith("Id") else {"type": "string", "maxLength": MAX_SIGNATURES},
    }
    for name, header in AUTHORIZING.items()
}


def parameters_of(endpoint: Endpoint) -> list[dict[str, Any]]:
    """References to the headers that a request to this route may have."""
    if not endpoint.hardened or "public" in endpoint.who.kinds:
        return []
    names = [*PARAMETERS, *(AUTHORIZING_PARAMETERS if takes_one(endpoint) else ())]
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def headers_of(endpoint: Endpoint, status: int) -> dict[str, Any]:
    """References to the headers of an answer."""
    names: list[str] = []
    if status in endpoint.returns and not endpoint.unlimited:
        names += _LIMITED
    if status == 200 and endpoint.listed:
        names += ("X-Total-Count", TOTAL_IS_ESTIMATE)
    if status == 200 and "cursor" in getattr(endpoint.query, "__struct_fields__", ()):
        names.append("X-Next-Cursor")
    if status == 200 and endpoint.by_offset:
        names.append(NEXT_OFFSET)
    if status == 200 and not _FILES.isdisjoint({endpoint.media, endpoint.media_too}):
        names.append("Content-Disposition")
    if endpoint.hardened and status in endpoint.returns and "public" not in endpoint.who.kinds:
        names.append("Idempotency-Replayed")
    if endpoint.returns.get(status) is Redirect:
        names.append("Location")
    names += [name for name in endpoint.headers_too if status == endpoint.status]
    return _references(names) | refused_headers(status)


def refused_headers(status: int) -> dict[str, Any]:
    """References to the headers that every answer with this status has."""
    return _references(["X-Request-Id", *_OF_STATUS.get(status, ())])


def _references(names: list[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
