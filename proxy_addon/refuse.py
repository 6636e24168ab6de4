"""Every refusal of the proxy: status, code, and a sentence that helps."""

from typing import Final

import msgspec

from custody.kit.errors import (
    Conflict,
    CustodyError,
    Forbidden,
    Frozen,
    Invalid,
    NotFound,
    TooMany,
    Unauthenticated,
    Unavailable,
)

# On each answer of our own and on no other, for of an upstream no header of such a name comes through.
ERROR: Final = b"X-Service-Error"
# On an upstream's answer whose body is ours, because its own could not be looked into: why.
BODY: Final = b"X-Service-Body"


class Refusal(msgspec.Struct, frozen=True):
    """The answer to an agent instead of the upstream's. The sentence never holds what the upstream said."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    # What else a program is told.
    details: dict[str, str] = {}


BAD_TOKEN = Refusal(
    401,
    "bad_token",
    "A valid agent token is required: send it as `Authorization: Bearer <token>`, or as your client's API key.",
    # A program that asks for user and password only when it is told to, such as git, hears of Basic.
    ((b"WWW-Authenticate", b'Bearer realm="custody"'), (b"WWW-Authenticate", b'Basic realm="custody"')),
)
PROXY_TOKEN = Refusal(
    407,
    "bad_token",
    "A valid agent token is required: put it into the proxy URL as http://agent:<token>@host:port.",
    ((b"Proxy-Authenticate", b'Basic realm="custody"'),),
)
TWO_TOKENS = Refusal(400, "two_tokens", "The request contains two different agent tokens; send only one of them.")
NO_ROUTE = Refusal(403, "no_route", "No enabled credential route covers this host, path and method for this agent.")
UNKNOWN_ALIAS = Refusal(403, "unknown_alias", "No such alias; use a configured one, or /proxy/<host>/<path>.")
FROZEN = Refusal(403, "frozen", "The agent or its tenant is frozen; no request is forwarded until it is unfrozen.")
SECRET_UNAVAILABLE = Refusal(403, "secret_unavailable", "The credential of this route was deleted or has expired.")
VALUE_UNFIT = Refusal(403, "secret_unavailable", "The credential of this route cannot be sent in a header.")
ADDRESS_BLOCKED = Refusal(403, "address_blocked", "The host is or has an address that the proxy must not call.")
BODY_TOO_LARGE = Refusal(413, "body_too_large", "The request body is larger than the proxy accepts.")
BODY_NOT_DIGESTED = Refusal(
    413,
    "body_too_large",
    "A body without its SHA-256 in x-amz-content-sha256 is held to be signed, and may have at most 8 MiB.",
)
BODY_UNFIT = Refusal(
    415,
    "body_unfit",
    "The route puts the credential into the body: send JSON, a form or, for `text`, plain text, with its place in it.",
)
HEAD_TOO_LARGE = Refusal(431, "head_too_large", "The request line and headers are longer than 64 KiB.")
MALFORMED = Refusal(400, "malformed_request", "The request is not valid HTTP/1.1.")
HTTP2_AT_PORT = Refusal(
    400,
    "malformed_request",
    "This port takes HTTP/1.1; for HTTP/2 have the client open a tunnel, as with HTTPS_PROXY=http://agent:<token>@host.",
)
TOO_FRAGMENTED = Refusal(
    400, "too_fragmented", "The body arrived in too many chunks of a few bytes each; send larger ones."
)
TOO_MANY_CONNECTIONS = Refusal(
    429, "too_many_connections", "This agent or its tenant has too many connections open.", ((b"Retry-After", b"1"),)
)
CROWDED = Refusal(
    503,
    "crowded",
    "The proxy is near its capacity, and the remaining share is reserved for tenants that use less; retry shortly.",
    ((b"Retry-After", b"1"),),
)
TOO_MUCH_HELD = Refusal(
    429,
    "too_much_held",
    "The buffered request bodies of this agent or its tenant have reached their limit; wait until some have been sent.",
    ((b"Retry-After", b"1"),),
)
UPSTREAM_FAILED = Refusal(502, "upstream_failed", "The upstream could not be reached or sent an invalid response.")
UPSTREAM_ENCODED = Refusal(
    502,
    "upstream_encoded",
    "The upstream's body has an encoding that the proxy cannot check; status and headers are the upstream's.",
)
NO_HTTP2 = Refusal(502, "upstream_failed", "The upstream speaks no HTTP/2, which gRPC needs.")
ONLY_HTTP2 = Refusal(
    502, "upstream_failed", "The upstream speaks HTTP/2 only, which is remembered now; send the request again."
)
MESSAGES_ENCODED = Refusal(
    502,
    "upstream_encoded",
    "The upstream compresses its gRPC messages though asked not to, so they cannot be checked; switch that off there.",
)
GRANT_ENDED = Refusal(
    502,
    "refresh_token_ended",
    "The provider no longer takes the refresh token of this route's secret: authorise again, and rotate the secret.",
)
NOT_MINTED = Refusal(
    502,
    "token_not_minted",
    "The provider's token endpoint issued no access token for this route; check its secret, or retry.",
)
UPSTREAM_SLOW = Refusal(504, "upstream_timeout", "The upstream did not respond in time.")
RANGE_NOT_SATISFIABLE = Refusal(416, "range_not_satisfiable", "The range begins behind the end.")
PAYMENT_NOT_ACCEPTED = Refusal(
    402,
    "payment_not_accepted",
    "The payment was made, and the upstream did not accept it: it asks for another one. Do not pay it by hand.",
)
APPROVAL_REQUIRED = Refusal(
    402,
    "approval_required",
    "A person must approve this payment. Send the same request with the same Idempotency-Key once it is approved.",
)
_NO_KEY = (
    "A person must approve this payment, and no request could fetch it then, for this one had no Idempotency-Key: "
    "withdraw it, and send the request again with one."
)
PAYMENT_REFUSED = Refusal(403, "payment_refused", "The rules do not allow this payment.")
PAYMENTS_PAUSED = Refusal(
    429,
    "payments_paused",
    "This host took payments of this agent three times and gave nothing for them; it is paid again later.",
)
LEAVING = Refusal(503, "leaving", "The proxy is shutting down; send new connections to another one.")
UNAVAILABLE = Refusal(
    503,
    "unavailable",
    "The proxy cannot check requests at the moment; retry shortly.",
    ((b"Retry-After", b"1"),),
)
INTERNAL = Refusal(500, "internal", "Internal error of the proxy. Give the operator the request id.")

_STATUS: tuple[tuple[type[CustodyError], int], ...] = (
    (Invalid, 400),
    (Unauthenticated, 401),
    (Frozen, 403),
    (Forbidden, 403),
    (NotFound, 403),
    (Conflict, 409),
    (TooMany, 429),
)


def from_error(problem: CustodyError) -> Refusal:
    """The refusal for a named error; an error without a status is an internal error."""
    if isinstance(problem, Unavailable):
        # Its own sentence speaks of what we asked, of the signer or the database, not of what the agent asked.
        return UNAVAILABLE
    status = next((status for kind, status in _STATUS if isinstance(problem, kind)), None)
    if status is None:
        return INTERNAL
    wait = getattr(problem, "retry_after", problem.context.get("retry_after"))
    headers = ((b"Retry-After", str(wait).encode()),) if wait is not None else ()
    return Refusal(status, problem.code, problem.message, headers)


def approval_required(approval_id: str, tx_id: str, seconds: int | None) -> Refusal:
    """The answer while a person decides about a payment; None for seconds where no repetition could get it."""
    details = {"approvalId": approval_id, "txId": tx_id}
    if seconds is None:
        return msgspec.structs.replace(APPROVAL_REQUIRED, message=_NO_KEY, details=details)
    return msgspec.structs.replace(APPROVAL_REQUIRED, headers=((b"Retry-After", b"%d" % seconds),), details=details)


def payment_refused(reason: str, tx_id: str, seconds: int | None) -> Refusal:
    """The refusal of a payment by rules; with the seconds where only a full window is in the way."""
    return msgspec.structs.replace(
        PAYMENT_REFUSED,
        headers=() if seconds is None else ((b"Retry-After", b"%d" % seconds),),
        details={"reason": reason, "txId": tx_id},
    )


def payments_paused(seconds: int) -> Refusal:
    """The refusal to pay a host for a while."""
    return msgspec.structs.replace(PAYMENTS_PAUSED, headers=((b"Retry-After", b"%d" % seconds),))


def beyond_end(total: int) -> Refusal:
    """The refusal of a part behind the end of a text of so many bytes."""
    return msgspec.structs.replace(RANGE_NOT_SATISFIABLE, headers=((b"Content-Range", b"bytes */%d" % total),))


# As OpenAI's and Anthropic's APIs name the kinds of their errors.
_TYPES = {401: "authentication_error", 403: "permission_error", 407: "authentication_error", 429: "rate_limit_error"}


def body_of(refusal: Refusal, request_id: str) -> bytes:
    """The envelope, with an object in `error`: clients of other APIs print its `message`, and of a text nothing."""
    kind = _TYPES.get(refusal.status, "api_error" if refusal.status >= 500 else "invalid_request_error")
    error = {"message": refusal.message, "type": kind, "code": refusal.code}
    return msgspec.json.encode(
        {"ok": False, "error": error, "data": {"code": refusal.code, "requestId": request_id, **refusal.details}}
    )
