"""Agents: made with their wallets, deleted with them; their tokens."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import asyncpg
import msgspec
from msgspec import UNSET, UnsetType

from custody.identity.roles import ADMINS
from custody.kit import clock, ids
from custody.kit.errors import Unavailable
from custody.policies.rules import ParsedRule, parse
from custody.protocol.refusals import BadProof
from custody.protocol.signer.agents import (
    Agent,
    AgentToken,
    ChangeAgent,
    ChangedAgent,
    DeleteAgent,
    DeletedAgent,
    MintAgentToken,
    RevokeAgentTokens,
    Revoked,
    WalletAddresses,
)
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.policies import AgentsCreated, CreateAgents, NewAgent
from custody.protocol.signer.refusals import AgentIdReserved, PoliciesByAdmins, TooManyBatches, WalletOfPerson
from custody.protocol.signer.user_wallets import PREFIX, is_anothers
from custody.webhooks.control_events import AgentFrozen
from custody.webhooks.payload import encode_events
from custody.worker.act import act
from custody.worker.acts import acting, remember, tell
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import IdempotencyRace, earlier, pack
from custody.worker.proven import ProvenSession, ProvenTenant
from custody.worker.sealing import Context
from signer import quorum_rules
from signer.context import Signer
from signer.policies import row_of
from signer.policy_sets import raise_unknown_set
from signer.quotas import AGENT_BYTES, Held, rules_bytes
from signer.tokens import agent_token
from signer.wallets.built_in import BORN_WITH, KEYS

_CREATE = "SELECT * FROM create_agents($1, $2, $3, $4, $5, $6, $7)"
_RENAME = "SELECT rename_agent($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_CHANGE = "SELECT change_agent($1, $2, $3, $4, $5)"
_EMPTY = "SELECT empty_agent($1, $2, $3, $4, $5, $6, $7)"
_PUT_IDEMPOTENT = "SELECT idempotency_put($1, $2)"
# Orders of one agent that one transaction deletes.
MAX_DELETED_AT_ONCE = 500
BEING_DELETED = "It is being deleted."


# The queue for rules that come with new agents; no agent can have this id.
BATCH = "/batch"


class Wallet(msgspec.Struct, frozen=True):
    """A wallet about to exist: its address, and its key as it is sealed."""

    address: str
    blob: bytes


class NewAgentRow(NamedTuple):
    """An agent as create_agents takes it: the SQL type `new_agent`."""

    id: str
    name: str
    platform_id: str | None
    incarnation: str
    head_mac: bytes


class NewWalletRow(NamedTuple):
    """A wallet as create_agents takes it: the SQL type `new_wallet`."""

    agent: str
    family: str
    address: str
    blob: bytes


class _Newborn(msgspec.Struct, frozen=True):
    """An agent about to exist, with a wallet of each family; the plain keys do not outlive `make_wallet`."""

    agent: NewAgent
    incarnation: str
    wallets: dict[str, Wallet]
    head_mac: bytes


async def create_one(signer: Signer, agent: NewAgent, rules: tuple[ParsedRule, ...], call: Call[ProvenSession]) -> bool:
    """Make one agent with these rules; False where its id is taken. The request's key is kept by nobody."""
    tenant = call.caller.tenant
    await signer.quotas.know(tenant)
    with _hold_quotas(signer, tenant, 1, rules_bytes(rules)) as held:
        unkeyed = msgspec.structs.replace(call, key=None)
        made = await _write(signer, [_bear(signer, tenant, agent, rules)], rules, unkeyed)
        if made.created:
            held.keep()
    return bool(made.created)


