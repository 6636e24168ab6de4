"""Accounts: create, list, read, change, delete."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.accounts import members, store, wallets
from api.areas.accounts.act_store import Done, earlier, once
from api.areas.accounts.members import Assignments, Wanted
from api.areas.accounts.models import Account
from api.areas.accounts.types import (
    MAX_ACCOUNTS,
    AccountChangeBody,
    AccountList,
    AccountQuery,
    AccountsFull,
    AccountTaken,
    DeletedAccount,
    DigitalAssetAccount,
    NewAccountBody,
)
from api.areas.accounts.wallets import Member, Standing
from api.areas.agents import shown
from custody.kit import clock, ids
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.models import Scope, tenant_models
from custody.kit.spellings import either
from custody.ports import Ports
from custody.protocol.signer.agents import ClaimedAddresses
from custody.protocol.signer.policies import CreateAgents, NewAgent


async def create(ports: Ports, caller: TenantCaller, body: NewAccountBody) -> Answered[DigitalAssetAccount]:
    """Create an account. Agents that it asks for are made first: a repetition finds them, and makes no others."""
    account_id = body.id or _made_id(caller)
    wanted = members.wallets_in(body, account_id) or []
    assigned = members.assignments(body)
    display_name = either("displayName", body.display_name, body.display_name_, absent=UNSET)
    metadata = members.checked_metadata({} if body.metadata is UNSET else body.metadata)

    async def plan(scope: Scope) -> None:
        if await Account.filter(id=account_id).exists():
            raise AccountTaken
        if await Account.all().count() >= MAX_ACCOUNTS:
            raise AccountsFull
        await _members(scope, wanted, assigned.given, planned=True)

    async def act(scope: Scope) -> Done[DigitalAssetAccount]:
        await plan(scope)
        made, standings = await _members(scope, wanted, assigned.given)
        account = Account(
            id=account_id,
            tenant_id=caller.tenant,
            display_name=None if display_name is UNSET else display_name,
            metadata=metadata,
            **{name: assigned.given.get(name, []) for name in Assignments.__struct_fields__},
            created_at=scope.now,
            updated_at=scope.now,
        )
        await account.save(force_create=True)
        await store.put_members(scope, account, made)
        return Done(shape(account, made, standings), "account.created", account_id, {"walletIds": _ids(made)})

    return await _with_standings(ports, caller, wanted, plan, act)


def _made_id(caller: TenantCaller) -> str:
    """An id that is made here; under a key the same at each try, so that agents made before a crash are found."""
    if (key := caller.idempotency) is None:
        return ids.new_uuid()
    return ids.uuid_of(caller.tenant, caller.principal, key.route, key.key_hash.hex())


async def change(
    ports: Ports, caller: TenantCaller, account_id: str, body: AccountChangeBody
) -> Answered[DigitalAssetAccount]:
    """Change what was sent of an account; wallet fields replace all of its wallets."""
    wanted = members.wallets_in(body, account_id)
    assigned = members.assignments(body)
    display_name = either("displayName", body.display_name, body.display_name_, absent=UNSET)
    metadata = UNSET if body.metadata is UNSET else members.checked_metadata(body.metadata)

    async def merge(scope: Scope, *, lock: bool) -> tuple[Account, dict[str, list[str]]]:
        account = await store.get(account_id, lock=lock)
        kept = {name: getattr(account, name) for name in Assignments.__struct_fields__}
        return account, {**kept, **assigned.given}

    async def plan(scope: Scope) -> None:
        _, given = await merge(scope, lock=False)
        await _members(scope, wanted or [], given, planned=True)

    async def act(scope: Scope) -> Done[DigitalAssetAccount]:
        account, given = await merge(scope, lock=True)
        if wanted is None:
            now = store.members_of(account)
            standings = await store.standings(scope, _ids(now))
            # What was assigned before may have gone since; only what is sent now is looked up.
            sent = assigned.given
            await members.check_assigned(
                scope, _ids(now), sent.get("additional_signer_ids", []), sent.get("signer_policy_ids", [])
            )
        else:
            now, standings = await _members(scope, wanted, given)
            await store.put_members(scope, account, now)
        fields: dict[str, Any] = dict(given)
        if display_name is not UNSET:
            fields["display_name"] = display_name
        if metadata is not UNSET:
            fields["metadata"] = metadata
        account.update_from_dict({**fields, "updated_at": scope.now})
        await account.save()
        said = {"fields": _field_names(body), "walletIds": _ids(now)}
        return Done(shape(account, now, standings), "account.changed", account_id, said)

    return await _with_standings(ports, caller, wanted or [], plan, act)


async def delete(ports: Ports, caller: TenantCaller, account_id: str) -> Answered[DeletedAccount]:
    """Delete an account with its aggregations; its wallets stay."""

    async def act(scope: Scope) -> Done[DeletedAccount]:
        account = await store.get(account_id, lock=True)
        said = {"walletIds": _ids(store.members_of(account))}
        await Account.filter(id=account_id).delete()
        return Done(DeletedAccount(account_id), "account.deleted", account_id, said)

    return await once(ports.pool, caller, DeletedAccount, act)


async def get(ports: Ports, tenant: str, account_id: str) -> DigitalAssetAccount:
    """One account, or AccountAbsent."""
    async with tenant_models(ports.pool, tenant) as scope:
        account = await store.get(account_id)
        found = store.members_of(account)
        standings = await store.standings(scope, _ids(found))
    await shown.vouch(ports, tenant, shown.without_proof(ports, tenant, _claims(standings)))
    return shape(account, found, standings)


async def all_of(ports: Ports, tenant: str, query: AccountQuery) -> AccountList:
    """A page of a tenant's accounts, newest first."""
    async with tenant_models(ports.pool, tenant) as scope:
        accounts, total = await store.page(scope, query)
        found = [(account, store.members_of(account)) for account in accounts]
        standings = await store.standings(scope, [agent for _, some in found for agent in _ids(some)])
    await shown.vouch(ports, tenant, shown.without_proof(ports, tenant, _claims(standings)))
    return AccountList([shape(account, some, standings) for account, some in found], total, query.limit, query.offset)


