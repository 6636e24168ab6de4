"""Every refusal of the proxy: status, code, and a sentence that helps. Spec 2/4.6, decisions 8."""

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


class Refusal(msgspec.Struct, frozen=True):
    """What an agent gets instead of the upstream's answer. The sentence never holds what the upstream said."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


BAD_TOKEN = Refusal(
    401,
    "bad_token",
    "A valid agent token is needed: send it as `Authorization: Bearer <token>`.",
    ((b"WWW-Authenticate", b'Bearer realm="custody"'),),
)
PROXY_TOKEN = Refusal(
    407,
    "bad_token",
    "A valid agent token is needed: put it into the proxy's address as http://agent:<token>@host:port.",
    ((b"Proxy-Authenticate", b'Basic realm="custody"'),),
)
NO_ROUTE = Refusal(403, "no_route", "No enabled credential route of your tenant covers this host, path and method.")
UNKNOWN_ALIAS = Refusal(403, "unknown_alias", "There is no such alias; use a configured one, or /proxy/<host>/<path>.")
FROZEN = Refusal(403, "frozen", "The agent or its tenant is frozen; nothing goes out until it is unfrozen.")
SECRET_UNAVAILABLE = Refusal(403, "secret_unavailable", "The credential of this route was deleted or has expired.")
VALUE_UNFIT = Refusal(403, "secret_unavailable", "The credential of this route cannot be sent in a header.")
ADDRESS_BLOCKED = Refusal(403, "address_blocked", "The host leads to an address that the proxy may not call.")
BODY_TOO_LARGE = Refusal(413, "body_too_large", "The request body is larger than the proxy takes.")
BODY_UNFIT = Refusal(
    415,
    "body_unfit",
    "The credential goes into the body: a JSON object, or an urlencoded form of at most 10,000 fields.",
)
HEAD_TOO_LARGE = Refusal(431, "head_too_large", "The request line and headers are longer than 64 KiB.")
MALFORMED = Refusal(400, "malformed_request", "The request is not valid HTTP/1.1.")
TOO_MANY_CONNECTIONS = Refusal(
    429, "too_many_connections", "This agent has too many connections open.", ((b"Retry-After", b"1"),)
)
UPSTREAM_FAILED = Refusal(502, "upstream_failed", "The upstream could not be reached or did not answer properly.")
UPSTREAM_ENCODED = Refusal(
    502, "upstream_encoded", "The upstream encoded its answer in a way that was not asked for and cannot be checked."
)
UPSTREAM_SLOW = Refusal(504, "upstream_timeout", "The upstream did not answer in time.")
UNAVAILABLE = Refusal(
    503,
    "unavailable",
    "The proxy cannot decide about requests right now; try again shortly.",
    ((b"Retry-After", b"1"),),
)
INTERNAL = Refusal(500, "internal", "The proxy had a fault. Tell the operator the request id.")

_STATUS: tuple[tuple[type[CustodyError], int], ...] = (
    (Invalid, 400), (Unauthenticated, 401), (Frozen, 403), (Forbidden, 403), (NotFound, 403), (Conflict, 409),
    (TooMany, 429),
)  # fmt: skip


def from_error(problem: CustodyError) -> Refusal:
    """The refusal for a named error of ours; what has no status of its own is a fault of ours."""
    if isinstance(problem, Unavailable):
        # Its own sentence speaks of what we asked, of the signer or the database, not of what the agent asked.
        return UNAVAILABLE
    status = next((status for kind, status in _STATUS if isinstance(problem, kind)), None)
    if status is None:
        return INTERNAL
    wait = getattr(problem, "retry_after", None)
    headers = ((b"Retry-After", str(wait).encode()),) if wait is not None else ()
    return Refusal(status, problem.code, problem.message, headers)


def body_of(refusal: Refusal, request_id: str) -> bytes:
    """The envelope."""
    return msgspec.json.encode(
        {"ok": False, "error": refusal.message, "data": {"code": refusal.code, "requestId": request_id}}
    )
