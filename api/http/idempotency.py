"""The api's half of `Idempotency-Key`: check it, hash it, keep twins apart, and say what became of it."""

import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from sanic import Request
from sanic.response import HTTPResponse

from api.http.endpoint import Endpoint
from custody.idempotency.counts import Counter, Counts
from custody.kit.callers import Caller, IdempotencyKey, PlatformCaller, TenantCaller
from custody.kit.errors import Conflict, Invalid

_PRINTABLE = re.compile(r"[\x20-\x7e]{8,255}")

# What an answer with a code says of its key.
_REFUSED: dict[str, Counter] = {
    "idempotency_mismatch": "conflicts",
    "idempotency_in_flight": "in_flight_conflicts",
    "idempotency_secret_shown": "suppressed_auth_responses",
    "bad_idempotency_key": "invalid_keys",
}


class BadIdempotencyKey(Invalid):
    """Idempotency-Key must have 8 to 255 printable ASCII characters."""


class IdempotencyInFlight(Conflict):
    """A request with this Idempotency-Key is still in progress; retry in a second."""

    retry_after = 1


def with_key(caller: Caller, request: Request, endpoint: Endpoint) -> Caller:
    """The caller together with the request's key, if it sent one."""
    keys = request.headers.getall("idempotency-key", [])
    if not keys or not endpoint.hardened:
        return caller
    if len(keys) > 1:
        # Which of them counts? A proxy in front of us may have checked the other.
        raise BadIdempotencyKey("Send one Idempotency-Key, not several.")
    given = keys[0]
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


class InFlight:
    """The keys that this process is working on. Twins in other processes meet in the database and get a replay."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, ...] | tuple[str, str, bytes]] = set()

    @contextmanager
    def hold(self, caller: Caller | None, endpoint: Endpoint) -> Iterator[None]:
        """Hold a request's key while it is worked on; IdempotencyInFlight for its twin.

        An order's twin waits in its agent's queue instead and gets the replay.
        """
        if caller is None or caller.idempotency is None or endpoint.queues:
            yield
            return
        name = (_principal(caller), caller.idempotency.route, caller.idempotency.key_hash)
        if name in self._keys:
            raise IdempotencyInFlight
        self._keys.add(name)
        try:
            yield
        finally:
            self._keys.discard(name)


def _principal(caller: Caller) -> str:
    if isinstance(caller, TenantCaller):
        return f"{caller.tenant} {caller.principal}"
    return f"platform {caller.key_prefix}" if isinstance(caller, PlatformCaller) else caller.proof.value


def count(counts: Counts, endpoint: Endpoint, request: Request, response: HTTPResponse) -> None:
    """Count what a request with a key came to, for the tenant that asked; strangers and operators are not counted."""
    tenant = getattr(request.ctx, "tenant", None)
    if tenant is None or endpoint.method == "GET" or "idempotency-key" not in request.headers:
        return
    replayed = "Idempotency-Replayed" in response.headers
    code, stored = getattr(request.ctx, "code", None), getattr(request.ctx, "stored", False)
    for counter in counters(endpoint, response.status, code, replayed=replayed, stored=stored):
        counts.add(tenant, counter)


def counters(endpoint: Endpoint, status: int, code: str | None, *, replayed: bool, stored: bool) -> list[Counter]:
    """Choose the counters of one answer to a request with a key.

    `code` is that of an error, `stored` says that a refusal was written down (a policy's, with its transaction).
    """
    if not endpoint.hardened:
        return ["observed", "skipped_unsafe_context"]
    if code in _REFUSED:
        return ["observed", _REFUSED[code]]
    if replayed:
        return ["observed", "replayed"]
    if status >= 500:
        return ["observed", "reserved", "store_errors" if status == 503 else "released_on_error"]
    if status >= 400 and not stored:
        return ["observed", "reserved", "released_on_error"]
    done: list[Counter] = ["observed", "reserved", "completed"]
    return [*done, "suppressed_auth_responses"] if endpoint.shows_secret else done