async def _members(
    scope: Scope, wanted: Sequence[Wanted], given: dict[str, list[str]], *, planned: bool = False
) -> tuple[list[Member], dict[str, Standing]]:
    """The members that are wanted, their agents as they are now, and nobody assigned who is of none of them."""
    agents = [one.agent for one in wanted]
    standings = await store.standings(scope, agents)
    made = members.members(wanted, standings, planned=planned)
    signers, rules = given.get("additional_signer_ids", []), given.get("signer_policy_ids", [])
    await members.check_assigned(scope, agents, signers, rules)
    return made, standings


class _Unvouched(Exception):
    """The signer has not said yet that these addresses are its own."""

    def __init__(self, claimed: list[ClaimedAddresses]) -> None:
        super().__init__()
        self.claimed = claimed


async def _with_standings(
    ports: Ports, caller: TenantCaller, wanted: Sequence[Wanted], plan: Any, act: Any
) -> Answered[DigitalAssetAccount]:
    """Act, with no address in the answer that the signer does not know; it is asked while no connection is held."""
    if any(one.made for one in wanted):
        if (answered := await earlier(ports.pool, caller, DigitalAssetAccount)) is not None:
            return answered
        # Refused first if it is refused at all: agents outlive the account that they were made for.
        async with tenant_models(ports.pool, caller.tenant) as scope:
            await plan(scope)
        new = [NewAgent(one.agent, one.name or one.agent) for one in wanted if one.made]
        await ports.workers.ask(CreateAgents(new), msgspec.structs.replace(caller, idempotency=None))

    async def check(scope: Scope) -> Done[DigitalAssetAccount]:
        done: Done[DigitalAssetAccount] = await act(scope)
        standings = await store.standings(scope, done.answer.wallet_ids)
        if unknown := shown.without_proof(ports, caller.tenant, _claims(standings)):
            raise _Unvouched(unknown)
        return done

    try:
        return await once(ports.pool, caller, DigitalAssetAccount, check)
    except _Unvouched as problem:
        await shown.vouch(ports, caller.tenant, problem.claimed)
    return await once(ports.pool, caller, DigitalAssetAccount, act)


def shape(account: Account, found: Sequence[Member], standings: dict[str, Standing]) -> DigitalAssetAccount:
    """An account as callers see it."""
    rows = wallets.of_members(found, standings)
    together = wallets.together(rows)
    assigned = {
        "ownerUserIds": account.owner_user_ids,
        "additionalSignerIds": account.additional_signer_ids,
        "signerPolicyIds": account.signer_policy_ids,
    }
    given = {name: value for name, value in assigned.items() if value}
    created_at, updated_at = clock.iso(account.created_at), clock.iso(account.updated_at)
    return DigitalAssetAccount(
        id=account.id,
        tenant_id=account.tenant_id,
        tenant_id_=account.tenant_id,
        display_name=account.display_name,
        display_name_=account.display_name,
        metadata={**account.metadata, "authorization": given} if given else account.metadata,
        owner_user_ids=account.owner_user_ids,
        owner_user_ids_=account.owner_user_ids,
        additional_signer_ids=account.additional_signer_ids,
        additional_signer_ids_=account.additional_signer_ids,
        signer_policy_ids=account.signer_policy_ids,
        signer_policy_ids_=account.signer_policy_ids,
        wallet_ids=_ids(found),
        wallet_ids_=_ids(found),
        wallets=rows,
        capabilities=wallets.capabilities_of(rows),
        capability_metadata=together,
        capability_metadata_=together,
        created_at=created_at,
        created_at_=created_at,
        updated_at=updated_at,
        updated_at_=updated_at,
    )


def _ids(found: Sequence[Member]) -> list[str]:
    return list(dict.fromkeys(member.agent for member in found))


def _claims(standings: dict[str, Standing]) -> list[ClaimedAddresses]:
    return [ClaimedAddresses(agent, one.wallets) for agent, one in standings.items()]


def _field_names(body: AccountChangeBody) -> list[str]:
    values = msgspec.structs.asdict(body)
    return sorted({name.removesuffix("_") for name, value in values.items() if value is not UNSET})
