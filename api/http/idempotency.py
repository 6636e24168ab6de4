"""The api's half of `Idempotency-Key`: check it, hash it, and describe the request it names. Decisions 6."""

import hashlib
import hmac
import re

import msgspec
from sanic import Request

from api.http.endpoint import Endpoint
from custody.kit.callers import Caller, IdempotencyKey
from custody.kit.errors import Invalid

_PRINTABLE = re.compile(r"[\x20-\x7e]{8,255}")


class BadIdempotencyKey(Invalid):
    """An Idempotency-Key has 8 to 255 printable ASCII characters."""


def with_key(caller: Caller, request: Request, endpoint: Endpoint) -> Caller:
    """The caller together with the request's key, if it sent one."""
    given = request.headers.get("idempotency-key")
    if given is None or not endpoint.hardened:
        return caller
    if not _PRINTABLE.fullmatch(given):
        raise BadIdempotencyKey
    # Keyed by the key itself, which is stored nowhere: who reads the row cannot try values of a secret against it.
    said = hmac.new(given.encode(), digestmod=hashlib.sha256)
    for part in (request.path.encode(), request.query_string.encode(), request.body):
        said.update(len(part).to_bytes(8, "big") + part)
    key = IdempotencyKey(
        f"{endpoint.method} {endpoint.contract_path}", hashlib.sha256(given.encode()).digest(), said.digest()
    )
    return msgspec.structs.replace(caller, idempotency=key)