async def create(signer: Signer, message: CreateAgents, call: Call[ProvenTenant]) -> AgentsCreated:
    """Make agents with their wallets and policies in one transaction; those whose id is taken are left out."""
    if any(agent.id.startswith(PREFIX) for agent in message.agents):
        raise AgentIdReserved
    if message.policies and isinstance(call.caller, ProvenSession) and call.caller.role not in ADMINS:
        raise PoliciesByAdmins
    try:
        rules = await signer.throttle.run(call.caller.tenant, BATCH, partial(parse, message.policies, ids.new_uuid))
    except TooManyWaiting:
        raise TooManyBatches from None
    if quorum_rules.asks(rules):
        async with signer.pool.acquire() as connection:
            await quorum_rules.admit(connection, call.caller, (), rules)
    await signer.quotas.know(call.caller.tenant)
    with _hold_quotas(signer, call.caller.tenant, len(message.agents), rules_bytes(rules)) as held:
        newborn = [_bear(signer, call.caller.tenant, agent, rules) for agent in message.agents]
        if quorum_rules.asks(rules):
            # As where rules are replaced: with this, a set whose seal is broken is not taken for one without votes.
            for one in newborn:
                signer.policies.heads.remember(call.caller.tenant, one.agent.id, one.incarnation, 1, of="quorum")
        try:
            outcome = await _write(signer, newborn, rules, call)
        except asyncpg.ForeignKeyViolationError as problem:
            raise_unknown_set(problem)
        if outcome.created:
            held.keep()
    if not outcome.created and call.key is not None and await earlier(signer, call) is not None:
        # A concurrent copy of this request took the ids; the next try finds its answer.
        raise IdempotencyRace
    return outcome


async def _write(
    signer: Signer, newborn: list[_Newborn], rules: tuple[ParsedRule, ...], call: Call[ProvenTenant]
) -> AgentsCreated:
    async with signer.pool.acquire() as connection:
        if call.key is None:
            return AgentsCreated(await _insert(connection, signer, newborn, rules, call))
        async with connection.transaction():
            outcome = AgentsCreated(await _insert(connection, signer, newborn, rules, call))
            done = act(call, pack(outcome))
            # A request that made nothing leaves its idempotency key free for another try.
            if outcome.created and not await connection.fetchval(_PUT_IDEMPOTENT, call.caller.tenant, done):
                raise IdempotencyRace
    return outcome


def _hold_quotas(signer: Signer, tenant: str, agents: int, policy_bytes: int) -> AbstractContextManager[Held]:
    """Count the agents against the tenant's quotas before a key is made; raises where a quota is used up."""
    return signer.quotas.hold(
        tenant, agents=agents, policy_bytes=agents * policy_bytes, bytes_per_day=agents * (AGENT_BYTES + policy_bytes)
    )


def _bear(signer: Signer, tenant: str, agent: NewAgent, rules: tuple[ParsedRule, ...]) -> _Newborn:
    incarnation = ids.new_uuid()
    return _Newborn(
        agent=agent,
        incarnation=incarnation,
        wallets={
            family: make_wallet(signer, Context(tenant, "agent", agent.id, family, incarnation)) for family in BORN_WITH
        },
        head_mac=signer.policies.seal(tenant, agent.id, incarnation, 1, [row_of(rule) for rule in rules]),
    )


def make_wallet(signer: Signer, context: Context) -> Wallet:
    """Make a key, and seal it at once."""
    keys = KEYS[context.purpose]
    secret = keys.generate()
    return Wallet(keys.address(keys.open(secret)), signer.sealer.seal(secret, context))


async def _insert(
    connection: Any, signer: Signer, newborn: list[_Newborn], rules: tuple[ParsedRule, ...], call: Call[ProvenTenant]
) -> list[Agent]:
    made = await connection.fetch(
        _CREATE,
        call.caller.tenant,
        call.caller.standing,
        act(call),
        [NewAgentRow(n.agent.id, n.agent.name, n.agent.platform_id, n.incarnation, n.head_mac) for n in newborn],
        [
            NewWalletRow(n.agent.id, family, wallet.address, wallet.blob)
            for n in newborn
            for family, wallet in n.wallets.items()
        ],
        signer.sealer.key_version,
        [row_of(rule) for rule in rules],
    )
    created_at = {row["id"]: clock.iso(row["created_at"]) for row in made}
    return [_show(call.caller.tenant, one, created_at[one.agent.id]) for one in newborn if one.agent.id in created_at]


