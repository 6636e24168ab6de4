"""One change of an agent's signers and quorums: opened, checked, changed, sealed again, in one transaction.

The agent's row goes first, under its next `ledger_version`: an order that is being judged is judged again, so nothing
is signed by an authority that was gone before its revocation was answered.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, get_args

import msgspec

from custody.identity.authority import Permission, QuorumRow, SignerRow, StoredAuthority
from custody.kit.logs import logger
from custody.protocol.command import Command
from custody.protocol.signer.order_refusals import AgentAbsent, AuthorityTampered
from custody.protocol.signer.refusals import MetadataTooLarge, UnknownPermission
from custody.worker.acts import acting
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenSession
from custody.worker.sealing import Tampered
from signer.authority_seals import stored_of
from signer.context import Signer
from signer.rollback_journal import RolledBack

log = logger(__name__)
MAX_METADATA_BYTES: Final = 4096
# Revoked ones stay listed, the newest of an agent.
MAX_REVOKED: Final = 256
PERMISSIONS: Final = frozenset(get_args(Permission))
# Beside what was sent: the rest of the row, its head, its credential, its row of the audit log.
ROW_BYTES: Final = 2048
_NEXT = (
    "UPDATE agents SET ledger_version = ledger_version + 1, authority_version = authority_version + 1, "
    "day_orders = CASE WHEN day = utc_day() THEN day_orders ELSE 0 END, "
    "day_bytes = CASE WHEN day = utc_day() THEN day_bytes ELSE 0 END + $3, day = utc_day() "
    "WHERE tenant_id = $1 AND id = $2 RETURNING incarnation, authority_version"
)
_READ = "SELECT authority_read($1, $2)"
_SEAL = (
    "INSERT INTO authority_heads (tenant_id, agent_id, version, count, mac) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (tenant_id, agent_id) DO UPDATE SET version = excluded.version, count = excluded.count, "
    "mac = excluded.mac"
)
_json = msgspec.json.Encoder(order="deterministic").encode


class AuthorityChange:
    """The living rows of an agent, as they will be sealed; who changes a row changes it here too."""

    def __init__(
        self, connection: Any, tenant: str, agent: str, incarnation: str, version: int, stored: StoredAuthority
    ) -> None:
        self.connection = connection
        # Under which the set is sealed when this change ends.
        self.version = version
        self.tenant = tenant
        self.agent = agent
        self.incarnation = incarnation
        self.signers = {row.id: row for row in stored.signers}
        self.quorums = {row.id: row for row in stored.quorums}

    def put(self, row: SignerRow | QuorumRow) -> None:
        """Add a living row, or change it."""
        if isinstance(row, SignerRow):
            self.signers[row.id] = row
        else:
            self.quorums[row.id] = row

    def drop(self, row_id: str) -> None:
        """Take a row out of the set, for it is revoked."""
        self.signers.pop(row_id, None)
        self.quorums.pop(row_id, None)


@asynccontextmanager
async def changing(
    signer: Signer, call: Call[ProvenSession], agent: str, *, written: int
) -> AsyncIterator[AuthorityChange]:
    """The set of an agent, checked; what it has become when the block ends is sealed and committed with the block.

    A set that is not whole, ours and current is never sealed again: AuthorityTampered. `written` counts to the
    tenant's bytes of today, with a quarter more than others have: who uses up a quota can still be stopped.
    """
    tenant = call.caller.tenant
    await signer.quotas.know(tenant)
    with signer.quotas.hold(tenant, spare=True, bytes_per_day=written) as held:
        async with _sealing(signer, call, agent, written) as change:
            yield change
        held.keep()


def written_by(message: Command[Any]) -> int:
    """Count a change's bytes; revoking counts nothing, for it must always be possible."""
    return ROW_BYTES + len(pack(message))


@asynccontextmanager
async def _sealing(
    signer: Signer, call: Call[ProvenSession], agent: str, written: int
) -> AsyncIterator[AuthorityChange]:
    tenant = call.caller.tenant
    async with acting(signer, call) as connection:
        row = await connection.fetchrow(_NEXT, tenant, agent, written)
        if row is None:
            raise AgentAbsent
        incarnation, version = str(row["incarnation"]), row["authority_version"]
        text = await connection.fetchval(_READ, tenant, agent)
        try:
            signer.authority.open(tenant, agent, incarnation, version - 1, text)
        except (Tampered, RolledBack) as problem:
            said = {"tenant": tenant, "agent": agent, "reason": type(problem).__name__}
            log.error("signers refused", extra=said)
            raise AuthorityTampered from None
        change = AuthorityChange(connection, tenant, agent, incarnation, version, stored_of(text))
        yield change
        signers, quorums = list(change.signers.values()), list(change.quorums.values())
        mac = signer.authority.seal(tenant, agent, incarnation, version, signers, quorums)
        await connection.execute(_SEAL, tenant, agent, version, len(signers) + len(quorums), mac)
    # Remembered before the answer leaves: what was acknowledged can be noticed when it is rolled back.
    signer.authority.heads.remember(tenant, agent, incarnation, version, of="authority")


def permissions_text(words: Iterable[str]) -> str:
    """The column of these permissions; UnknownPermission names a word that is none."""
    given = sorted(set(words))
    for word in given:
        if word not in PERMISSIONS:
            known = ", ".join(sorted(PERMISSIONS))
            raise UnknownPermission(f"permissions: {word} is none; there are {known}.", fields=["permissions"])
    return _json(given).decode()


def metadata_text(metadata: dict[str, Any]) -> str:
    """The column of what a caller keeps with a row."""
    text = _json(metadata)
    if len(text) > MAX_METADATA_BYTES:
        raise MetadataTooLarge(fields=["metadata"])
    return text.decode()


def ids_text(ids: Iterable[str]) -> str:
    """The column of a list of ids, each once, in the order given."""
    return _json(list(dict.fromkeys(ids))).decode()
