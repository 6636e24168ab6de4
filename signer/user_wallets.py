"""Wallets of people: made and signed with by their own session alone, imported into in their own tenant alone."""

from typing import Any

import msgspec

from custody.imports.envelope import Bound
from custody.kit import clock, ids
from custody.kit.answers import Answered
from custody.kit.errors import CustodyError
from custody.policies.rules import ParsedRule, parse
from custody.protocol.signer.agents import WalletAddresses
from custody.protocol.signer.import_refusals import ImportDisabled, WrongWalletIndex
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import Decided
from custody.protocol.signer.policies import NewAgent
from custody.protocol.signer.refusals import PoliciesMoving
from custody.protocol.signer.user_wallets import (
    BeginUserImport,
    CreateUserWallet,
    FinishUserImport,
    PersonalSessionRequired,
    SignUserOrder,
    UserImportAad,
    UserImported,
    UserImportSession,
    UserWallet,
    UserWalletAbsent,
    WalletMade,
    agent_of,
)
from custody.worker.act import act
from custody.worker.acts import acting, remember
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from signer import agents, imports
from signer.context import Signer
from signer.policies import row_of
from signer.policy_events import change_event
from signer.sign_order import sign_order
from signer.wallets.built_in import BORN_WITH

_WALLET = (
    "SELECT a.created_at, (SELECT json_object_agg(w.family, w.address)::text FROM wallets w "
    "WHERE w.tenant_id = $1 AND w.agent_id = $2 AND w.scope = '') AS wallets "
    "FROM agents a WHERE a.tenant_id = $1 AND a.id = $2"
)
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_REPLACE = "SELECT replace_policies($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"


async def create(signer: Signer, message: CreateUserWallet, call: Call[ProvenSession]) -> WalletMade:
    """Make the wallet with its default rules; of two who ask at once the second finds it."""
    tenant, agent = _tenant(call, message.wallet_index), agent_of(call.caller.user, message.wallet_index)
    new = NewAgent(agent, f"Wallet {message.wallet_index}", None)
    made = await agents.create_one(signer, new, _rules(signer), call)
    async with signer.pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.execute(_SCOPE, tenant)
        row = await connection.fetchrow(_WALLET, tenant, agent)
    if row is None:
        raise UserWalletAbsent
    known = msgspec.json.decode(row["wallets"] or "{}", type=dict[str, str])
    addresses = WalletAddresses(**{family: known.get(family, "") for family in BORN_WITH})
    outcome = WalletMade(UserWallet(agent, message.wallet_index, addresses, clock.iso(row["created_at"])), made)
    if call.key is not None:
        async with acting(signer, call) as connection:
            await remember(connection, call, outcome)
    return outcome


async def sign(signer: Signer, message: SignUserOrder, call: Call[ProvenSession]) -> Answered[Decided]:
    """Judge an order for the caller's own wallet; its agent is named by the session and by nobody."""
    agent = agent_of(call.caller.user, message.wallet_index)
    order = SignOrder(agent, message.tx_id, message.question, message.prepared, message.answers)
    try:
        return await sign_order(signer, order, call)
    except AgentAbsent:
        raise UserWalletAbsent from None


async def begin_import(signer: Signer, message: BeginUserImport, call: Call[ProvenSession]) -> UserImportSession:
    """A one-time key, bound to the person, their wallet and their app client too."""
    tenant, agent = _admit(signer, call, message.wallet_index)
    async with acting(signer, call) as connection:
        try:
            incarnation = await imports.admit(signer, connection, call, agent)
        except AgentAbsent:
            raise WrongWalletIndex from None
        caller = call.caller
        bound = Bound(ids.new_uuid(), tenant, agent, message.chain, caller.user, message.wallet_index, caller.page)
        aad = UserImportAad(
            bound.session, tenant, caller.user, agent, message.chain, message.wallet_index, bound.app_client
        )
        begun = await imports.make_session(signer, connection, call, bound, incarnation, aad)
        session = UserImportSession(**begun, aad=aad)
        await remember(connection, call, session)
    return session


async def finish_import(signer: Signer, message: FinishUserImport, call: Call[ProvenSession]) -> UserImported:
    """Open the envelope, and put its key and the default rules in place."""
    index = message.sealed.wallet_index
    tenant, agent = _admit(signer, call, index)
    async with acting(signer, call) as connection:
        try:
            await imports.admit(signer, connection, call, agent)
        except AgentAbsent:
            raise WrongWalletIndex from None
        caller = call.caller
        wanted = Bound(message.sealed.import_session_id, tenant, agent, "", caller.user, index, caller.page)
        done = await imports.replace_key(signer, connection, wanted, message.sealed, call)
        if not isinstance(done, CustodyError):
            version = await _reset(signer, connection, agent, call)
            imported = UserImported(agent, done[1], done[0], index)  # type: ignore[arg-type]
            await remember(connection, call, imported)
    if isinstance(done, CustodyError):
        # After the commit: a failure counts.
        await imports.refuse(signer, call, done)
    signer.policies.heads.remember(tenant, agent, *version)
    return imported


def _tenant(call: Call[ProvenSession], index: int) -> str:
    """The session's tenant; outside of their own a person has one wallet, so that nobody uses a tenant's quota up."""
    tenant = call.caller.tenant
    if index and tenant != f"personal-{call.caller.user}":
        raise PersonalSessionRequired(
            "In an organisation you have one wallet, of index 0; more are in your own tenant."
        )
    return tenant


def _personal(call: Call[ProvenSession]) -> str:
    """The caller's own tenant; PersonalSessionRequired in any other."""
    if call.caller.tenant != f"personal-{call.caller.user}":
        raise PersonalSessionRequired
    return call.caller.tenant


def _admit(signer: Signer, call: Call[ProvenSession], index: int) -> tuple[str, str]:
    tenant = _personal(call)
    if not (signer.imports.any and signer.imports.user):
        raise ImportDisabled
    return tenant, agent_of(call.caller.user, index)


def _rules(signer: Signer) -> tuple[ParsedRule, ...]:
    return parse(list(signer.user_wallet_policies), ids.new_uuid)


async def _reset(signer: Signer, connection: Any, agent: str, call: Call[ProvenSession]) -> tuple[str, int]:
    """The default rules in place of the wallet's, in the transaction of the import; its incarnation and version."""
    tenant, rules = call.caller.tenant, _rules(signer)
    rows = [row_of(rule) for rule in rules]
    row = await connection.fetchrow(_ANCHOR, tenant, agent)
    incarnation, version = str(row["incarnation"]), row["policy_version"] + 1
    vet("policy.replaced")
    result = await connection.fetchval(
        _REPLACE,
        tenant,
        call.caller.standing,
        # The request's idempotency key is recorded with the import itself.
        act(call, version=version, rules=len(rows))._replace(route=None, key_hash=None, fingerprint=None),
        agent,
        incarnation,
        None,
        version,
        signer.policies.seal(tenant, agent, incarnation, version, rows),
        rows,
        change_event(call.caller, None, rules, version),
    )
    if result != "done":
        raise PoliciesMoving
    return incarnation, version
