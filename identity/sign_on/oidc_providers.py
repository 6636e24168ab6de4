"""A tenant's OIDC providers as they are kept: each one document under a MAC."""

from typing import Any

import msgspec

from custody.identity.oidc_provider import OidcProvider
from custody.worker.sealing import Tampered, fields
from identity.context import Identity

OIDC_PROVIDER_MAC = "oidc-provider-mac"
_FIND = "SELECT document, mac FROM oidc_providers WHERE tenant_id = $1 AND id = $2"


async def find(connection: Any, identity: Identity, tenant: str, provider: str) -> OidcProvider | None:
    """A provider of the tenant that the transaction is in; Tampered unless identity wrote it."""
    row = await connection.fetchrow(_FIND, tenant, provider)
    if row is None:
        return None
    identity.sealer.check_mac(row["mac"], OIDC_PROVIDER_MAC, tenant, fields(tenant, provider, row["document"]))
    found = msgspec.json.decode(row["document"], type=OidcProvider)
    if found.id != provider:
        raise Tampered
    return found
