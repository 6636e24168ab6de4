"""Accounts: wallets of agents under one name, with what they hold; the same at `/accounts` and `/v1/accounts`."""

from api.areas.accounts import accounts, aggregations
from api.areas.accounts import balance as balances
from api.areas.accounts.types import (
    AccountAbsent,
    AccountAggregation,
    AccountBalance,
    AccountChangeBody,
    AccountList,
    AccountMetadataTooLarge,
    AccountQuery,
    AccountsFull,
    AccountTaken,
    AggregationAbsent,
    AggregationChangeBody,
    AggregationList,
    AggregationsFull,
    AggregationTaken,
    BadAssignment,
    BadConfiguration,
    BalanceAlready,
    BalanceQuery,
    BalancesBusy,
    DeletedAccount,
    DigitalAssetAccount,
    MetadataReserved,
    NewAccountBody,
    NewAggregationBody,
    TooManyWallets,
    UnknownWallet,
    WalletTwice,
)
from api.areas.funds.types import BadToken, TooManyTokens
from api.http.bodies import MAX_METADATA_BODY
from api.http.endpoint import Routes
from api.http.who import tenant_read, tenant_write
from custody.chains.node_shares import NodeCallsSpent
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import DailyQuotaExceeded, Frozen, QuotaExceeded
from custody.kit.spellings import AliasConflict
from custody.ports import Ports
from custody.protocol.refusals import AdministrationMoving
from custody.protocol.signer.order_refusals import KeyTampered, UnknownChain
from custody.protocol.signer.refusals import AgentIdReserved

routes = Routes("", tag="Accounts")
_WRITE = tenant_write("tenantAdmin")
_METADATA = (AccountMetadataTooLarge, AliasConflict, MetadataReserved)
_WALLETS = (
    *_METADATA,
    AdministrationMoving,
    AgentIdReserved,
    BadAssignment,
    BadConfiguration,
    DailyQuotaExceeded,
    Frozen,
    KeyTampered,
    QuotaExceeded,
    TooManyWallets,
    UnknownWallet,
    WalletTwice,
)


def _both(path: str) -> tuple[str, str]:
    return f"/accounts{path}", f"/v1/accounts{path}"


@routes.get(*_both(""), who=tenant_read, fails=(KeyTampered,))
async def list_digital_asset_accounts(ports: Ports, caller: TenantCaller, query: AccountQuery) -> AccountList:
    """List accounts, newest first."""
    return await accounts.all_of(ports, caller.tenant, query)


@routes.post(
    *_both(""),
    who=_WRITE,
    status=201,
    fails=(*_WALLETS, AccountsFull, AccountTaken),
    max_body=MAX_METADATA_BODY,
)
async def create_digital_asset_account(
    ports: Ports, caller: TenantCaller, body: NewAccountBody
) -> Answered[DigitalAssetAccount]:
    """Create an account of up to five wallets: of agents, of the person whose tenant it is, or of agents made for it.

    An agent that `wallets_configuration` asks for is called `<account>-<family>-<n>`; one that is there is taken, so a
    request may be repeated. Assignments are told and grant nothing.
    """
    return await accounts.create(ports, caller, body)


@routes.get(*_both("/<account_id>"), who=tenant_read, fails=(AccountAbsent, KeyTampered))
async def get_digital_asset_account(ports: Ports, caller: TenantCaller, account_id: str) -> DigitalAssetAccount:
    """Get an account with its wallets and what they can do."""
    return await accounts.get(ports, caller.tenant, account_id)


@routes.patch(*_both("/<account_id>"), who=_WRITE, fails=(*_WALLETS, AccountAbsent), max_body=MAX_METADATA_BODY)
async def change_digital_asset_account(
    ports: Ports, caller: TenantCaller, account_id: str, body: AccountChangeBody
) -> Answered[DigitalAssetAccount]:
    """Change an account. A wallet field replaces all of its wallets, and everybody who is assigned must be of those."""
    return await accounts.change(ports, caller, account_id, body)


@routes.delete(*_both("/<account_id>"), who=_WRITE, fails=(AccountAbsent,))
async def delete_digital_asset_account(ports: Ports, caller: TenantCaller, account_id: str) -> Answered[DeletedAccount]:
    """Delete an account with its aggregations; its wallets stay."""
    return await accounts.delete(ports, caller, account_id)


@routes.get(
    *_both("/<account_id>/balance"),
    who=tenant_read,
    fails=(
        AccountAbsent,
        BadToken,
        BalanceAlready,
        BalancesBusy,
        KeyTampered,
        NodeCallsSpent,
        TooManyTokens,
        UnknownChain,
    ),
)
async def get_digital_asset_account_balance(
    ports: Ports, caller: TenantCaller, account_id: str, query: BalanceQuery
) -> AccountBalance:
    """Get what the wallets of an account hold, each by itself and all together.

    Nodes are asked all at once; what one does not tell in time is null, with a note beside it.
    """
    return await balances.balance(ports, caller.tenant, account_id, query)


@routes.get(*_both("/<account_id>/aggregations"), who=tenant_read, fails=(AccountAbsent,))
async def list_aggregations(
    ports: Ports, caller: TenantCaller, account_id: str, query: AccountQuery
) -> AggregationList:
    """List an account's aggregations, newest first."""
    return await aggregations.all_of(ports, caller.tenant, account_id, query)


@routes.post(
    *_both("/<account_id>/aggregations"),
    who=_WRITE,
    status=201,
    fails=(*_METADATA, AccountAbsent, AggregationsFull, AggregationTaken),
    max_body=MAX_METADATA_BODY,
)
async def create_aggregation(
    ports: Ports, caller: TenantCaller, account_id: str, body: NewAggregationBody
) -> Answered[AccountAggregation]:
    """Write down which wallets and chain families the account has now."""
    return await aggregations.create(ports, caller, account_id, body)


@routes.get(*_both("/<account_id>/aggregations/<aggregation_id>"), who=tenant_read, fails=(AggregationAbsent,))
async def get_aggregation(
    ports: Ports, caller: TenantCaller, account_id: str, aggregation_id: str
) -> AccountAggregation:
    """Get an aggregation: what was so when it was made, or last refreshed."""
    return await aggregations.get(ports, caller.tenant, account_id, aggregation_id)


@routes.patch(
    *_both("/<account_id>/aggregations/<aggregation_id>"),
    who=_WRITE,
    fails=(*_METADATA, AccountAbsent, AggregationAbsent),
    max_body=MAX_METADATA_BODY,
)
async def change_aggregation(
    ports: Ports, caller: TenantCaller, account_id: str, aggregation_id: str, body: AggregationChangeBody
) -> Answered[AccountAggregation]:
    """Change an aggregation; `refresh` looks at the account's wallets again."""
    return await aggregations.change(ports, caller, account_id, aggregation_id, body)


@routes.delete(*_both("/<account_id>/aggregations/<aggregation_id>"), who=_WRITE, fails=(AggregationAbsent,))
async def delete_aggregation(
    ports: Ports, caller: TenantCaller, account_id: str, aggregation_id: str
) -> Answered[DeletedAccount]:
    """Delete an aggregation."""
    return await aggregations.delete(ports, caller, account_id, aggregation_id)
