"""Approvers' keys: kept under a MAC, revoked for good."""

import base64
import binascii
from datetime import datetime
from typing import Any, Final, NamedTuple

from custody.identity.assertions import BadPublicKey, fingerprint, from_base64url, load_key
from custody.identity.roles import ADMINS
from custody.kit import clock, ids
from custody.protocol.signer.approver_keys import ApproverKey, RegisterApproverKey, RevokeApproverKey
from custody.protocol.signer.refusals import (
    ApproverKeyAbsent,
    ApproverKeyRevoked,
    ApproverKeyTaken,
    BadApproverKey,
    BadCredentialId,
    TooManyApproverKeys,
)
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from signer.context import Signer
from signer.votes import APPROVER_KEY_MAC, key_content, revoked_name

MAX_KEYS: Final = 8
MAX_CREDENTIAL_ID: Final = 1023
_REGISTER = "SELECT register_approver_key($1, $2, $3)"
_READ = "SELECT * FROM approver_keys WHERE tenant_id = $1 AND id = $2 FOR UPDATE"
_REVOKE = "UPDATE approver_keys SET revoked_at = $3, mac = $4 WHERE tenant_id = $1 AND id = $2"


class KeyRow(NamedTuple):
    """A key as register_approver_key takes it: the SQL type `approver_key`."""

    id: str
    user_id: str
    name: str
    rp_id: str
    credential_id: str
    public_key: bytes
    fingerprint: str
    mac: bytes
    created_at: datetime


async def register(signer: Signer, message: RegisterApproverKey, call: Call[ProvenSession]) -> ApproverKey:
    """Keep a key of the caller's own; nothing counts by it before a rule pins it."""
    tenant, user, key, now = call.caller.tenant, call.caller.user, ids.new_uuid(), clock.now()
    public_key = _public_key(message.public_key)
    _check_credential_id(message.credential_id)
    content = key_content(tenant, key, user, message.rp_id, message.credential_id, public_key, revoked=False)
    row = KeyRow(
        key,
        user,
        message.name,
        message.rp_id,
        message.credential_id,
        public_key,
        fingerprint(public_key),
        signer.sealer.mac(APPROVER_KEY_MAC, tenant, content),
        now,
    )
    shown = ApproverKey(
        id=key,
        user_id=user,
        name=message.name,
        rp_id=message.rp_id,
        credential_id=message.credential_id,
        fingerprint=row.fingerprint,
        status="active",
        created_at=clock.iso(now),
        revoked_at=None,
    )
    if signer.claims.is_revoked(revoked_name(tenant, public_key)):
        raise ApproverKeyRevoked
    async with acting(signer, call) as connection:
        result = await connection.fetchval(_REGISTER, tenant, row, MAX_KEYS)
        if result == "revoked":
            raise ApproverKeyRevoked
        if result == "full":
            raise TooManyApproverKeys
        if result == "taken":
            raise ApproverKeyTaken
        said = {"fingerprint": row.fingerprint, "rpId": row.rp_id, "name": row.name}
        await tell(connection, call, "approver_key.registered", "approver_key", key, **said)
        await remember(connection, call, shown)
    return shown


async def revoke(signer: Signer, message: RevokeApproverKey, call: Call[ProvenSession]) -> ApproverKey:
    """Revoke a key; a revoked one stays as it is."""
    caller = call.caller
    async with acting(signer, call) as connection:
        row = await connection.fetchrow(_READ, caller.tenant, message.key_id)
        if row is None or (str(row["user_id"]) != caller.user and caller.role not in ADMINS):
            raise ApproverKeyAbsent
        revoked_at = row["revoked_at"]
        if revoked_at is None:
            revoked_at = clock.now()
            await _revoke(signer, connection, caller.tenant, row, revoked_at)
            said = {"fingerprint": row["fingerprint"], "userId": str(row["user_id"])}
            await tell(connection, call, "approver_key.revoked", "approver_key", message.key_id, **said)
        shown = _show(row, revoked_at)
        await remember(connection, call, shown)
    return shown


async def _revoke(signer: Signer, connection: Any, tenant: str, row: Any, revoked_at: datetime) -> None:
    key, user = str(row["id"]), str(row["user_id"])
    said = tenant, key, user, row["rp_id"], row["credential_id"], row["public_key"]
    signer.sealer.check_mac(row["mac"], APPROVER_KEY_MAC, tenant, key_content(*said, revoked=False))
    mac = signer.sealer.mac(APPROVER_KEY_MAC, tenant, key_content(*said, revoked=True))
    # Before the write: a key that is put back in the database stays revoked.
    signer.claims.revoke(revoked_name(tenant, row["public_key"]))
    await connection.execute(_REVOKE, tenant, key, revoked_at, mac)


def _show(row: Any, revoked_at: datetime) -> ApproverKey:
    return ApproverKey(
        id=str(row["id"]),
        user_id=str(row["user_id"]),
        name=row["name"],
        rp_id=row["rp_id"],
        credential_id=row["credential_id"],
        fingerprint=row["fingerprint"],
        status="revoked",
        created_at=clock.iso(row["created_at"]),
        revoked_at=clock.iso(revoked_at),
    )


def _public_key(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
        load_key(raw)
    except (binascii.Error, BadPublicKey, ValueError):
        raise BadApproverKey from None
    if base64.b64encode(raw).decode() != text:
        raise BadApproverKey
    return raw


def _check_credential_id(text: str) -> None:
    try:
        raw = from_base64url(text)
    except ValueError:
        raise BadCredentialId from None
    if not 1 <= len(raw) <= MAX_CREDENTIAL_ID:
        raise BadCredentialId
