"""The fees that a tenant's wallets paid to networks, as the operator asks for them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, described
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.kit.paging import Page
from custody.kit.shapes import TenantId

MAX_WALLETS = 100
MAX_DAYS = 30
# Longer than what is taken, so that the answer can say how many are.
ListText = Annotated[str, Meta(min_length=1, max_length=32_768)]
Timestamp = Annotated[str, Meta(min_length=1, max_length=15, pattern=r"^[0-9]*\Z")]


class BadGasRange(Invalid):
    """start_timestamp must be before end_timestamp, at most 30 days; both in Unix seconds or milliseconds."""


class BadWalletId(Invalid):
    """wallet_ids takes ids of agents, wallet_external_ids external ids: separated by commas, at most 100 of each."""


class SponsorshipUnavailable(Invalid):
    """sponsor: nobody pays fees for others in this deployment, so there is no sponsored gas; leave it out."""


class WalletAbsent(NotFound):
    """No such wallet in this tenant."""


class WalletExternalIdAbsent(NotFound):
    """No wallet in this tenant has this external id."""


class WalletAmbiguous(Conflict):
    """This external id means several wallets in this tenant; send their ids in wallet_ids instead."""


class GasSpendQuery(Page, frozen=True, kw_only=True):
    """The wallets and the time of the fees; limit and offset are for the entries, and the totals are of all of them."""

    tenant_id: Annotated[TenantId, described("The tenant.")]
    wallet_ids: Annotated[
        ListText | None, described("Only these wallets: ids of agents, separated by commas, at most 100.")
    ] = None
    wallet_external_ids: Annotated[
        ListText | None, described("Only the wallets with these external ids, separated by commas, at most 100.")
    ] = None
    wallet_external_ids_: Annotated[ListText | None, described("The same as `wallet_external_ids`.")] = msgspec.field(
        default=None, name="walletExternalIds"
    )
    start_timestamp: Annotated[
        Timestamp | None, described("Unix seconds or milliseconds; without it 30 days before the end.")
    ] = None
    end_timestamp: Annotated[
        Timestamp | None, described("Unix seconds or milliseconds, this moment included; without it now.")
    ] = None
    sponsor: Annotated[bool, described("True to have another account pay the fees; refused in this version.")] = False


class GasSpendEntry(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The network fee of one transaction."""

    id: Annotated[Id, described("The transaction.")]
    tenant_id: Annotated[str, described("The tenant.")]
    agent_id: Annotated[str, described("The agent whose wallet pays.")]
    provider: Annotated[Literal["wallet"], described("Payer of the fees: the wallet itself.")]
    mode: Annotated[Literal["self"], described("For whom: for itself.")]
    status: Annotated[
        Literal["reserved", "settled", "released"],
        described("`reserved` until it is final, then `settled` if it was mined, `released` if it never will be."),
    ]
    reserved_usd: Annotated[
        str | None, described("The highest fee that was signed; null where the operator lists no price.")
    ]
    actual_usd: Annotated[
        str | None,
        described(
            "The fee that was paid, as a node said; null until it is final, and where it or its price is unknown."
        ),
    ]


class GasSpend(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Network fees of a tenant's wallets."""

    tenant_id: Annotated[str, described("The tenant.")]
    wallet_ids: Annotated[list[str], described("The wallets that were named; empty: all of the tenant.")]
    count: Annotated[int, described("Number of transactions in the whole range.")]
    reserved_usd: Annotated[str, described("The sum of all of them, also those not in this page, where it is known.")]
    actual_usd: Annotated[str, described("The sum of all of them, also those not in this page, where it is known.")]
    entries: Annotated[list[GasSpendEntry], described("One page of them, newest first.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.entries), self.count
