"""Sealing audit rows: each gets its place in the log of its tenant, and a signed checkpoint says how far the log goes.

Leaves, kept subtrees and checkpoint of one batch commit together, and only then the journal learns of it; killed at any
moment, the next call goes on from what is committed. A log that is shorter than the journal says, or does not go on
from what it said, is signed no more until an operator accepts it. docs/audit.md.
"""

import re

import asyncpg
import msgspec

from custody.audit import columns, leaf, tree
from custody.audit.checkpoint import BadCheckpoint, Checkpoint, open_note, origin_of, sign_note
from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.protocol.signer.operation import LogsSealed, SealCheckpoint
from custody.worker.call import Call
from signer.audit_journal import Stop
from signer.context import Signer

log = logger(__name__)
# Of one log in one transaction, and of all logs in one message.
BATCH = 500
PER_MESSAGE = 2000
# Of rows in one transaction; one row is bounded by its columns.
MAX_BATCH_BYTES = 4 * 1024 * 1024
LOGS_PER_MESSAGE = 100
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
# How many waiting rows are counted; more is said as this many.
BACKLOG = 100_000
LOCK = (
    "SELECT set_config('custody.tenant', $1, true), pg_advisory_xact_lock(hashtextextended('custody-audit:' || $1, 0))"
)
# A lock that somebody else holds, with whatever right, holds up this log and no other.
_TRY_LOCK = (
    "SELECT pg_try_advisory_xact_lock(hashtextextended('custody-audit:' || set_config('custody.tenant', $1, true), 0))"
)
_HEAD = "SELECT size, root, frontier, note FROM audit_checkpoints WHERE tenant_id = $1 ORDER BY size DESC LIMIT 1"
# Taken one by one from the rows' own index: a join could be planned as a walk over all rows of the tenant.
_ROWS = (
    f"SELECT {columns.READ} FROM (SELECT a.*, {columns.SIZE} AS size,"  # noqa: S608 - our own names
    f" sum({columns.SIZE}) OVER (ORDER BY a.seq) AS upto"
    " FROM audit a WHERE a.tenant_id = $1 AND a.seq = ANY (ARRAY("
    "SELECT seq FROM audit_unsealed WHERE tenant_id = $1 ORDER BY seq LIMIT $2))) a"
    " WHERE a.upto - a.size < $3 ORDER BY a.seq"
)
_SEAL = "SELECT audit_seal($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_LEAF = "SELECT hash FROM audit_leaves WHERE tenant_id = $1 AND log_index = $2"
_NODE = "SELECT hash FROM audit_nodes WHERE tenant_id = $1 AND level = $2 AND position = $3"
# What says nothing about the log in hand: the database is away, has no room, or had to end one of two transactions.
_NO_FAULT_OF_A_LOG = (*DatabaseAway, asyncpg.InsufficientResourcesError, asyncpg.TransactionRollbackError)


class Contradicted(Exception):
    """The log in the database is not the one, grown or equal, that this signer sealed."""


class Head(msgspec.Struct, frozen=True):
    """The extent of a log."""

    size: int = 0
    root: bytes = tree.root(())
    frontier: tuple[bytes, ...] = ()
    note: str = ""


async def seal(signer: Signer, _body: SealCheckpoint, _ask: Call[None]) -> LogsSealed:
    """Seal what waits, bounded; says how much was sealed, how much waits, and how many logs are signed no more."""
    audit, sealed = signer.audit_log, 0
    async with audit.turn, signer.pool.acquire() as connection:
        try:
            if not audit.compared:
                await _compare(signer, connection)
            # And each that holds up its tenant, whether or not something of it waits: it may have been put right.
            for tenant in dict.fromkeys([*await _waiting(signer, connection), *signer.changed_logs]):
                sealed += await sealed_or_stopped(signer, connection, tenant)
                if sealed >= PER_MESSAGE:
                    audit.after = tenant
                    break
        finally:
            audit.publish()
        backlog = await connection.fetchval("SELECT audit_backlog($1)", BACKLOG)
    signer.counters["audit_rows_sealed"] += sealed
    signer.counters["audit_logs_stopped"] = len(audit.stopped)
    return LogsSealed(sealed, backlog, len(audit.stopped))


