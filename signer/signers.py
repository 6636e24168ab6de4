"""Signers of an agent: who may authorise its orders besides the agent itself."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import UNSET

from custody.identity.authority import MAX_SIGNERS, SignerRow, microseconds
from custody.identity.roles import ADMINS
from custody.kit import ids, tokens
from custody.kit.instants import read_instant
from custody.protocol.signer.authority import (
    AgentSigner,
    ChangeSigner,
    CreateSigner,
    NewSigner,
    RevokeSigner,
    SignerCreated,
)
from custody.protocol.signer.order_refusals import AuthorityTampered
from custody.protocol.signer.refusals import (
    BadExpiry,
    BadNotBefore,
    BadPublicKey,
    CredentialRefused,
    SignerAbsent,
    SignerRevoked,
    TooManySigners,
    UnknownPolicy,
    UnknownSubject,
)
from custody.worker.acts import remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import Context
from signer.authority_set import (
    MAX_REVOKED,
    AuthorityChange,
    changing,
    ids_text,
    metadata_text,
    permissions_text,
    written_by,
)
from signer.context import Signer
from signer.p256 import read_spki

CREDENTIAL: Final = "credential"
_ADD = (
    "INSERT INTO signers (tenant_id, id, agent_id, signer_type, subject_type, subject_id, key_type, public_key, "
    "address, chain_family, label, permissions, policy_ids, metadata, has_credential, not_before, "
    "expires_at, status) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 'active') RETURNING *"
)
_FIND = "SELECT * FROM signers WHERE tenant_id = $1 AND agent_id = $2 AND id = $3"
_CHANGE = (
    "UPDATE signers SET label = $3, metadata = $4, address = $5, chain_family = $6, permissions = $7, policy_ids = $8, "
    "status = $9, signer_type = $10, not_before = $11, expires_at = $12, updated_at = service_now() "
    "WHERE tenant_id = $1 AND id = $2 RETURNING *"
)
_REVOKE = (
    "UPDATE signers SET status = 'revoked', has_credential = false, revoked_at = service_now(), "
    "updated_at = service_now() WHERE tenant_id = $1 AND id = $2 RETURNING *"
)
_FORGET = (
    "DELETE FROM signers WHERE tenant_id = $1 AND id IN (SELECT id FROM signers WHERE tenant_id = $1 AND agent_id = $2 "
    "AND status = 'revoked' ORDER BY revoked_at DESC, id OFFSET $3)"
)
_KEEP = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'signer', $2, $3, $4, $5)"
)
_DESTROY = "DELETE FROM sealed WHERE tenant_id = $1 AND owner_kind = 'signer' AND owner = $2"
_RULES = "SELECT array_agg(id) FROM policy_rules WHERE tenant_id = $1 AND agent_id = $2"
_NOW = "SELECT service_now()"
_MEMBER = "SELECT EXISTS (SELECT FROM memberships WHERE tenant_id = $1 AND user_id = $2)"


async def create(signer: Signer, message: CreateSigner, call: Call[ProvenSession]) -> SignerCreated:
    """A new signer; its credential is shown in this answer alone."""
    wanted = message.signer
    key = _public_key(wanted)
    permissions, metadata = permissions_text(wanted.permissions), metadata_text(wanted.metadata)
    secret = tokens.new_api_key("svs") if wanted.issue_credential else None
    async with changing(signer, call, message.agent, written=written_by(message)) as change:
        if len(change.signers) >= MAX_SIGNERS:
            raise TooManySigners
        await _check_subject(change, wanted)
        policies = await _policies_text(change, wanted.policy_ids)
        times = _check_order(_not_before(wanted.not_before), await _expiry(change, wanted.expires_at))
        row = await change.connection.fetchrow(
            _ADD,
            change.tenant,
            ids.new_uuid(),
            message.agent,
            wanted.signer_type,
            wanted.subject_type,
            wanted.subject_id,
            wanted.key_type,
            key,
            wanted.address,
            wanted.chain_family,
            wanted.label,
            permissions,
            policies,
            metadata,
            secret is not None,
            *times,
        )
        change.put(_sealed_row(row))
        if secret is not None:
            place = credential_place(change.tenant, str(row["id"]), change.incarnation)
            blob = signer.sealer.seal(secret.encode(), place)
            await change.connection.execute(
                _KEEP, change.tenant, str(row["id"]), CREDENTIAL, signer.sealer.key_version, blob
            )
        made = SignerCreated(**msgspec.structs.asdict(AgentSigner.of(row)), credential_secret=secret)
        said = {"agentId": message.agent, "signerType": wanted.signer_type, "keyType": wanted.key_type}
        await tell(change.connection, call, "signer.created", "signer", made.id, **said)
        await remember(change.connection, call, None if secret is not None else made)
    return made


async def change(signer: Signer, message: ChangeSigner, call: Call[ProvenSession]) -> AgentSigner:
    """Change what people call it, or what it may authorise."""
    wanted = message.change
    if wanted.of_authority:
        call.caller.need(ADMINS, "signers")
    async with changing(signer, call, message.agent, written=written_by(message)) as change:
        row = await _living(change, message.signer)
        # What was opened under its seal, not what is read now: a row that changed in between is never sealed.
        known = change.signers[message.signer]
        times = _check_order(
            _time_of(known.not_before) if wanted.not_before is UNSET else _not_before(wanted.not_before),
            _time_of(known.expires_at) if wanted.expires_at is UNSET else await _expiry(change, wanted.expires_at),
        )
        policies = known.policy_ids if wanted.policy_ids is UNSET else await _policies_text(change, wanted.policy_ids)
        new = known._replace(
            permissions=known.permissions if wanted.permissions is UNSET else permissions_text(wanted.permissions),
            policy_ids=policies,
            status=known.status if wanted.status is UNSET else wanted.status,
            signer_type=known.signer_type if wanted.signer_type is UNSET else wanted.signer_type,
            not_before=_sealed_time(times[0]),
            expires_at=_sealed_time(times[1]),
        )
        row = await change.connection.fetchrow(
            _CHANGE,
            change.tenant,
            message.signer,
            row["label"] if wanted.label is UNSET else wanted.label,
            row["metadata"] if wanted.metadata is UNSET else metadata_text(wanted.metadata),
            row["address"] if wanted.address is UNSET else wanted.address,
            row["chain_family"] if wanted.chain_family is UNSET else wanted.chain_family,
            new.permissions,
            new.policy_ids,
            new.status,
            new.signer_type,
            *times,
        )
        if _sealed_row(row) != new:
            raise AuthorityTampered
        change.put(new)
        changed = AgentSigner.of(row)
        fields = [field for field, value in msgspec.structs.asdict(wanted).items() if value is not UNSET]
        await tell(
            change.connection, call, "signer.changed", "signer", changed.id, agentId=message.agent, fields=fields
        )
        await remember(change.connection, call, changed)
    return changed


async def revoke(signer: Signer, message: RevokeSigner, call: Call[ProvenSession]) -> AgentSigner:
    """End it for good. A quorum that names it counts it no more."""
    async with changing(signer, call, message.agent, written=0) as change:
        row = await _find(change, message.signer)
        if row["status"] != "revoked":
            row = await change.connection.fetchrow(_REVOKE, change.tenant, message.signer)
            await change.connection.execute(_DESTROY, change.tenant, message.signer)
            await change.connection.execute(_FORGET, change.tenant, message.agent, MAX_REVOKED)
            change.drop(message.signer)
            await tell(change.connection, call, "signer.revoked", "signer", message.signer, agentId=message.agent)
        revoked = AgentSigner.of(row)
        await remember(change.connection, call, revoked)
    return revoked


def credential_place(tenant: str, signer: str, incarnation: str) -> Context:
    """Name where the credential of a signer belongs."""
    return Context(tenant, "signer", signer, CREDENTIAL, incarnation)


async def _find(change: AuthorityChange, signer: str) -> Any:
    row = await change.connection.fetchrow(_FIND, change.tenant, change.agent, signer)
    if row is None:
        raise SignerAbsent
    return row


async def _living(change: AuthorityChange, signer: str) -> Any:
    row = await _find(change, signer)
    if row["status"] == "revoked":
        raise SignerRevoked
    return row


def _public_key(wanted: NewSigner) -> bytes | None:
    if wanted.key_type == "hmac":
        if wanted.public_key is not None:
            raise BadPublicKey("publicKey: only signers of keyType p256 have one.", fields=["publicKey"])
        return None
    if wanted.issue_credential:
        raise CredentialRefused(fields=["issueCredential"])
    spki = read_spki(wanted.public_key or "")
    if spki is None:
        raise BadPublicKey(fields=["publicKey"])
    return spki


async def _check_subject(change: AuthorityChange, wanted: NewSigner) -> None:
    if wanted.subject_type != "user":
        return
    if not ids.is_uuid(wanted.subject_id) or not await change.connection.fetchval(
        _MEMBER, change.tenant, wanted.subject_id
    ):
        raise UnknownSubject(fields=["subjectId"])


async def _policies_text(change: AuthorityChange, policy_ids: list[str]) -> str:
    known = await change.connection.fetchval(_RULES, change.tenant, change.agent) or []
    for policy in policy_ids:
        if policy not in known:
            raise UnknownPolicy(f"policyIds: no rule of this agent has the id {policy}.", fields=["policyIds"])
    return ids_text(policy_ids)


def _sealed_row(row: Any) -> SignerRow:
    return SignerRow(
        str(row["id"]),
        row["signer_type"],
        row["subject_type"],
        row["subject_id"],
        row["key_type"],
        b64encode(row["public_key"]).decode() if row["public_key"] is not None else None,
        row["permissions"],
        row["policy_ids"],
        row["status"],
        _sealed_time(row["not_before"]),
        _sealed_time(row["expires_at"]),
    )


def _not_before(text: str | None) -> datetime | None:
    """The time as it is stored, sealed and shown: in milliseconds."""
    if text is None:
        return None
    if (moment := read_instant(text)) is None:
        raise BadNotBefore(fields=["notBefore"])
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


async def _expiry(change: AuthorityChange, text: str | None) -> datetime | None:
    """The same of a time that is still to come."""
    if text is None:
        return None
    moment = read_instant(text)
    if moment is None or moment <= await change.connection.fetchval(_NOW):
        raise BadExpiry(fields=["expiresAt"])
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _check_order(not_before: datetime | None, expires_at: datetime | None) -> tuple[datetime | None, datetime | None]:
    if not_before is not None and expires_at is not None and not_before >= expires_at:
        raise BadNotBefore(fields=["notBefore"])
    return not_before, expires_at


def _sealed_time(moment: datetime | None) -> int | None:
    return None if moment is None else microseconds(moment)


def _time_of(sealed: int | None) -> datetime | None:
    return None if sealed is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=sealed)