def _show(tenant: str, one: _Newborn, created_at: str) -> Agent:
    return Agent(
        id=one.agent.id,
        name=one.agent.name,
        platform_id=one.agent.platform_id,
        tenant_id=tenant,
        wallet_addresses=WalletAddresses(**{family: wallet.address for family, wallet in one.wallets.items()}),
        created_at=created_at,
    )


async def mint_token(signer: Signer, message: MintAgentToken, call: Call[ProvenTenant]) -> AgentToken:
    """A token for one agent; shown once and never stored."""
    tenant = call.caller.tenant
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_ANCHOR, tenant, message.agent)
    if row is None:
        raise AgentAbsent
    # A token signs, and says of nobody who holds it.
    if is_anothers(message.agent, tenant, None):
        raise WalletOfPerson
    token = agent_token(
        signer.minter, tenant, message.agent, str(row["incarnation"]), row["token_epoch"], message.ttl_seconds
    )
    await _change(signer, message.agent, "mint_token", call, None)
    return AgentToken(token, message.agent, tenant, "agent", message.expires_in)


async def delete(signer: Signer, message: DeleteAgent, call: Call[ProvenTenant]) -> DeletedAgent:
    """Delete an agent with its keys, policies, transactions and approvals. Irreversible.

    An agent with many orders is frozen first and its orders are deleted in parts. A deletion that was interrupted
    continues when it is repeated.
    """
    caller = call.caller
    async with signer.deletions:
        more = True
        while more:
            async with signer.pool.acquire() as connection:
                more = await connection.fetchval(
                    _EMPTY,
                    caller.tenant,
                    caller.standing,
                    # The request's idempotency key is recorded with the deletion itself, not with its parts.
                    act(call, reason=BEING_DELETED)._replace(route=None, key_hash=None, fingerprint=None),
                    message.agent,
                    BEING_DELETED,
                    MAX_DELETED_AT_ONCE,
                    encode_events(AgentFrozen(by=caller.principal, reason=BEING_DELETED)),
                )
    outcome = await _change(signer, message.agent, "delete", call, DeletedAgent(message.agent))
    signer.quotas.forget(caller.tenant)
    return outcome


async def change(signer: Signer, message: ChangeAgent, call: Call[ProvenTenant]) -> ChangedAgent:
    """Change what an agent is called."""
    outcome = ChangedAgent(message.agent)
    async with acting(signer, call) as connection:
        await rename(connection, call, message.agent, message.name, message.display_name, message.platform_id, UNSET)
        await remember(connection, call, outcome)
    return outcome


async def rename(
    connection: Any,
    call: Call[ProvenTenant],
    agent: str,
    name: str | None,
    *others: str | UnsetType | None,
) -> None:
    """Change what people and platforms call an agent, in a transaction of the caller's.

    Beside the name its display name, its id on the tenant's platform and its token; None takes one away.
    """
    sets = (said for one in others for said in (one is not UNSET, one or None))
    if not await connection.fetchval(_RENAME, call.caller.tenant, agent, name, *sets):
        raise AgentAbsent
    await tell(connection, call, "agent.changed", "agent", agent, name=name)


async def revoke_tokens(signer: Signer, message: RevokeAgentTokens, call: Call[ProvenTenant]) -> Revoked:
    """Revoke every token of the agent; one minted afterwards works."""
    return await _change(signer, message.agent, "revoke_tokens", call, Revoked(message.agent, revoked=True))


async def _change[O: DeletedAgent | Revoked | None](
    signer: Signer, agent: str, change: str, call: Call[ProvenTenant], outcome: O
) -> O:
    caller = call.caller
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _CHANGE,
            caller.tenant,
            caller.standing,
            act(call, pack(outcome) if outcome is not None else None),
            agent,
            change,
        )
    if result == "done":
        return outcome
    if result == "absent":
        raise AgentAbsent
    if result == "stale":
        raise BadProof
    raise Unavailable
