"""Approvers' keys: by which people vote on orders and on looser policies."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.identity.roles import READERS
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import ApproverRpId, DisplayName, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving
from custody.protocol.signer import refusals

_RP_ID = "The rp id that the key was made for: `approver.custody.localhost`, or `localhost` for browsers without it."


class ApproverKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A key by which a person votes; a rule pins it by its fingerprint."""

    id: Annotated[Id, described("The key's id.")]
    user_id: Annotated[Id, described("The person whose key it is.")]
    name: Annotated[str, described("The person's name for it.")]
    rp_id: Annotated[ApproverRpId, described(_RP_ID)]
    credential_id: Annotated[str, described("The authenticator's id of the key, in base64url.")]
    fingerprint: Annotated[
        str, described("SHA-256 of the public key's SPKI, in hex. Compare it outside the service before you pin it.")
    ]
    status: Annotated[Literal["active", "revoked"], described("State of the key; votes by a revoked one do not count.")]
    created_at: Annotated[Instant, described("Time of registration.")]
    revoked_at: Annotated[Instant | None, described("Time of revocation.")]


@command("signer", proofs=SESSION, roles=READERS, mfa="approvals", audit=("approver_key.registered",))
@refuses(AdministrationMoving, refusals.ApproverKeyRevoked, refusals.ApproverKeyTaken, refusals.BadApproverKey)
@refuses(refusals.BadCredentialId, refusals.TooManyApproverKeys)
class RegisterApproverKey(Command[ApproverKey], frozen=True):
    """Keep a key by which the person votes; it counts once a rule pins its fingerprint."""

    name: DisplayName
    rp_id: ApproverRpId
    credential_id: Annotated[str, Meta(min_length=2, max_length=1364, pattern=r"^[A-Za-z0-9_-]+\Z")]
    public_key: Annotated[str, Meta(min_length=124, max_length=124, pattern=r"^[A-Za-z0-9+/]+={0,2}\Z")]


@command("signer", proofs=SESSION, roles=READERS, mfa="approvals", audit=("approver_key.revoked",))
@refuses(AdministrationMoving, refusals.ApproverKeyAbsent)
class RevokeApproverKey(Command[ApproverKey], frozen=True):
    """Revoke a key of one's own, or as an owner or admin any of the tenant; votes by it count no more."""

    key_id: Uuid
