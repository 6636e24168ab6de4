"""Agents: made with their wallets, deleted with them; their policies and tokens. Spec 1/4.1."""

import secrets
from typing import Any

import coincurve
from solders.keypair import Keypair

from custody.kit import clock, ids
from custody.kit.callers import IdempotencyKey, Origin
from custody.kit.errors import Conflict, Forbidden, Frozen, Unavailable
from custody.kit.refs import AgentRef
from custody.policies.rules import ParsedRule, parse, wire
from custody.policies.tighten import loosened
from custody.protocol.messages import (
    CreateAgents,
    DeleteAgent,
    Done,
    MintAgentToken,
    NewAgent,
    Outcome,
    ReplacePolicies,
    RevokeAgentTokens,
)
from signer.context import Signer
from signer.decide import AgentAbsent, Sealed
from signer.heads import RolledBack
from signer.idempotency import IdempotencyRace, earlier, packed
from signer.orders import evm_address
from signer.policies import row_of
from signer.proofs import BadProof, ProvenAgent, ProvenTenant
from signer.sealing import Context, Tampered

_CREATE = "SELECT * FROM create_agents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
_REPLACE = (
    "SELECT replace_policies($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
)
_CHANGE = "SELECT change_agent($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_PUT_IDEMPOTENT = "SELECT idempotency_put($1, $2, $3, $4, $5, $6, NULL)"
POLICY_TRIES = 4


class PolicyLoosened(Forbidden):
    """An agent may only tighten its own policies."""


class PoliciesMoving(Conflict):
    """The policies are being changed by somebody else; read them again and repeat."""


class _Wallets:
    """Two fresh keys of one agent, sealed at once; the plain keys do not outlive this object."""

    def __init__(self, signer: Signer, tenant: str, agent: str) -> None:
        self.incarnation = ids.new_uuid()
        evm = secrets.token_bytes(32)  # noqa: TID251 - a private key
        solana = secrets.token_bytes(32)  # noqa: TID251 - a private key
        self.evm_address = evm_address(coincurve.PrivateKey(evm))
        self.solana_address = str(Keypair.from_seed(solana).pubkey())
        self.evm_blob = signer.sealer.seal(evm, Context(tenant, "agent", agent, "evm", self.incarnation))
        self.solana_blob = signer.sealer.seal(solana, Context(tenant, "agent", agent, "solana", self.incarnation))


async def create(
    signer: Signer, message: CreateAgents, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Make agents with their wallets and policies in one transaction; those whose id is taken are left out."""
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    rules = parse(message.policies, ids.new_uuid)
    wallets = [_Wallets(signer, caller.tenant, agent.id) for agent in message.agents]
    async with signer.pool.acquire() as connection:
        if key is None:
            return Done(
                {"created": await _insert(connection, signer, message.agents, wallets, rules, caller, origin)}
            ), False
        async with connection.transaction():
            outcome = Done(
                {"created": await _insert(connection, signer, message.agents, wallets, rules, caller, origin)}
            )
            # Nothing made, nothing to repeat: the key is free for another try.
            if outcome.data["created"] and not await connection.fetchval(
                _PUT_IDEMPOTENT,
                caller.tenant,
                caller.principal,
                key.route,
                key.key_hash,
                key.fingerprint,
                packed(outcome),
            ):
                raise IdempotencyRace
    return outcome, False


async def _insert(
    connection: Any,
    signer: Signer,
    agents: list[NewAgent],
    wallets: list[_Wallets],
    rules: tuple[ParsedRule, ...],
    caller: ProvenTenant,
    origin: Origin,
) -> list[dict[str, Any]]:
    rows = [row_of(rule) for rule in rules]
    macs = [
        signer.policies.seal(caller.tenant, agent.id, wallet.incarnation, 1, rows)
        for agent, wallet in zip(agents, wallets, strict=True)
    ]
    made = await connection.fetch(
        _CREATE, caller.tenant, caller.key_hash, [a.id for a in agents], [a.name for a in agents], [a.platform_id for a in agents],
        [w.incarnation for w in wallets], [w.evm_address for w in wallets], [w.solana_address for w in wallets],
        signer.sealer.key_version, [w.evm_blob for w in wallets], [w.solana_blob for w in wallets], macs,
        [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows],
        caller.principal, [origin.request_id, origin.ip, origin.user_agent],
    )  # fmt: skip
    created_at = {row["id"]: clock.iso(row["created_at"]) for row in made}
    return [
        {
            "id": agent.id, "name": agent.name, "platformId": agent.platform_id, "tenantId": caller.tenant,
            "walletAddresses": {"evm": wallet.evm_address, "solana": wallet.solana_address}, "createdAt": created_at[agent.id],
        }
        for agent, wallet in zip(agents, wallets, strict=True)
        if agent.id in created_at
    ]  # fmt: skip


async def replace_policies(
    signer: Signer,
    message: ReplacePolicies,
    caller: ProvenAgent | ProvenTenant,
    origin: Origin,
    key: IdempotencyKey | None,
) -> tuple[Outcome, bool]:
    """Replace the whole set under the next version. An agent's token may only tighten (decisions 3)."""
    if isinstance(caller, ProvenAgent) and caller.agent != message.agent:
        raise Forbidden("An agent changes only its own policies.", code="other_agent")
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    new = parse(message.policies, ids.new_uuid)
    for _ in range(POLICY_TRIES):
        if (done := await _try_replace(signer, message.agent, caller, new, origin, key)) is not None:
            return done, False
    raise PoliciesMoving


async def _try_replace(
    signer: Signer,
    agent: str,
    caller: ProvenAgent | ProvenTenant,
    new: tuple[ParsedRule, ...],
    origin: Origin,
    key: IdempotencyKey | None,
) -> Outcome | None:
    async with signer.pool.acquire() as connection:
        row = await _anchor(connection, caller, agent)
        incarnation, version = str(row["incarnation"]), row["policy_version"]
        if isinstance(caller, ProvenAgent) and not signer.agent_put_replaces:
            _only_tighter(signer, caller, row, new)
        rows = [row_of(rule) for rule in new]
        outcome = Done(
            {
                "policies": [
                    {"id": rule.id, "type": rule.type, "enabled": rule.enabled, "config": wire(rule).config}
                    for rule in new
                ]
            }
        )
        result = await connection.fetchval(
            _REPLACE, caller.tenant, agent, incarnation, caller.epoch if isinstance(caller, ProvenAgent) else None, version + 1,
            signer.policies.seal(caller.tenant, agent, incarnation, version + 1, rows),
            [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows],
            caller.key_hash if isinstance(caller, ProvenTenant) else None, caller.principal,
            key.route if key else None, key.key_hash if key else None, key.fingerprint if key else None, packed(outcome),
            "agent" if isinstance(caller, ProvenAgent) else "system", agent if isinstance(caller, ProvenAgent) else caller.principal,
            f'{{"version":{version + 1},"rules":{len(rows)}}}', [origin.request_id, origin.ip, origin.user_agent],
        )  # fmt: skip
    if result != "done":
        return None
    # Remembered before the answer leaves: what was acknowledged can be noticed when it is rolled back.
    signer.policies.heads.remember(caller.tenant, agent, incarnation, version + 1)
    return outcome


async def _anchor(connection: Any, caller: ProvenAgent | ProvenTenant, agent: str) -> Any:
    row = await connection.fetchrow("SELECT * FROM agent_anchor($1, $2)", caller.tenant, agent)
    if row is None:
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent):
        if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
            raise BadProof("This token was revoked; ask the tenant for a new one.", code="token_revoked")
        if row["frozen"]:
            raise Frozen
    return row


