"""Signed requests: whether a key of the caller's made the signature, and whether it was used before. Decisions 6."""

from typing import Any

from custody.identity.request_signature import Signature, canonical_of, check_times, parse_header, until, verify
from custody.kit import clock, tokens
from custody.kit.errors import Unauthenticated
from custody.protocol.messages import CheckRequestSignature, Done, Outcome
from signer.administration import signing_keys
from signer.context import Ask, Signer
from signer.proofs import PLATFORM, Proven, ProvenAppClient, ProvenPlatform
from signer.sealing import fields, sha256

_USE = "SELECT use_signature($1, $2, $3, $4, $5, $6, $7, $8)"


class SignatureKeyUnknown(Unauthenticated):
    """No key that may sign this request is known; look at X-Service-Signing-Key-Id."""


class SignatureMismatch(Unauthenticated):
    """The signature is not one of this request: compare method, path and query, tenant, times, key and body."""


class SignatureReplayed(Unauthenticated):
    """This signature was used before; sign each request anew, and one that was refused too."""


async def check(signer: Signer, message: CheckRequestSignature, ask: Ask[Proven]) -> Outcome:
    """Use up a request's signature, or refuse it."""
    signature = parse_header(message.signature)
    check_times(message.timestamp, message.expires_at, clock.now())
    tenant = PLATFORM if isinstance(ask.caller, ProvenPlatform) else ask.caller.tenant
    content = canonical_of(
        message.method, message.path, "" if tenant == PLATFORM else tenant, message.timestamp, message.expires_at,
        message.idempotency_key, message.body_sha256,
    )  # fmt: skip
    async with signer.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
        name = _signed_by(signature, await _keys(connection, signer, message, ask), content)
        may = await connection.fetchval(
            _USE, tenant, name, sha256(signature.mark), _first_of(message, ask),
            until(message.timestamp, message.expires_at), ask.caller.principal,
            ask.key.route if ask.key else None, sha256(message.idempotency_key.encode()),
        )  # fmt: skip
    if not may:
        raise SignatureReplayed
    return Done({"key": name})


def _first_of(message: CheckRequestSignature, ask: Ask[Proven]) -> bytes:
    """Whose request it is: who asks is not signed, and idempotency knows a key of another caller as another one."""
    return sha256(fields(ask.caller.principal, message.idempotency_key))


async def _keys(
    connection: Any, signer: Signer, message: CheckRequestSignature, ask: Ask[Proven]
) -> list[tuple[str, bytes]]:
    """The keys that may have signed: of an app client and of the platform their own secret, else the tenant's."""
    caller = ask.caller
    if message.signer_id is not None:
        return []
    if isinstance(caller, ProvenAppClient | ProvenPlatform):
        # What proved the caller is what signs, so there is nothing to choose.
        # The name is that of the secret, not of its client, whose next secret is another one.
        return [] if message.key_id is not None else [(tokens.digest(ask.shown).hex(), ask.shown.encode())]
    found = await signing_keys.usable(connection, signer, caller.tenant)
    return [(key, secret.encode()) for key, secret in found if message.key_id in (None, key)]


def _signed_by(signature: Signature, keys: list[tuple[str, bytes]], content: bytes) -> str:
    # No key here is one that P-256 could be checked with.
    if not keys or signature.scheme != "v1":
        raise SignatureKeyUnknown
    for name, secret in keys:
        if verify(signature, secret, content):
            return name
    raise SignatureMismatch
