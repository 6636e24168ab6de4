"""The maker of a tenant: a person with many of them has no more of what tenants share than others."""

from typing import Final

from custody.kit.db import Pool, tenant_scope

_MAKER: Final = "SELECT made_by FROM tenants WHERE id = $1"
_PERSONAL: Final = "personal-"


async def maker_of(pool: Pool, tenant: str) -> str | None:
    """The person who made a tenant, or whose own it is; None where an operator did."""
    if tenant.startswith(_PERSONAL):
        return tenant.removeprefix(_PERSONAL)
    async with tenant_scope(pool, tenant) as connection:
        maker = await connection.fetchval(_MAKER, tenant)
    return None if maker is None else str(maker)