async def _waiting(signer: Signer, connection: asyncpg.Connection) -> list[str]:
    audit = signer.audit_log
    found = [row[0] for row in await connection.fetch("SELECT audit_waiting($1, $2)", audit.after, LOGS_PER_MESSAGE)]
    # From the beginning again when the end is reached, so that no log waits for ever behind busy ones.
    audit.after = found[-1] if len(found) == LOGS_PER_MESSAGE else ""
    return found


async def accept_restored(signer: Signer) -> tuple[list[str], list[str]]:
    """Go on from the logs as the database has them now; gives back those seen otherwise before, and those refused.

    A log that is stopped because of a row or its queue is none of these, and stays so: `audit_mend` is for it.

    For an operator who restored an older database on purpose. Checkpoints that it signed after that copy was made stay
    true of what was lost, so a holder of one can show the loss. A head that we never signed was in no copy:
    such a log stays as it is, so an attacker cannot have a tree head signed over a forged history.
    """
    audit = signer.audit_log
    accepted: list[str] = []
    refused: list[str] = []
    async with audit.turn, signer.pool.acquire() as connection:
        for tenant, _ in list(audit.journal.sizes()):
            async with connection.transaction():
                await connection.execute(LOCK, tenant)
                try:
                    head = await _head(connection, tenant)
                    _insist_on_our_note(signer, tenant, head)
                except Contradicted as problem:
                    stop(signer, tenant, Stop(str(problem), other=True))
                    refused.append(tenant)
                    continue
            seen = audit.journal.find(tenant)
            if seen is not None and (seen.size, seen.root) != (head.size, head.root):
                audit.journal.accept(tenant, head.size, head.root)
                accepted.append(tenant)
            if tenant in audit.stopped and audit.stopped[tenant].other:
                _resume(signer, tenant)
    return accepted, refused


async def _compare(signer: Signer, connection: asyncpg.Connection) -> None:
    """Once after the start: no log may be shorter than it was, whether or not rows of it wait."""
    audit = signer.audit_log
    seen = dict(audit.journal.sizes())
    for row in await connection.fetch("SELECT tenant_id, size FROM audit_sizes($1)", list(seen)):
        if row["size"] < seen[row["tenant_id"]]:
            reason = f"it has {row['size']} rows, and had {seen[row['tenant_id']]}"
            stop(signer, row["tenant_id"], Stop(reason, other=True))
    audit.compared = True


