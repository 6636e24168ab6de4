"""The commands of the scheduler and the operator."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.chains.prices import MAX_DOCUMENT, MAX_SIGNATURE
from custody.identity.scopes import TENANT_WRITE
from custody.kit.described import described
from custody.kit.shapes import AgentId, TenantId
from custody.protocol.command import PLATFORM_KEY, Command, command, refuses
from custody.protocol.common import Resealed
from custody.protocol.refusals import TenantAbsent


class DeletedTenant(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


@command("signer", proofs=PLATFORM_KEY, scope=TENANT_WRITE, audit=("tenant.deleted",))
@refuses(TenantAbsent)
class DeleteTenant(Command[DeletedTenant], frozen=True):
    """Delete a tenant with everything it has."""

    id: TenantId


class LogsSealed(msgspec.Struct, frozen=True):
    """The number of rows that were sealed and that wait still, and of logs that are sealed no more."""

    sealed: int
    waiting: int
    stopped: int


@command("signer", senders=("scheduler",))
class SealCheckpoint(Command[LogsSealed], frozen=True):
    """Give audit rows that wait their places in the sealed logs; a bounded number of them."""


class PricesTaken(msgspec.Struct, frozen=True):
    """The word for why a document was not taken; null where it was."""

    problem: str | None


@command("signer", senders=("scheduler",))
class TakePrices(Command[PricesTaken], frozen=True):
    """Take the prices that the operator's endpoint issued, as they came: the operator's key signed them."""

    body: Annotated[bytes, Meta(max_length=MAX_DOCUMENT)]
    signature: Annotated[str, Meta(max_length=MAX_SIGNATURE)]


class KeyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of the master key, whether this signer's file has it, and how much of each kind it made."""

    version: int
    here: bool
    added_at: str
    begun_at: str | None
    retired_at: str | None
    uses: dict[str, int]


class KeyVersions(msgspec.Struct, frozen=True, tag=True):
    """The answer to `status`: the file, the version that seals, and every version.

    `old_sessions` may hold a refresh token of an older one.
    """

    file: str
    sealing: int
    old_sessions: int
    versions: list[KeyVersion]


class VersionBegun(msgspec.Struct, frozen=True, tag=True):
    """The answer to `prepare` and `begin`: the newest version, whether it began now, and how much is of older ones."""

    version: int
    begun: bool
    waiting: int


class StillOlder(msgspec.Struct, frozen=True, tag=True):
    """The answer to `finish`: how much of each kind an older version still made."""

    version: int
    left: dict[str, int]


class ReadyToRetire(msgspec.Struct, frozen=True, tag=True):
    """The answer to `ready`: nothing but what ends by itself is of a version before this one."""

    version: int


class VersionsRetired(msgspec.Struct, frozen=True, tag=True):
    """The answer to `retire`: the versions that went out of use or out of the file."""

    version: int
    retired: list[int]


Rotation = KeyVersions | VersionBegun | Resealed | StillOlder | ReadyToRetire | VersionsRetired


@command(
    "signer",
    senders=("operator",),
    proofs=PLATFORM_KEY,
    audit=("key.version_added", "key.version_begun", "key.rotated", "key.version_retired"),
)
class RotateKeys(Command[Rotation], frozen=True):
    """Take one step of a key rotation; `step` re-seals one batch and says where the next begins."""

    act: Literal["status", "prepare", "begin", "step", "finish", "ready", "retire"]
    table: str | None = None
    after: Annotated[list[str], Meta(max_length=8)] | None = None
    force: bool = False


class RestoreAccepted(msgspec.Struct, frozen=True):
    """The number of agents with newer rules or signers before, and of these and of the audit logs up to 50 by name.

    `logs` go on from the restored state; `refused` and `stopped` ones do not.
    """

    agents: int
    named: list[str]
    logs: list[str]
    refused: list[str]
    stopped: list[str]
    # Whether orders that it acknowledged are gone.
    orders: bool = False


@command("signer", senders=("operator",), proofs=PLATFORM_KEY, audit=("key.restore_accepted",))
class AcceptRestore(Command[RestoreAccepted], frozen=True):
    """Accept the present state of the database, though this signer has seen a later one."""


class MendedLog(msgspec.Struct, frozen=True):
    """A log that is sealed again, and how many rows were put into its queue, taken out of it, and sealed."""

    log: str
    sealed_already: int
    without_row: int
    queued: int
    sealed: int


class RefusedLog(msgspec.Struct, frozen=True):
    """A log that stays as it was, and why."""

    log: str
    reason: str


class LogsMended(msgspec.Struct, frozen=True):
    """The outcome for each log."""

    mended: list[MendedLog]
    refused: list[RefusedLog]


@command("signer", senders=("operator",), proofs=PLATFORM_KEY, audit=("audit.mended",))
class MendAuditLogs(Command[LogsMended], frozen=True):
    """Put the queues of these audit logs in order, or of all that are stopped."""

    logs: Annotated[list[TenantId], Meta(min_length=1, max_length=100)] | None = None


class QuorumBroken(msgspec.Struct, frozen=True):
    """From when on the approval quorums of an agent's rules count as disabled; null where that was cancelled."""

    agent: str
    effective_at: str | None


@command("signer", senders=("operator",), proofs=PLATFORM_KEY, audit=("quorum.broken", "policy.replaced"))
class BreakQuorum(Command[QuorumBroken], frozen=True):
    """Disable the approval quorums of an agent's present rules, from 24 hours on; or cancel that."""

    tenant: TenantId
    agent: AgentId
    cancel: bool = False
