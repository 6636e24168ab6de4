"""The oracle: looks only at tables, as their owner, and says which promise they break: P1, P2 and P3.

It shares no code with what it judges: amounts come from the recorded effects, senders and nonces from the signed
bytes through eth-account, and windows are slid over the times of the signatures themselves, not over hours.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec
from embit.psbt import PSBT
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

UNLIMITED = 2**128
BYTES_LOOKED_AT = 40


class Limit(msgspec.Struct, frozen=True):
    """A limit: the amount of one asset that one agent may have signed in any window of so many hours."""

    agent: str
    most: int
    asset: str = "evm:native"
    hours: int = 24


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One signed transaction as its row tells it."""

    tenant: str
    id: str
    agent: str
    incarnation: str
    address: str
    kind: str
    chain: int | None
    nonce: int | None
    at: datetime
    moved: dict[str, int]
    signature: str
    raw: bytes | None
    replaces: str | None
    was_sent: bool = False

    @property
    def slot(self) -> tuple[Any, ...]:
        """Key under which signatures count once: the nonce slot, or the signature itself where there is none."""
        if self.kind == "evm":
            return (self.tenant, self.address, self.chain, self.nonce)
        if self.kind == "bitcoin" and self.raw is not None:
            # The same transaction signed again is the same spend.
            return (self.tenant, self.agent, PSBT.parse(self.raw).tx.txid())
        return (self.tenant, self.id)


