"""Network fees of a tenant's wallets in dollars: what was set aside for them, and what a node says was paid.

Amounts are whole numbers of the smallest unit, prices the operator's list; sums are exact until they are written down.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from api.areas.dashboard import gas_spend_store as store
from api.areas.dashboard.gas_spend_store import Range
from api.areas.dashboard.gas_spend_types import (
    MAX_DAYS,
    MAX_WALLETS,
    BadGasRange,
    BadWalletId,
    GasSpend,
    GasSpendEntry,
    GasSpendQuery,
    SponsorshipUnavailable,
    WalletAbsent,
    WalletAmbiguous,
    WalletExternalIdAbsent,
)
from custody.chains import prices
from custody.chains.built_in import WALLETS
from custody.identity.provisioning import BadExternalId, external_id
from custody.kit import clock
from custody.kit.shapes import AgentId
from custody.ports import Ports
from custody.protocol.refusals import TenantAbsent

# Before it no wallet of ours signed anything: a number above it counts milliseconds.
_MILLISECONDS_FROM: Final = 10**11
_SPAN: Final = timedelta(days=MAX_DAYS)
_NOTHING: Final = Decimal(0)
_MINED: Final = "execution_reverted"


async def report(ports: Ports, query: GasSpendQuery) -> GasSpend:
    """The fees of a tenant's wallets in a range of time; TenantAbsent if there is no such tenant."""
    if query.sponsor:
        raise SponsorshipUnavailable(fields=["sponsor"])
    begin, end = _range(query)
    wallets = await _wallets(ports, query)
    range_ = Range(begin, end, wallets)
    sums, page = await store.spend(ports.pool, ports.search_share, query.tenant_id, range_, query.limit, query.offset)
    return GasSpend(
        tenant_id=query.tenant_id,
        wallet_ids=wallets or [],
        count=sum(row["count"] for row in sums),
        reserved_usd=_total(ports, sums, "reserved"),
        actual_usd=_total(ports, sums, "paid"),
        entries=[_entry(ports, query.tenant_id, row) for row in page],
    )


def _range(query: GasSpendQuery) -> tuple[datetime, datetime]:
    """The range that is asked for, in either unit each; BadGasRange for one that is empty or too long."""
    end = _moment("end_timestamp", query.end_timestamp) or clock.now()
    begin = _moment("start_timestamp", query.start_timestamp)
    if begin is None:
        return end - _SPAN, end
    if begin > end:
        raise BadGasRange("start_timestamp is after end_timestamp, or after now.", fields=["start_timestamp"])
    if end - begin > _SPAN:
        message = f"From start_timestamp to end_timestamp (without it: now) there may be at most {MAX_DAYS} days."
        raise BadGasRange(message, fields=["start_timestamp", "end_timestamp"])
    return begin, end


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    number = int(text)
    milliseconds = number if number >= _MILLISECONDS_FROM else number * 1000
    try:
        found = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
        # So that a month more or less is still a date.
        return found if (found - _SPAN).year > 1970 and found.year < 9999 else _out_of_range(name)
    except OverflowError:
        return _out_of_range(name)


def _out_of_range(name: str) -> datetime:
    raise BadGasRange(f"{name} is no time: it must be in Unix seconds or milliseconds.", fields=[name])


async def _wallets(ports: Ports, query: GasSpendQuery) -> list[str] | None:
    """The agents that are meant, each once; None: all."""
    named = query.wallet_external_ids if query.wallet_external_ids is not None else query.wallet_external_ids_
    if None not in (query.wallet_external_ids, query.wallet_external_ids_) and named != query.wallet_external_ids_:
        raise BadWalletId(
            "wallet_external_ids and walletExternalIds are two names of one parameter; send one of them.",
            fields=["wallet_external_ids", "walletExternalIds"],
        )
    ids, external_ids = _split("wallet_ids", query.wallet_ids), _split("wallet_external_ids", named)
    external_ids = [_external_id(one) for one in external_ids]
    for one in ids:
        _check_id(one)
    found = await store.wallets(ports.pool, query.tenant_id, ids, external_ids)
    if found is None:
        raise TenantAbsent
    for one in ids:
        if one not in found.there:
            raise WalletAbsent(f"The tenant has no wallet {one[:128]!r}.", fields=["wallet_ids"])
    meant = list(ids)
    for one in external_ids:
        its = found.by_external_id.get(one, [])
        if not its:
            message = f"No wallet in this tenant has the external id {one!r}."
            raise WalletExternalIdAbsent(message, fields=["wallet_external_ids"])
        if len(its) > 1:
            message = f"The external id {one!r} means {len(its)} wallets in this tenant; send their ids in wallet_ids."
            raise WalletAmbiguous(message, fields=["wallet_external_ids"])
        meant += its
    return list(dict.fromkeys(meant)) if ids or external_ids else None


def _split(name: str, text: str | None) -> list[str]:
    if text is None:
        return []
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in found or len(found) > MAX_WALLETS:
        raise BadWalletId(
            f"{name} must be 1 to {MAX_WALLETS} ids, separated by commas; it has {len(found)}.", fields=[name]
        )
    return found


def _check_id(text: str) -> None:
    try:
        msgspec.convert(text, AgentId)
    except msgspec.ValidationError:
        raise BadWalletId(f"wallet_ids: {text[:128]!r} is no id of an agent.", fields=["wallet_ids"]) from None


def _external_id(text: str) -> str:
    try:
        return external_id(text)
    except BadExternalId:
        message = f"wallet_external_ids: {text[:128]!r} is no external id."
        raise BadWalletId(message, fields=["wallet_external_ids"]) from None


def _total(ports: Ports, sums: list[Any], column: str) -> str:
    worths = [usd for row in sums if (usd := _worth(ports, row["chain_id"], row[column])) is not None]
    return prices.fine_text(prices.total(worths))


def _entry(ports: Ports, tenant: str, row: Any) -> GasSpendEntry:
    status, reserved = _status(row), _worth(ports, row["chain_id"], row["fee"])
    # What was never mined cost nothing, whatever a coin is worth.
    paid = _NOTHING if status == "released" else _worth(ports, row["chain_id"], row["fee_paid"])
    return GasSpendEntry(
        id=str(row["id"]),
        tenant_id=tenant,
        agent_id=row["agent_id"],
        provider="wallet",
        mode="self",
        status=status,
        reserved_usd=prices.fine_text(reserved) if reserved is not None else None,
        actual_usd=prices.fine_text(paid) if paid is not None else None,
    )


def _status(row: Any) -> Literal["reserved", "settled", "released"]:
    if row["status"] in ("signed", "broadcast"):
        return "reserved"
    return "settled" if row["status"] == "confirmed" or row["status_detail"] == _MINED else "released"


def _worth(ports: Ports, chain_id: int | None, amount: Decimal | str | None) -> Decimal | None:
    """An amount of a chain's coin in dollars; None where it, the chain or its price is unknown."""
    chain = ports.chains.find(chain_id) if chain_id is not None else None
    if chain is None or amount is None:
        return None
    price = ports.prices.find(WALLETS[chain.family].native_asset, chain.symbol)
    return prices.worth(price, int(amount), chain.decimals)