async def sealed_or_stopped(signer: Signer, connection: asyncpg.Connection, tenant: str) -> int:
    """Seal one batch of a log; whatever is wrong with it, the logs behind it have their turn."""
    try:
        sealed = await _seal(signer, connection, tenant)
    except _NO_FAULT_OF_A_LOG:
        raise
    except Contradicted as problem:
        stop(signer, tenant, Stop(str(problem), other=True))
        return 0
    except Exception as problem:
        # A leaf that is there already, a row that waits and is sealed: each is of this log alone. Only the first line
        # of what the database says: the others quote rows.
        stop(signer, tenant, Stop(f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}", other=False))
        return 0
    if sealed is None:
        return 0
    # It may have been put right.
    _resume(signer, tenant)
    return sealed


async def _seal(signer: Signer, connection: asyncpg.Connection, tenant: str) -> int | None:
    """Seal one batch of a log; None where somebody holds it. Raises Contradicted while it is not the one we know."""
    audit = signer.audit_log
    if NAME.fullmatch(tenant) is None:
        # Anyone who can write rows could otherwise have a line of another log signed, or written into the journal.
        raise Contradicted("no tenant has such a name")
    async with connection.transaction():
        if not await connection.fetchval(_TRY_LOCK, tenant):
            return None
        head = await known_head(signer, connection, tenant)
        rows = await connection.fetch(_ROWS, tenant, BATCH, MAX_BATCH_BYTES)
        if not rows:
            return 0
        leaves = [leaf.of_record(row).leaf for row in rows]
        frontier, completed = tree.append(head.size, head.frontier, leaves)
        checkpoint = Checkpoint(origin_of(signer.public_url, tenant), head.size + len(leaves), tree.root(frontier))
        key = signer.statement_keys.of("checkpoint")
        note = sign_note(checkpoint, key.public, key.sign)
        done = await connection.fetchval(
            _SEAL,
            tenant,
            head.size,
            [row["seq"] for row in rows],
            leaves,
            [level for (level, _), _ in completed],
            [position for (_, position), _ in completed],
            [found for _, found in completed],
            checkpoint.root,
            frontier,
            note,
        )
    if not done:
        return 0
    audit.journal.remember(tenant, checkpoint.size, checkpoint.root)
    audit.notes[tenant] = note
    return len(leaves)


async def _head(connection: asyncpg.Connection, tenant: str) -> Head:
    """The newest checkpoint, if it holds together."""
    row = await connection.fetchrow(_HEAD, tenant)
    if row is None:
        return Head()
    frontier = tuple(row["frontier"])
    if len(frontier) != row["size"].bit_count() or tree.root(frontier) != row["root"]:
        raise Contradicted("its newest checkpoint does not hold together")
    return Head(row["size"], row["root"], frontier, row["note"])


async def known_head(signer: Signer, connection: asyncpg.Connection, tenant: str) -> Head:
    """The head of a log that is, or goes on from, what this signer has seen. Raises Contradicted."""
    head, seen = await _head(connection, tenant), signer.audit_log.journal.find(tenant)
    if seen is None and not head.size:
        return head
    if seen is not None and head.size < seen.size:
        raise Contradicted(f"it has {head.size} rows, and had {seen.size}")
    if seen is not None and head.size == seen.size:
        if head.root != seen.root:
            raise Contradicted(f"its root over {seen.size} rows is another than it was")
        return head
    # Longer: sealed by another signer, or by this one before it was killed. Our key signed it, and it must go on.
    _insist_on_our_note(signer, tenant, head)
    if seen is not None and not await _goes_on(connection, tenant, seen.size, seen.root, head):
        raise Contradicted(f"it does not go on from its first {seen.size} rows as they were")
    return head


def _insist_on_our_note(signer: Signer, tenant: str, head: Head) -> None:
    """The head is one that this service signed for this log; an empty log needs no note."""
    if not head.size:
        return
    try:
        signed_head = open_note(head.note, signer.statement_keys.public("checkpoint"))
    except BadCheckpoint:
        raise Contradicted("its newest checkpoint is not signed by this service") from None
    if (signed_head.size, signed_head.root) != (head.size, head.root) or not signed_head.origin.endswith(f"/{tenant}"):
        raise Contradicted("its newest checkpoint is another log's")


async def _goes_on(connection: asyncpg.Connection, tenant: str, size: int, root: bytes, head: Head) -> bool:
    ranges = tree.between(size, head.size)
    known = {}
    for level, position in tree.places(ranges):
        statement, names = (_NODE, (level, position)) if level else (_LEAF, (position,))
        known[level, position] = await connection.fetchval(statement, tenant, *names)
    if None in known.values():
        return False
    proof = [tree.hash_of(low, high, known.__getitem__) for low, high in ranges]
    return tree.goes_on(size, root, head.size, head.root, proof)


def _resume(signer: Signer, tenant: str) -> None:
    signer.audit_log.stopped.pop(tenant, None)
    signer.changed_logs.discard(tenant)


def stop(signer: Signer, tenant: str, why: Stop) -> None:
    """Sign nothing more for a log, and say so once; nor for its tenant, where the database holds another log."""
    if why.other:
        signer.changed_logs.add(tenant)
    if tenant not in signer.audit_log.stopped:
        signer.audit_log.stopped[tenant] = why
        cure = "an older or changed database?" if why.other else "`custody audit mend` puts it in order"
        log.error(f"an audit log is sealed no more: {cure}", extra={"log": tenant, "why": why.reason})
