"""Agents: made with their wallets, deleted with them; their tokens. Spec 1/4.1."""

import secrets
from typing import Any

import coincurve
import msgspec
from solders.keypair import Keypair

from custody.identity.roles import ADMINS
from custody.kit import clock, ids
from custody.kit.errors import Forbidden, Unavailable
from custody.policies.rules import ParsedRule, parse
from custody.protocol.messages import (
    CreateAgents,
    DeleteAgent,
    Done,
    MintAgentToken,
    NewAgent,
    Outcome,
    RevokeAgentTokens,
)
from signer.case import AgentAbsent
from signer.context import Ask, Signer
from signer.evm import evm_address
from signer.idempotency import IdempotencyRace, earlier, packed
from signer.policies import row_of
from signer.proofs import BadProof, ProvenSession, ProvenTenant
from signer.sealing import Context

_CREATE = "SELECT * FROM create_agents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_CHANGE = "SELECT change_agent($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_PUT_IDEMPOTENT = "SELECT idempotency_put($1, $2, $3, $4, $5, $6, NULL)"


class PoliciesByAdmins(Forbidden):
    """Only an owner or admin gives policies to agents; leave out applyPolicies."""


class _Newborn(msgspec.Struct, frozen=True):
    """An agent about to exist: two fresh keys, sealed at once; the plain keys do not outlive `_bear`."""

    agent: NewAgent
    incarnation: str
    evm_address: str
    solana_address: str
    evm_blob: bytes
    solana_blob: bytes
    head_mac: bytes


async def create(signer: Signer, message: CreateAgents, ask: Ask[ProvenTenant]) -> Outcome:
    """Make agents with their wallets and policies in one transaction; those whose id is taken are left out."""
    if message.policies and isinstance(ask.caller, ProvenSession) and ask.caller.role not in ADMINS:
        raise PoliciesByAdmins
    rules = parse(message.policies, ids.new_uuid)
    newborn = [_bear(signer, ask.caller.tenant, agent, rules) for agent in message.agents]
    async with signer.pool.acquire() as connection:
        if ask.key is None:
            return Done({"created": await _insert(connection, signer, newborn, rules, ask)})
        async with connection.transaction():
            outcome = Done({"created": await _insert(connection, signer, newborn, rules, ask)})
            stored = ask.caller.tenant, ask.caller.principal, *ask.key_row, packed(outcome)
            # Nothing made, nothing to repeat: the key is free for another try.
            if outcome.data["created"] and not await connection.fetchval(_PUT_IDEMPOTENT, *stored):
                raise IdempotencyRace
    if not outcome.data["created"] and await earlier(signer, ask) is not None:
        # It was this request's own twin that took the ids.
        raise IdempotencyRace
    return outcome


def _bear(signer: Signer, tenant: str, agent: NewAgent, rules: tuple[ParsedRule, ...]) -> _Newborn:
    incarnation = ids.new_uuid()
    evm = secrets.token_bytes(32)  # noqa: TID251 - a private key
    solana = secrets.token_bytes(32)  # noqa: TID251 - a private key
    return _Newborn(
        agent=agent,
        incarnation=incarnation,
        evm_address=evm_address(coincurve.PrivateKey(evm)),
        solana_address=str(Keypair.from_seed(solana).pubkey()),
        evm_blob=signer.sealer.seal(evm, Context(tenant, "agent", agent.id, "evm", incarnation)),
        solana_blob=signer.sealer.seal(solana, Context(tenant, "agent", agent.id, "solana", incarnation)),
        head_mac=signer.policies.seal(tenant, agent.id, incarnation, 1, [row_of(rule) for rule in rules]),
    )


async def _insert(
    connection: Any, signer: Signer, newborn: list[_Newborn], rules: tuple[ParsedRule, ...], ask: Ask[ProvenTenant]
) -> list[dict[str, Any]]:
    made = await connection.fetch(
        _CREATE, ask.caller.tenant, ask.caller.standing,
        [n.agent.id for n in newborn], [n.agent.name for n in newborn], [n.agent.platform_id for n in newborn],
        [n.incarnation for n in newborn], [n.evm_address for n in newborn], [n.solana_address for n in newborn],
        signer.sealer.key_version, [n.evm_blob for n in newborn], [n.solana_blob for n in newborn],
        [n.head_mac for n in newborn], [r.id for r in rules], [r.type for r in rules], [r.enabled for r in rules],
        [r.config for r in rules], ask.caller.principal, ask.origin_row,
    )  # fmt: skip
    created_at = {row["id"]: clock.iso(row["created_at"]) for row in made}
    return [_shown(ask.caller.tenant, one, created_at[one.agent.id]) for one in newborn if one.agent.id in created_at]


def _shown(tenant: str, one: _Newborn, created_at: str) -> dict[str, Any]:
    return {
        "id": one.agent.id,
        "name": one.agent.name,
        "platformId": one.agent.platform_id,
        "tenantId": tenant,
        "walletAddresses": {"evm": one.evm_address, "solana": one.solana_address},
        "createdAt": created_at,
    }


async def mint_token(signer: Signer, message: MintAgentToken, ask: Ask[ProvenTenant]) -> Outcome:
    """A token for one agent; shown once and never stored."""
    tenant = ask.caller.tenant
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_ANCHOR, tenant, message.agent)
    if row is None:
        raise AgentAbsent
    token = signer.minter.agent_token(
        tenant, message.agent, str(row["incarnation"]), row["token_epoch"], message.ttl_seconds
    )
    await _change(signer, message.agent, "mint_token", ask, None)
    shown = {"token": token, "agentId": message.agent, "tenantId": tenant, "scope": "agent"}
    return Done(shown | {"expiresIn": message.expires_in})


async def delete(signer: Signer, message: DeleteAgent, ask: Ask[ProvenTenant]) -> Outcome:
    """Delete an agent with its keys, policies, transactions and approvals. Irreversible."""
    return await _change(signer, message.agent, "delete", ask, Done({"deleted": message.agent}))


async def revoke_tokens(signer: Signer, message: RevokeAgentTokens, ask: Ask[ProvenTenant]) -> Outcome:
    """Every token of the agent dies; one minted afterwards works."""
    return await _change(signer, message.agent, "revoke_tokens", ask, Done({"agentId": message.agent, "revoked": True}))


async def _change[O: Outcome | None](signer: Signer, agent: str, change: str, ask: Ask[ProvenTenant], outcome: O) -> O:
    caller = ask.caller
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _CHANGE, caller.tenant, agent, change, caller.standing, caller.principal, *ask.key_row,
            packed(outcome) if outcome is not None else None, caller.principal, ask.origin_row,
        )  # fmt: skip
    if result == "done":
        return outcome
    if result == "absent":
        raise AgentAbsent
    if result == "stale":
        raise BadProof
    raise Unavailable
