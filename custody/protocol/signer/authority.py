"""Signers and key quorums of agents: who else must agree before a wallet signs."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.authority import MAX_MEMBERS, KeyType, SignerType, Standing, SubjectType
from custody.identity.quorums import QuorumCycle, QuorumTooDeep
from custody.identity.roles import ADMINS
from custody.kit import clock
from custody.kit.described import Id, Instant, described
from custody.kit.errors import DailyQuotaExceeded
from custody.kit.shapes import AgentId, DisplayName, HashOrAddress, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving, MfaRequired
from custody.protocol.signer import order_refusals, refusals

ChainFamily = Literal["evm", "solana"]
# Words and ids that are looked up; what is none of those known is refused by name.
Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+\Z")]
PolicyId = Annotated[str, Meta(min_length=1, max_length=128)]
SubjectId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[\x21-\x7e]+\Z")]
Words = Annotated[list[Word], Meta(max_length=32)]
PolicyIds = Annotated[list[PolicyId], Meta(max_length=50)]
Members = Annotated[list[Uuid], Meta(max_length=MAX_MEMBERS)]
SignerTime = Annotated[str, Meta(min_length=20, max_length=40)]
Settable = Literal["active", "paused"]

_TYPE = described("Type of the signer. A `quorum_member` authorises only inside a key quorum.")
_SUBJECT_TYPE = described("Type of the signer's subject.")
_SUBJECT = described("Id of the user, wallet or key; for `external`, a name of your own.")
_KEY_TYPE = described("Key type: `hmac` with a credential that the service makes, `p256` with its own key.")
_PUBLIC_KEY = described("The P-256 key: standard base64 of its SubjectPublicKeyInfo, the point uncompressed.")
_ADDRESS = described("An address that belongs to the signer; shown, and judged by nobody.")
_FAMILY = described("The family of chains of that address.")
_LABEL = described("A name for people.")
_PERMISSIONS = described("Permissions; an empty list authorises nothing.")
_POLICY_IDS = described("Rules of this agent that also bind what this signer authorises, even where they are disabled.")
_METADATA = described("Anything of yours, at most 4 KiB.")
_NAME = described("A name for people.")
_THRESHOLD = described("Number of members that must agree.")
_MEMBERS = described("The signers that count.")
_CHILDREN = described("Key quorums that count as one member each, once they are met by themselves.")
_NOT_BEFORE = described("Time from which on it authorises; null: at once.", format="date-time")
_EXPIRES = described("Time from which on it authorises nothing any more; null: never.", format="date-time")
_STATUS = described("`paused`: it authorises nothing until it is active again.")
_STANDING = described("`active`, `paused`, or `revoked` for good.")


class NewSigner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A signer to be created."""

    signer_type: Annotated[SignerType, _TYPE]
    subject_type: Annotated[SubjectType, _SUBJECT_TYPE]
    subject_id: Annotated[SubjectId, _SUBJECT]
    key_type: Annotated[KeyType, _KEY_TYPE] = "hmac"
    public_key: Annotated[Annotated[str, Meta(max_length=256)] | None, _PUBLIC_KEY] = None
    address: Annotated[HashOrAddress | None, _ADDRESS] = None
    chain_family: Annotated[ChainFamily | None, _FAMILY] = None
    label: Annotated[DisplayName | None, _LABEL] = None
    permissions: Annotated[Words, _PERMISSIONS] = []
    policy_ids: Annotated[PolicyIds, _POLICY_IDS] = []
    metadata: Annotated[dict[str, Any], _METADATA] = {}
    not_before: Annotated[SignerTime | None, _NOT_BEFORE] = None
    expires_at: Annotated[SignerTime | None, _EXPIRES] = None
    issue_credential: Annotated[
        bool, described("Of `hmac` signers: return a credential here, and only here; without it one is of no use.")
    ] = False


class SignerChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Changes of a signer; omitted fields stay. All but label, metadata and address need a second factor."""

    label: Annotated[DisplayName | UnsetType | None, _LABEL] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, _METADATA] = UNSET
    address: Annotated[HashOrAddress | UnsetType | None, _ADDRESS] = UNSET
    chain_family: Annotated[ChainFamily | UnsetType | None, _FAMILY] = UNSET
    permissions: Annotated[Words | UnsetType, _PERMISSIONS] = UNSET
    policy_ids: Annotated[PolicyIds | UnsetType, _POLICY_IDS] = UNSET
    status: Annotated[Settable | UnsetType, _STATUS] = UNSET
    signer_type: Annotated[SignerType | UnsetType, _TYPE] = UNSET
    not_before: Annotated[SignerTime | UnsetType | None, _NOT_BEFORE] = UNSET
    expires_at: Annotated[SignerTime | UnsetType | None, _EXPIRES] = UNSET

    @property
    def of_authority(self) -> bool:
        """True if it changes what the signer may authorise."""
        judged = (self.permissions, self.policy_ids, self.status, self.signer_type, self.not_before, self.expires_at)
        return any(one is not UNSET for one in judged)


class AgentSigner(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A signer of an agent, without its credential."""

    id: Annotated[Id, described("The signer's id, for `X-Service-Signer-Id`.")]
    agent_id: Annotated[str, described("The agent.")]
    signer_type: Annotated[SignerType, _TYPE]
    subject_type: Annotated[SubjectType, _SUBJECT_TYPE]
    subject_id: Annotated[str, _SUBJECT]
    key_type: Annotated[KeyType, _KEY_TYPE]
    public_key: Annotated[str | None, _PUBLIC_KEY]
    address: Annotated[str | None, _ADDRESS]
    chain_family: Annotated[ChainFamily | None, _FAMILY]
    label: Annotated[str | None, _LABEL]
    permissions: Annotated[list[str], _PERMISSIONS]
    policy_ids: Annotated[list[str], _POLICY_IDS]
    metadata: Annotated[dict[str, Any], _METADATA]
    has_credential: Annotated[bool, described("True if it has a credential, which is shown only at creation.")]
    status: Annotated[Standing, _STANDING]
    not_before: Annotated[Instant | None, described("Time from which on it authorises; null: at once.")]
    expires_at: Annotated[
        Instant | None,
        described("Time from which on it authorises nothing any more, whatever its status; null: never."),
    ]
    created_at: Annotated[Instant, described("Time of creation.")]
    updated_at: Annotated[Instant, described("Time of the last change.")]
    revoked_at: Annotated[Instant | None, described("Time of revocation.")]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A row of `signers`."""
        return msgspec.convert(_fields_of(row), cls)


class SignerCreated(AgentSigner, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A new signer; its credential is returned only here."""

    credential_secret: Annotated[
        str | None, described("The credential, if `issueCredential` asked for one; it is returned only here.")
    ] = None

    def __repr__(self) -> str:
        return f"SignerCreated({self.id})"


class NewQuorum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A key quorum to be created."""

    name: Annotated[DisplayName, _NAME]
    threshold: Annotated[int, _THRESHOLD]
    member_signer_ids: Annotated[Members, _MEMBERS]
    member_quorum_ids: Annotated[Members, _CHILDREN] = []
    permissions: Annotated[Words, _PERMISSIONS]
    metadata: Annotated[dict[str, Any], _METADATA] = {}


class QuorumChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Changes of a key quorum; omitted fields stay. All but name and metadata need a second factor."""

    name: Annotated[DisplayName | UnsetType, _NAME] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, _METADATA] = UNSET
    threshold: Annotated[int | UnsetType, _THRESHOLD] = UNSET
    member_signer_ids: Annotated[Members | UnsetType, _MEMBERS] = UNSET
    member_quorum_ids: Annotated[Members | UnsetType, _CHILDREN] = UNSET
    permissions: Annotated[Words | UnsetType, _PERMISSIONS] = UNSET
    status: Annotated[Settable | UnsetType, _STATUS] = UNSET

    @property
    def of_authority(self) -> bool:
        """True if it changes what the quorum may authorise."""
        judged = (self.threshold, self.member_signer_ids, self.member_quorum_ids, self.permissions, self.status)
        return any(one is not UNSET for one in judged)


