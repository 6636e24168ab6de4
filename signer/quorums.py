"""Key quorums of an agent: how many of which signers must agree."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from custody.identity.authority import MAX_QUORUMS, QuorumRow
from custody.identity.quorums import check_shape
from custody.identity.roles import ADMINS
from custody.kit import ids
from custody.protocol.signer.authority import ChangeQuorum, CreateQuorum, KeyQuorum, RevokeQuorum
from custody.protocol.signer.refusals import BadThreshold, QuorumAbsent, QuorumRevoked, TooManyQuorums, UnknownMember
from custody.worker.acts import remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from signer.authority_seals import quorum_of
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
from signer.intents.claims import Claim, StaleState

_ADD = (
    "INSERT INTO key_quorums (tenant_id, id, agent_id, name, threshold, members, children, permissions, metadata, "
    "status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'active') RETURNING *"
)
_FIND = "SELECT * FROM key_quorums WHERE tenant_id = $1 AND agent_id = $2 AND id = $3"
_CHANGE = (
    "UPDATE key_quorums SET name = $3, metadata = $4, threshold = $5, members = $6, children = $7, permissions = $8, "
    "status = $9, updated_at = service_now() WHERE tenant_id = $1 AND id = $2 RETURNING *"
)
_REVOKE = (
    "UPDATE key_quorums SET status = 'revoked', revoked_at = service_now(), updated_at = service_now() "
    "WHERE tenant_id = $1 AND id = $2 RETURNING *"
)
_FORGET = (
    "DELETE FROM key_quorums WHERE tenant_id = $1 AND id IN (SELECT id FROM key_quorums WHERE tenant_id = $1 "
    "AND agent_id = $2 AND status = 'revoked' ORDER BY revoked_at DESC, id OFFSET $3)"
)
_words = msgspec.json.Decoder(list[str]).decode


async def create(signer: Signer, message: CreateQuorum, call: Call[ProvenSession]) -> KeyQuorum:
    """A new key quorum of living signers and quorums."""
    return await create_claiming(signer, message, call, None)


async def create_claiming(
    signer: Signer, message: CreateQuorum, call: Call[ProvenSession], claim: Claim | None
) -> KeyQuorum:
    """The same; of an intent, which is claimed with it."""
    wanted = message.quorum
    permissions, metadata = permissions_text(wanted.permissions), metadata_text(wanted.metadata)
    async with changing(signer, call, message.agent, written=written_by(message)) as change:
        _is_current(change, claim)
        if len(change.quorums) >= MAX_QUORUMS:
            raise TooManyQuorums
        new = QuorumRow(
            ids.new_uuid(),
            wanted.threshold,
            ids_text(wanted.member_signer_ids),
            ids_text(wanted.member_quorum_ids),
            permissions,
            "active",
        )
        _check(change, new, wanted.member_signer_ids, wanted.member_quorum_ids)
        row = await change.connection.fetchrow(
            _ADD,
            change.tenant,
            new.id,
            message.agent,
            wanted.name,
            new.threshold,
            new.members,
            new.children,
            permissions,
            metadata,
        )
        change.put(new)
        made = KeyQuorum.of(row)
        said = {"agentId": message.agent, "threshold": new.threshold}
        await tell(change.connection, call, "quorum.created", "key_quorum", made.id, **said)
        await _end(change, call, made, claim)
    return made


async def change(signer: Signer, message: ChangeQuorum, call: Call[ProvenSession]) -> KeyQuorum:
    """Change what people call it, or what it may authorise and by whom."""
    return await change_claiming(signer, message, call, None)


async def change_claiming(
    signer: Signer, message: ChangeQuorum, call: Call[ProvenSession], claim: Claim | None
) -> KeyQuorum:
    """The same; of an intent, which is claimed with it."""
    wanted = message.change
    if wanted.of_authority:
        call.caller.need(ADMINS, "signers")
    async with changing(signer, call, message.agent, written=written_by(message)) as change:
        _is_current(change, claim)
        row = await _living(change, message.quorum)
        # What was opened under its seal, not what is read now: a row that changed in between is never sealed.
        new = _change(change.quorums[message.quorum], message)
        # Members that were there and are revoked since may stay: they count no more.
        signers = [] if wanted.member_signer_ids is UNSET else wanted.member_signer_ids
        quorums = [] if wanted.member_quorum_ids is UNSET else wanted.member_quorum_ids
        if wanted.of_authority:
            _check(change, new, signers, quorums)
        row = await change.connection.fetchrow(
            _CHANGE,
            change.tenant,
            new.id,
            row["name"] if wanted.name is UNSET else wanted.name,
            row["metadata"] if wanted.metadata is UNSET else metadata_text(wanted.metadata),
            new.threshold,
            new.members,
            new.children,
            new.permissions,
            new.status,
        )
        change.put(new)
        changed = KeyQuorum.of(row)
        fields = [field for field, value in msgspec.structs.asdict(wanted).items() if value is not UNSET]
        said = {"agentId": message.agent, "fields": fields}
        await tell(change.connection, call, "quorum.changed", "key_quorum", changed.id, **said)
        await _end(change, call, changed, claim)
    return changed


async def revoke(signer: Signer, message: RevokeQuorum, call: Call[ProvenSession]) -> KeyQuorum:
    """End it for good. A quorum that has it as a member counts it no more."""
    return await revoke_claiming(signer, message, call, None)


async def revoke_claiming(
    signer: Signer, message: RevokeQuorum, call: Call[ProvenSession], claim: Claim | None
) -> KeyQuorum:
    """The same; of an intent, which is claimed with it."""
    async with changing(signer, call, message.agent, written=0) as change:
        _is_current(change, claim)
        row = await _find(change, message.quorum)
        if row["status"] != "revoked":
            row = await change.connection.fetchrow(_REVOKE, change.tenant, message.quorum)
            await change.connection.execute(_FORGET, change.tenant, message.agent, MAX_REVOKED)
            change.drop(message.quorum)
            await tell(change.connection, call, "quorum.revoked", "key_quorum", message.quorum, agentId=message.agent)
        revoked = KeyQuorum.of(row)
        await _end(change, call, revoked, claim)
    return revoked


def _is_current(change: AuthorityChange, claim: Claim | None) -> None:
    """Raise StaleState where an intent was authorised against another set."""
    if claim is not None and change.version != claim.version + 1:
        raise StaleState


async def _end(change: AuthorityChange, call: Call[ProvenSession], quorum: KeyQuorum, claim: Claim | None) -> None:
    """Keep the answer; of an intent, claim it, which keeps its own."""
    if claim is not None:
        await claim.claimed(change.connection, {"status": quorum.status, "quorumId": quorum.id})
    else:
        await remember(change.connection, call, quorum)


def _change(known: QuorumRow, message: ChangeQuorum) -> QuorumRow:
    wanted = message.change
    return QuorumRow(
        message.quorum,
        known.threshold if wanted.threshold is UNSET else wanted.threshold,
        known.members if wanted.member_signer_ids is UNSET else ids_text(wanted.member_signer_ids),
        known.children if wanted.member_quorum_ids is UNSET else ids_text(wanted.member_quorum_ids),
        known.permissions if wanted.permissions is UNSET else permissions_text(wanted.permissions),
        known.status if wanted.status is UNSET else wanted.status,
    )


def _check(change: AuthorityChange, new: QuorumRow, signers: Sequence[str], quorums: Sequence[str]) -> None:
    """Raise unless its members are there, its threshold can be met, and no quorum contains itself or is too deep."""
    for member in signers:
        if member not in change.signers:
            raise UnknownMember(f"memberSignerIds: {member} is no living signer.", fields=["memberSignerIds"])
    for child in quorums:
        if child not in change.quorums and child != new.id:
            raise UnknownMember(f"memberQuorumIds: {child} is no living key quorum.", fields=["memberQuorumIds"])
    if not 1 <= new.threshold <= len(_words(new.members)) + len(_words(new.children)):
        raise BadThreshold(fields=["threshold"])
    rows = change.quorums | {new.id: new}
    check_shape({row.id: quorum_of(row) for row in rows.values()})


async def _find(change: AuthorityChange, quorum: str) -> Any:
    row = await change.connection.fetchrow(_FIND, change.tenant, change.agent, quorum)
    if row is None:
        raise QuorumAbsent
    return row


async def _living(change: AuthorityChange, quorum: str) -> Any:
    row = await _find(change, quorum)
    if row["status"] == "revoked":
        raise QuorumRevoked
    return row
