"""Signed requests: whether a key of the caller's made the signature, and whether it was used before."""

from typing import Any

from custody.identity.request_signature import Signature, canonical_of, check_times, parse_header, until, verify
from custody.kit import clock, tokens
from custody.protocol.identity.credentials import CheckRequestSignature, SignedBy
from custody.protocol.identity.refusals import SignatureKeyUnknown
from custody.protocol.refusals import SignatureMismatch, SignatureReplayed
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, Proven, ProvenAppClient, ProvenPlatform
from custody.worker.sealing import fields, sha256
from identity.administration import signing_keys
from identity.context import Identity

_USE = "SELECT use_signature($1, $2, $3, $4, $5, $6, $7, $8)"


async def check(identity: Identity, message: CheckRequestSignature, call: Call[Proven]) -> SignedBy:
    """Use up a request's signature, or refuse it."""
    signature = parse_header(message.signature)
    check_times(message.timestamp, message.expires_at, clock.now())
    tenant = PLATFORM if isinstance(call.caller, ProvenPlatform) else call.caller.tenant
    content = canonical_of(
        message.method,
        message.path,
        "" if tenant == PLATFORM else tenant,
        message.timestamp,
        message.expires_at,
        message.idempotency_key,
        message.body_sha256,
    )
    async with identity.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
        name = _signed_by(signature, await _keys(connection, identity, message, call), content)
        may = await connection.fetchval(
            _USE,
            tenant,
            name,
            sha256(signature.mark),
            _first_of(message, call),
            until(message.timestamp, message.expires_at),
            call.caller.principal,
            call.key.route if call.key else None,
            sha256(message.idempotency_key.encode()),
        )
    if not may:
        raise SignatureReplayed
    return SignedBy(name)


def _first_of(message: CheckRequestSignature, call: Call[Proven]) -> bytes:
    """Name the caller: who asks is not signed, and idempotency knows a key of another caller as another one."""
    return sha256(fields(call.caller.principal, message.idempotency_key))


async def _keys(
    connection: Any, identity: Identity, message: CheckRequestSignature, call: Call[Proven]
) -> list[tuple[str, bytes]]:
    """The keys that may have signed: of an app client and of the platform their own secret, else the tenant's."""
    caller = call.caller
    if message.signer_id is not None:
        return []
    if isinstance(caller, ProvenAppClient | ProvenPlatform):
        # What proved the caller is what signs, so there is nothing to choose.
        # The name is that of the secret, not of its client, whose next secret is another one.
        return [] if message.key_id is not None else [(tokens.digest(call.credential).hex(), call.credential.encode())]
    found = await signing_keys.usable(connection, identity, caller.tenant)
    return [(key, secret.encode()) for key, secret in found if message.key_id in (None, key)]


def _signed_by(signature: Signature, keys: list[tuple[str, bytes]], content: bytes) -> str:
    # No key here is one that P-256 could be checked with.
    if not keys or signature.scheme != "v1":
        raise SignatureKeyUnknown
    for name, secret in keys:
        if verify(signature, secret, content):
            return name
    raise SignatureMismatch