def _only_tighter(signer: Signer, caller: ProvenAgent, row: Any, new: tuple[ParsedRule, ...]) -> None:
    head = (row["head_version"], row["head_count"], row["head_mac"])
    try:
        old = signer.policies.open(
            caller.tenant, caller.agent, caller.incarnation, head, row["policy_version"], row["rules"] or "[]"
        )
    except (Tampered, RolledBack):
        raise Sealed(code="policy_tampered") from None
    if (what := loosened(old, new, empty_policy=signer.empty_policy)) is not None:
        raise PolicyLoosened(f"An agent may only tighten its own policies. {what}")


async def mint_token(
    signer: Signer, message: MintAgentToken, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """A token for one agent; shown once and never stored."""
    await earlier(signer, caller.tenant, caller.principal, key)
    async with signer.pool.acquire() as connection:
        row = await _anchor(connection, caller, message.agent)
    token = signer.minter.agent_token(
        caller.tenant, message.agent, str(row["incarnation"]), row["token_epoch"], message.ttl_seconds
    )
    await _change(signer, AgentRef(caller.tenant, message.agent), "mint_token", caller, origin, key, None)
    data = {
        "token": token,
        "agentId": message.agent,
        "tenantId": caller.tenant,
        "scope": "agent",
        "expiresIn": message.expires_in,
    }
    return Done(data), False


async def delete(
    signer: Signer, message: DeleteAgent, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Delete an agent with its keys, policies, transactions and approvals. Irreversible."""
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    outcome = Done({"deleted": message.agent})
    await _change(signer, AgentRef(caller.tenant, message.agent), "delete", caller, origin, key, outcome)
    return outcome, False


async def revoke_tokens(
    signer: Signer, message: RevokeAgentTokens, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Every token of the agent dies; the next one works again."""
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    outcome = Done({"agentId": message.agent, "revoked": True})
    await _change(signer, AgentRef(caller.tenant, message.agent), "revoke_tokens", caller, origin, key, outcome)
    return outcome, False


async def _change(
    signer: Signer,
    ref: AgentRef,
    change: str,
    caller: ProvenTenant,
    origin: Origin,
    key: IdempotencyKey | None,
    outcome: Outcome | None,
) -> None:
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _CHANGE, ref.tenant, ref.agent, change, caller.key_hash, caller.principal, key.route if key else None,
            key.key_hash if key else None, key.fingerprint if key else None, packed(outcome) if outcome else None,
            caller.principal, [origin.request_id, origin.ip, origin.user_agent],
        )  # fmt: skip
    if result == "absent":
        raise AgentAbsent
    if result != "done":
        raise Unavailable if result != "stale" else BadProof
