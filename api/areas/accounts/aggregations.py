"""Aggregations: which wallets and chain families an account had when somebody looked."""

from msgspec import UNSET

from api.areas.accounts import members, store
from api.areas.accounts.act_store import Done, once
from api.areas.accounts.models import Aggregation
from api.areas.accounts.types import (
    MAX_AGGREGATIONS,
    AccountAggregation,
    AccountQuery,
    AggregationChangeBody,
    AggregationList,
    AggregationsFull,
    AggregationTaken,
    DeletedAccount,
    NewAggregationBody,
)
from api.areas.accounts.wallets import FAMILIES
from custody.kit import clock, ids
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.models import Scope, tenant_models
from custody.kit.spellings import either
from custody.ports import Ports


async def create(
    ports: Ports, caller: TenantCaller, account_id: str, body: NewAggregationBody
) -> Answered[AccountAggregation]:
    """Write down which wallets the account has now."""
    aggregation_id = body.id or ids.new_uuid()
    display_name = either("displayName", body.display_name, body.display_name_, absent=UNSET)
    metadata = members.checked_metadata({} if body.metadata is UNSET else body.metadata)

    async def act(scope: Scope) -> Done[AccountAggregation]:
        snapshot = await _snapshot(account_id)
        if await Aggregation.filter(id=aggregation_id).exists():
            raise AggregationTaken
        if await Aggregation.all().count() >= MAX_AGGREGATIONS:
            raise AggregationsFull
        row = Aggregation(
            id=aggregation_id,
            tenant_id=caller.tenant,
            account_id=account_id,
            display_name=None if display_name is UNSET else display_name,
            metadata=metadata,
            **snapshot,
            created_at=scope.now,
            updated_at=scope.now,
        )
        await row.save(force_create=True)
        return _outcome(row, "aggregation.created")

    return await once(ports.pool, caller, AccountAggregation, act)


async def change(
    ports: Ports, caller: TenantCaller, account_id: str, aggregation_id: str, body: AggregationChangeBody
) -> Answered[AccountAggregation]:
    """Change what was sent; with `refresh` look at the account's wallets again."""
    display_name = either("displayName", body.display_name, body.display_name_, absent=UNSET)
    metadata = UNSET if body.metadata is UNSET else members.checked_metadata(body.metadata)

    async def act(scope: Scope) -> Done[AccountAggregation]:
        row = await store.aggregation(account_id, aggregation_id, lock=True)
        changed = {"display_name": display_name, "metadata": metadata}
        fields = {name: value for name, value in changed.items() if value is not UNSET}
        if body.refresh:
            fields |= await _snapshot(account_id)
        row.update_from_dict({**fields, "updated_at": scope.now})
        await row.save()
        return _outcome(row, "aggregation.changed")

    return await once(ports.pool, caller, AccountAggregation, act)


async def delete(ports: Ports, caller: TenantCaller, account_id: str, aggregation_id: str) -> Answered[DeletedAccount]:
    """Delete an aggregation; neither the account nor its wallets change."""

    async def act(_scope: Scope) -> Done[DeletedAccount]:
        row = await store.aggregation(account_id, aggregation_id, lock=True)
        await row.delete()
        return Done(DeletedAccount(row.id), "aggregation.deleted", row.id, {"accountId": account_id})

    return await once(ports.pool, caller, DeletedAccount, act)


async def get(ports: Ports, tenant: str, account_id: str, aggregation_id: str) -> AccountAggregation:
    """One aggregation, or AggregationAbsent."""
    async with tenant_models(ports.pool, tenant):
        return _shape(await store.aggregation(account_id, aggregation_id))


async def all_of(ports: Ports, tenant: str, account_id: str, query: AccountQuery) -> AggregationList:
    """A page of an account's aggregations, newest first; AccountAbsent if there is no such account."""
    async with tenant_models(ports.pool, tenant):
        await store.get(account_id)
        rows, total = await store.aggregations(account_id, query)
    return AggregationList([_shape(row) for row in rows], total, query.limit, query.offset)


async def _snapshot(account_id: str) -> dict[str, list[str]]:
    found = store.members_of(await store.get(account_id, lock=True))
    families = {family for member in found for family in member.families}
    return {
        "wallet_ids": list(dict.fromkeys(member.agent for member in found)),
        "chain_families": [family for family in FAMILIES if family in families],
    }


def _outcome(row: Aggregation, action: str) -> Done[AccountAggregation]:
    return Done(_shape(row), action, row.id, {"accountId": row.account_id, "walletIds": row.wallet_ids})


def _shape(row: Aggregation) -> AccountAggregation:
    created_at, updated_at = clock.iso(row.created_at), clock.iso(row.updated_at)
    return AccountAggregation(
        id=row.id,
        account_id=row.account_id,
        account_id_=row.account_id,
        tenant_id=row.tenant_id,
        tenant_id_=row.tenant_id,
        display_name=row.display_name,
        display_name_=row.display_name,
        wallet_ids=row.wallet_ids,
        wallet_ids_=row.wallet_ids,
        chain_families=row.chain_families,
        chain_families_=row.chain_families,
        metadata=row.metadata,
        created_at=created_at,
        created_at_=created_at,
        updated_at=updated_at,
        updated_at_=updated_at,
    )
