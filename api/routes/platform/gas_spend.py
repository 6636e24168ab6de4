"""The fees that a tenant's wallets paid to networks."""

from api.areas.dashboard import gas_spend
from api.areas.dashboard.gas_spend_types import (
    BadGasRange,
    BadWalletId,
    GasSpend,
    GasSpendQuery,
    SponsorshipUnavailable,
    WalletAbsent,
    WalletAmbiguous,
    WalletExternalIdAbsent,
)
from api.http.endpoint import Routes
from api.http.who import platform
from custody.identity.scopes import GAS_SPEND_READ
from custody.kit.reading import SearchesBusy, SearchingAlready, SearchTooSlow
from custody.ports import Ports
from custody.protocol.refusals import TenantAbsent

routes = Routes("/platform/apps", tag="Platform")


@routes.get(
    "/gas_spend",
    who=platform(GAS_SPEND_READ),
    fails=(
        BadGasRange,
        BadWalletId,
        SearchesBusy,
        SearchingAlready,
        SearchTooSlow,
        SponsorshipUnavailable,
        TenantAbsent,
        WalletAbsent,
        WalletAmbiguous,
        WalletExternalIdAbsent,
    ),
)
async def get_gas_spend(ports: Ports, query: GasSpendQuery) -> GasSpend:
    """Get the network fees of a tenant's wallets, in US dollars by the operator's price list.

    An entry is a transaction that was signed to be broadcast, by when it was requested. Its cost is that which a
    node reported when it was final. Without timestamps: the last 30 days.
    """
    return await gas_spend.report(ports, query)