async def violations(
    owner: asyncpg.Connection,
    tenants: Sequence[str],
    limits: Iterable[Limit] = (),
    dollars: Mapping[str, int] | None = None,
) -> list[str]:
    """Every broken promise of these tenants, as sentences; empty when all hold.

    `dollars` is what a smallest unit of each asset with a price is worth, in millionths.
    """
    rows = await owner.fetch(_SIGNED, tenants)
    signed = [_signature(row, dollars or {}) for row in rows]
    charged = [_charge(row) for row in await owner.fetch(_CHARGED, tenants)]
    spent = [*signed, *charged]
    spend = await owner.fetch(_SPEND, tenants)
    totals = await owner.fetch(_TOTALS, tenants)
    nonces = await owner.fetch(_NONCES, tenants)
    found = [
        *(text for limit in limits for text in _overspent([s for s in spent if s.agent == limit.agent], limit)),
        *_buckets_differ(spent, spend),
        *_totals_differ(spend, totals),
        *_slots(signed, nonces),
        *_replacements(signed),
        *_bytes(signed[:: len(signed) // BYTES_LOOKED_AT + 1]),
    ]
    for promise, query in _MUST_BE_EMPTY.items():
        found += [f"{promise}: {dict(row)}" for row in await owner.fetch(query, tenants)]
    return found


def largest_window(signed: Sequence[Signature], asset: str, hours: int) -> int:
    """The most that any window of so many hours holds, each slot once at its largest."""
    events = sorted((s.at, s.slot, s.moved.get(asset, 0)) for s in signed)
    slots: dict[Any, deque[tuple[datetime, int]]] = defaultdict(deque)
    begin, total, most = 0, 0, 0
    for at, slot, amount in events:
        while events[begin][0] <= at - timedelta(hours=hours):
            gone_at, gone, _ = events[begin]
            total -= _largest(slots[gone])
            while slots[gone] and slots[gone][0][0] <= gone_at:
                slots[gone].popleft()
            total += _largest(slots[gone])
            begin += 1
        total -= _largest(slots[slot])
        # Only what is not overshadowed by something larger and later can ever be the largest again.
        while slots[slot] and slots[slot][-1][1] <= amount:
            slots[slot].pop()
        slots[slot].append((at, amount))
        total += _largest(slots[slot])
        most = max(most, total)
    return most


def _largest(slot: deque[tuple[datetime, int]]) -> int:
    return slot[0][1] if slot else 0


def _overspent(signed: Sequence[Signature], limit: Limit) -> Iterator[str]:
    most = largest_window(signed, limit.asset, limit.hours)
    if most > limit.most:
        yield f"P1: {limit.agent} signed {most} {limit.asset} of {limit.most} within {limit.hours} h"


def _buckets_differ(signed: Sequence[Signature], spend: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    slots: dict[Any, tuple[Signature, dict[str, int]]] = {}
    for one in sorted(signed, key=lambda s: s.at):
        _, before = slots.get(one.slot, (one, {}))
        charges = {asset: max(one.moved.get(asset, 0), before.get(asset, 0)) for asset in {*one.moved, *before}}
        slots[one.slot] = (one, charges)
    expected: dict[Any, int] = defaultdict(int)
    for last, charges in slots.values():
        for asset, amount in charges.items():
            if asset == "evm:native":
                continue  # Kept by chain alone.
            hour = last.at.replace(minute=0, second=0, microsecond=0)
            expected[(last.tenant, last.agent, last.incarnation, asset, hour)] += amount
    kept = {
        (row["tenant_id"], row["agent_id"], str(row["incarnation"]), row["asset"], row["hour"]): int(row["amount"])
        for row in spend
    }
    for bucket in {*expected, *kept}:
        if expected.get(bucket, 0) != kept.get(bucket, 0):
            yield f"P1: bucket {bucket} holds {kept.get(bucket, 0)}, its transactions say {expected.get(bucket, 0)}"


def _totals_differ(spend: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Find sums of a whole life that are not those of all its hours, each coin counted to all coins too."""
    expected: dict[Any, int] = defaultdict(int)
    for row in spend:
        coin = row["asset"].startswith("evm:") and row["asset"].endswith(":native")
        for asset in {row["asset"], "evm:native" if coin else row["asset"]}:
            expected[row["tenant_id"], row["agent_id"], str(row["incarnation"]), asset] += int(row["amount"])
    kept = {
        (row["tenant_id"], row["agent_id"], str(row["incarnation"]), row["asset"]): int(row["amount"]) for row in totals
    }
    for place in {*expected, *kept}:
        if expected.get(place, 0) != kept.get(place, 0):
            yield f"P1: {place} spent {kept.get(place, 0)} ever, its hours say {expected.get(place, 0)}"


def _slots(signed: Sequence[Signature], nonces: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One signature for one nonce; another one only when it says which it replaces."""
    last: dict[Any, Signature] = {}
    for one in sorted((s for s in signed if s.kind == "evm"), key=lambda s: s.at):
        before = last.get(one.slot)
        if one.replaces != (before.id if before else None):
            yield f"P2: {one.id} takes slot {one.slot} after {before and before.id} but says it replaces {one.replaces}"
        last[one.slot] = one
    holders = {(row["tenant_id"], row["address"], row["chain_id"], row["nonce"]): str(row["tx_id"]) for row in nonces}
    if holders != {slot: one.id for slot, one in last.items()} or len(nonces) != len(last):
        yield f"P2: the nonces table has {len(nonces)} slots that differ from the {len(last)} slots that were signed"


def _replacements(signed: Sequence[Signature]) -> Iterator[str]:
    """Find transactions that were replaced by anything but themselves at higher fees."""
    known = {(one.tenant, one.id): one for one in signed}
    for one in signed:
        before = known.get((one.tenant, one.replaces or ""))
        if before is None or not before.was_sent:
            continue
        old, new = (TypedTransaction.from_bytes(HexBytes(each.raw or b"")).as_dict() for each in (before, one))
        same = all(old[name] == new[name] for name in ("chainId", "nonce", "to", "value", "data"))
        dearer = all(new[name] * 10 >= old[name] * 11 for name in ("maxFeePerGas", "maxPriorityFeePerGas"))
        if not (same and dearer):
            yield f"P2: {one.id} is not the payment {before.id}, which was sent, at higher fees"


def _bytes(signed: Sequence[Signature]) -> Iterator[str]:
    for one in signed:
        if one.kind != "evm" or one.raw is None:
            continue
        said = TypedTransaction.from_bytes(HexBytes(one.raw)).as_dict()
        sender = Account.recover_transaction(one.raw)
        if (sender, said["chainId"], said["nonce"]) != (one.address, one.chain, one.nonce):
            yield f"P2: the bytes of {one.id} are of {sender}, chain {said['chainId']}, nonce {said['nonce']}"
        if said["value"] != one.moved.get("evm:native", 0):
            yield f"P1: the bytes of {one.id} move {said['value']}, its effects {one.moved}"


def _signature(row: Mapping[str, Any], dollars: Mapping[str, int]) -> Signature:
    moved: dict[str, int] = defaultdict(int)
    for effect in msgspec.json.decode(row["effects"]):
        amount = int(effect["amount"])
        if (
            (effect["kind"] in ("transfer", "approval") or (effect["kind"], effect["asset"]) == ("fee", "bitcoin"))
            and amount
            and not (effect.get("unlimited") or amount >= UNLIMITED)
        ):
            moved[effect["asset"]] += amount
            if effect["asset"] == "evm:native":
                moved[f"evm:{row['chain_id']}:native"] += amount
    if worth := sum(price * moved.get(asset, 0) for asset, price in dollars.items()):
        moved["usd"] = worth
    return Signature(
        tenant=row["tenant_id"],
        id=str(row["id"]),
        agent=row["agent_id"],
        incarnation=str(row["incarnation"]),
        address=row["wallet"],
        kind=row["kind"],
        chain=row["chain_id"],
        nonce=row["nonce"],
        at=row["signed_at"],
        moved=dict(moved),
        signature=row["signature"],
        raw=row["signed_bytes"],
        was_sent=row["broadcast"],
        replaces=str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None,
    )


def _charge(row: Mapping[str, Any]) -> Signature:
    """Read a priced call as an order without a signature; of its time the hour is known."""
    return Signature(
        tenant=row["tenant_id"],
        id=str(row["id"]),
        agent=row["agent_id"],
        incarnation=str(row["incarnation"]),
        address="",
        kind="call",
        chain=None,
        nonce=None,
        at=row["hour"],
        moved={"usd": row["micro_usd"] - (row["returned"] or 0)},
        signature="",
        raw=None,
        replaces=None,
    )


_CHARGED = "SELECT * FROM call_charges WHERE tenant_id = ANY ($1)"
_SIGNED = """
SELECT t.*, w.address AS wallet FROM transactions t
  JOIN wallets w ON w.tenant_id = t.tenant_id AND w.agent_id = t.agent_id AND w.family = t.family
 WHERE t.tenant_id = ANY ($1) AND t.signature IS NOT NULL ORDER BY t.signed_at"""
_SPEND = "SELECT * FROM spend WHERE tenant_id = ANY ($1)"
_TOTALS = "SELECT * FROM spend_totals WHERE tenant_id = ANY ($1)"
_NONCES = "SELECT * FROM nonces WHERE tenant_id = ANY ($1)"

# Each query finds what must not exist.
_MUST_BE_EMPTY = {
    "P2, one signature in two transactions": """
SELECT tenant_id, signature, count(*) FROM transactions
 WHERE tenant_id = ANY ($1) AND signature IS NOT NULL GROUP BY tenant_id, signature HAVING count(*) > 1""",
    "P2, a nonce that two of its transactions were mined with": """
SELECT tenant_id, agent_id, chain_id, nonce FROM transactions
 WHERE tenant_id = ANY ($1) AND kind = 'evm' AND (status = 'confirmed' OR status_detail = 'execution_reverted')
 GROUP BY tenant_id, agent_id, incarnation, chain_id, nonce HAVING count(*) > 1""",
    "P2, a final transaction whose nonce may still be taken": """
SELECT t.tenant_id, t.id, n.state FROM transactions t
  JOIN wallets w ON w.tenant_id = t.tenant_id AND w.agent_id = t.agent_id AND w.family = t.family
  JOIN nonces n
    ON n.tenant_id = t.tenant_id AND n.address = w.address AND n.chain_id = t.chain_id AND n.nonce = t.nonce
 WHERE t.tenant_id = ANY ($1) AND t.kind = 'evm' AND t.status IN ('confirmed', 'failed') AND n.state <> 'seen'""",
    "a final state that was not told once": """
SELECT t.tenant_id, t.id, t.status, count(u.seq) FROM transactions t
  LEFT JOIN audit u
    ON u.tenant_id = t.tenant_id AND u.resource_id = t.id::text AND u.action IN ('tx.confirmed', 'tx.failed')
 WHERE t.tenant_id = ANY ($1) GROUP BY t.tenant_id, t.id
HAVING count(u.seq) <> CASE WHEN t.status IN ('confirmed', 'failed') THEN 1 ELSE 0 END
    OR bool_or(u.action <> 'tx.' || t.status)""",
    "P2, one transaction released twice": """
SELECT tenant_id, resource_id, count(*) FROM audit
 WHERE tenant_id = ANY ($1) AND action IN ('tx.signed', 'tx.approved')
 GROUP BY tenant_id, resource_id HAVING count(*) > 1""",
    "P2, an idempotency key that names no transaction": """
SELECT i.tenant_id, i.tx_id FROM idempotency i
  LEFT JOIN transactions t ON t.tenant_id = i.tenant_id AND t.id = i.tx_id
 WHERE i.tenant_id = ANY ($1) AND i.tx_id IS NOT NULL AND t.id IS NULL""",
    "P2, two idempotency keys for one transaction": """
SELECT tenant_id, principal, route, tx_id FROM idempotency
 WHERE tenant_id = ANY ($1) AND tx_id IS NOT NULL GROUP BY tenant_id, principal, route, tx_id HAVING count(*) > 1""",
    "P3, a signature without its audit row": """
SELECT t.tenant_id, t.id FROM transactions t
 WHERE t.tenant_id = ANY ($1) AND t.signature IS NOT NULL AND NOT EXISTS (
   SELECT FROM audit u
    WHERE u.tenant_id = t.tenant_id AND u.resource_id = t.id::text AND u.written_by = 'custody_signer'
      AND u.action IN ('tx.signed', 'tx.approved')
      AND (u.metadata::json->>'policyVersion')::bigint = t.policy_version
      AND u.metadata::json->>'digest' = encode(t.digest, 'hex'))""",
    "P3, an audit row of a signature that does not exist": """
SELECT u.tenant_id, u.resource_id FROM audit u
  JOIN agents a ON a.tenant_id = u.tenant_id AND a.id = u.metadata::json->>'agentId'
 WHERE u.tenant_id = ANY ($1) AND u.action IN ('tx.signed', 'tx.approved') AND NOT EXISTS (
   SELECT FROM transactions t
    WHERE t.tenant_id = u.tenant_id AND t.id::text = u.resource_id AND t.signature IS NOT NULL)""",
    "P3, a signature without its one event": """
SELECT t.tenant_id, t.id FROM transactions t
  LEFT JOIN (SELECT tenant_id, event_id AS id, event, data FROM outbox UNION ALL
             SELECT tenant_id, id, event, data FROM events) o
    ON o.tenant_id = t.tenant_id AND o.event = 'tx.signed' AND o.data::json->>'txId' = t.id::text
 WHERE t.tenant_id = ANY ($1) AND t.signature IS NOT NULL GROUP BY t.tenant_id, t.id HAVING count(o.id) <> 1""",
    "P8, an event without its delivery to a subscribed endpoint": """
SELECT e.tenant_id, e.number, w.id AS endpoint FROM events e
  JOIN webhook_endpoints w ON w.tenant_id = e.tenant_id AND w.enabled AND w.deleted_at IS NULL
   AND (w.events IS NULL OR e.event = ANY (w.events)) AND w.created_at < e.created_at
  LEFT JOIN deliveries d
    ON d.tenant_id = e.tenant_id AND d.event_number = e.number AND d.endpoint_id = w.id
 WHERE e.tenant_id = ANY ($1) AND d.id IS NULL""",
    "P8, a delivery that nobody will end": """
SELECT tenant_id, id, status FROM deliveries
 WHERE tenant_id = ANY ($1) AND (status IN ('pending', 'processing')) AND next_retry_at IS NULL""",
    "P3, a policy version that the agent never had": """
SELECT t.tenant_id, t.id, t.policy_version FROM transactions t
  JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id
 WHERE t.tenant_id = ANY ($1) AND t.policy_version NOT BETWEEN 1 AND a.policy_version""",
    "P3, a rate that does not count what was asked": """
SELECT tenant_id, agent_id, sum(asked) AS asked, sum(counted) AS counted FROM (
    SELECT t.tenant_id, t.agent_id, 1 AS asked, 0 AS counted FROM transactions t
      LEFT JOIN approvals p ON p.tenant_id = t.tenant_id AND p.tx_id = t.id
     WHERE t.tenant_id = ANY ($1) AND (p.id IS NOT NULL OR t.status <> 'rejected')
    UNION ALL
    SELECT tenant_id, agent_id, 0, orders FROM rate WHERE tenant_id = ANY ($1) AND grain = 'hour') both_sides
 GROUP BY tenant_id, agent_id HAVING sum(asked) <> sum(counted)""",
    "an approval and its transaction that disagree": """
SELECT t.tenant_id, t.id, t.status, p.status AS approval FROM approvals p
  JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id
 WHERE t.tenant_id = ANY ($1) AND CASE p.status WHEN 'pending' THEN t.status <> 'pending_approval'
   WHEN 'approved' THEN t.signature IS NULL ELSE t.status <> 'rejected' END""",
    "a transaction that waits for nobody": """
SELECT t.tenant_id, t.id FROM transactions t
  LEFT JOIN approvals p ON p.tenant_id = t.tenant_id AND p.tx_id = t.id
 WHERE t.tenant_id = ANY ($1) AND t.status = 'pending_approval' AND p.id IS NULL""",
}