class KeyQuorum(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A key quorum of an agent."""

    id: Annotated[Id, described("The quorum's id, for `X-Service-Key-Quorum-Id`.")]
    agent_id: Annotated[str, described("The agent.")]
    name: Annotated[str, _NAME]
    threshold: Annotated[int, _THRESHOLD]
    member_signer_ids: Annotated[list[str], _MEMBERS]
    member_quorum_ids: Annotated[list[str], _CHILDREN]
    permissions: Annotated[list[str], _PERMISSIONS]
    metadata: Annotated[dict[str, Any], _METADATA]
    status: Annotated[Standing, _STANDING]
    created_at: Annotated[Instant, described("Time of creation.")]
    updated_at: Annotated[Instant, described("Time of the last change.")]
    revoked_at: Annotated[Instant | None, described("Time of revocation.")]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A row of `key_quorums`."""
        return msgspec.convert(_fields_of(row), cls)


@command("signer", proofs=SESSION, roles=ADMINS, mfa="signers", audit=("signer.created",))
@refuses(AdministrationMoving, order_refusals.AuthorityTampered, refusals.CredentialRefused, DailyQuotaExceeded)
@refuses(refusals.BadExpiry, refusals.BadNotBefore)
@refuses(refusals.MetadataTooLarge, refusals.TooManySigners, refusals.UnknownPermission, refusals.UnknownSubject)
class CreateSigner(Command[SignerCreated], frozen=True):
    """Create a signer of an agent; its credential, if it has one, is shown in this answer alone."""

    agent: AgentId
    signer: NewSigner


@command("signer", proofs=SESSION, roles=ADMINS, audit=("signer.changed",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, order_refusals.AuthorityTampered, DailyQuotaExceeded)
@refuses(
    refusals.BadExpiry,
    refusals.BadNotBefore,
    refusals.MetadataTooLarge,
    MfaRequired,
    refusals.SignerAbsent,
    refusals.SignerRevoked,
)
@refuses(refusals.UnknownPermission, refusals.UnknownPolicy)
class ChangeSigner(Command[AgentSigner], frozen=True):
    """Change a signer; what it may authorise only with a recent second factor."""

    agent: AgentId
    signer: Uuid
    change: SignerChange


@command("signer", proofs=SESSION, roles=ADMINS, mfa="signers", audit=("signer.revoked",))
@refuses(AdministrationMoving, order_refusals.AuthorityTampered, refusals.SignerAbsent)
class RevokeSigner(Command[AgentSigner], frozen=True):
    """Revoke a signer for good, and destroy its credential; again it changes nothing."""

    agent: AgentId
    signer: Uuid


@command("signer", proofs=SESSION, roles=ADMINS, mfa="signers", audit=("quorum.created",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, order_refusals.AuthorityTampered, refusals.BadThreshold)
@refuses(DailyQuotaExceeded, refusals.MetadataTooLarge, QuorumCycle, QuorumTooDeep, refusals.TooManyQuorums)
@refuses(refusals.UnknownMember, refusals.UnknownPermission)
class CreateQuorum(Command[KeyQuorum], frozen=True):
    """Create a key quorum of an agent."""

    agent: AgentId
    quorum: NewQuorum


@command("signer", proofs=SESSION, roles=ADMINS, audit=("quorum.changed",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, order_refusals.AuthorityTampered, refusals.BadThreshold)
@refuses(DailyQuotaExceeded, refusals.MetadataTooLarge, MfaRequired, refusals.QuorumAbsent, QuorumCycle)
@refuses(refusals.QuorumRevoked, QuorumTooDeep, refusals.UnknownMember, refusals.UnknownPermission)
class ChangeQuorum(Command[KeyQuorum], frozen=True):
    """Change a key quorum; what it may authorise only with a recent second factor."""

    agent: AgentId
    quorum: Uuid
    change: QuorumChange


@command("signer", proofs=SESSION, roles=ADMINS, mfa="signers", audit=("quorum.revoked",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, order_refusals.AuthorityTampered, refusals.QuorumAbsent)
class RevokeQuorum(Command[KeyQuorum], frozen=True):
    """Revoke a key quorum for good; again it changes nothing."""

    agent: AgentId
    quorum: Uuid


_NAMES = {"members": "memberSignerIds", "children": "memberQuorumIds"}
_JSON = frozenset({"permissions", "policy_ids", "metadata", "members", "children"})


def _fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_NAMES.get(column, _camel(column)): _value(column, value) for column, value in row.items()}


def _camel(column: str) -> str:
    first, *rest = column.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(column: str, value: Any) -> Any:
    if column in _JSON:
        return msgspec.json.decode(value)
    if isinstance(value, datetime):
        return clock.iso(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    # Ids are UUIDs, of which Postgres' driver has a type of its own.
    return value if value is None or isinstance(value, str | int) else str(value)
