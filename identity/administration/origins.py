"""The origins that app clients list: a page there may read what the api answers.

The row says it under its MAC, so that a role of the database that was taken over adds no origin.
"""

from typing import Any

import msgspec

from custody.identity.app_clients import AppClient
from custody.kit.logs import logger
from custody.protocol.identity.origins import LookUpOrigin, OriginStanding
from custody.worker.call import Call
from custody.worker.proofs import APP_CLIENT_MAC
from custody.worker.sealing import Tampered, fields
from identity.context import Identity
from identity.tokens import Page

log = logger(__name__)
# Of so many clients that list one origin is looked for a true one: nobody makes a look-up long.
MOST = 50
_LISTING = "SELECT * FROM clients_of_origin($1, $2, $3)"


async def look_up(identity: Identity, message: LookUpOrigin, _call: Call[None]) -> OriginStanding:
    """Say whether a client that identity wrote lists the origin."""
    rows = await identity.pool.fetch(_LISTING, message.origin, message.tenant, MOST)
    return OriginStanding(any(lists(identity, row, message.origin) for row in rows))


async def is_page_of(identity: Identity, page: Page, tenant: str) -> bool:
    """Say whether an app client of the tenant, enabled now and written by identity, lists a page's origin."""
    rows = await identity.pool.fetch(_LISTING, page.origin, tenant, MOST)
    return any(row["client_id"] == page.client and lists(identity, row, page.origin) for row in rows)


def lists(identity: Identity, row: Any, origin: str) -> bool:
    """Say whether an enabled client's row is ours and lists the origin."""
    tenant, client, document = row["tenant_id"], row["client_id"], row["document"]
    try:
        identity.sealer.check_mac(row["mac"], APP_CLIENT_MAC, tenant, fields(tenant, client, document, "enabled"))
    except Tampered:
        log.error("an app client was passed over: identity did not write it", extra={"tenant": tenant})
        return False
    return origin in msgspec.json.decode(document, type=AppClient).allowed_origins
