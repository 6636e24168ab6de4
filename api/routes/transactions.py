"""The orders of all agents of a tenant."""

from api.areas.transactions import history
from api.areas.transactions.history import BadPart
from api.http.endpoint import Routes
from api.http.who import tenant_read
from custody.kit.alone import ReadingAlready
from custody.kit.answer_kinds import Document
from custody.kit.callers import TenantCaller
from custody.kit.reading import SearchesBusy, SearchingAlready, SearchTooSlow
from custody.kit.search_bounds import BadTime
from custody.ports import Ports
from custody.transactions.types import TenantTransactionQuery, TransactionPage

routes = Routes("/transactions", tag="Transactions")


@routes.get(
    "",
    who=tenant_read,
    fails=(BadPart, BadTime, ReadingAlready, SearchesBusy, SearchingAlready, SearchTooSlow),
    media_too="text/csv",
    private=True,
)
async def search_transactions(
    ports: Ports, caller: TenantCaller, query: TenantTransactionQuery
) -> TransactionPage | Document:
    """Search the transactions of all agents, newest first; as JSON, or as a CSV file.

    The requested and the signed data are in the single transaction, and here with `include=data`; signatures and
    signed bytes are null for callers who may neither sign nor approve. A page ends before its limit where it would
    exceed 4 MiB. CSV is sent for `format=csv` or `Accept: text/csv`: up to 10,000 rows or 8 MiB, and if there are more
    rows, `X-Next-Cursor` is the cursor of the next request.
    """
    return await history.search_all(ports, caller, query)
