"""Queries of people's wallets."""

import msgspec

from custody.chains.built_in import WALLETS
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.protocol.signer.agents import WalletAddresses
from custody.protocol.signer.user_wallets import PREFIX, UserWallet

_ALL = """
SELECT a.id, a.created_at, (SELECT json_object_agg(w.family, w.address)::text FROM wallets w
   WHERE w.tenant_id = $1 AND w.agent_id = a.id AND w.scope = '') AS wallets
  FROM agents a WHERE a.tenant_id = $1 AND a.id = ANY ($2)
"""
_MOST = 256
_decode = msgspec.json.Decoder(dict[str, str]).decode


async def wallets(pool: Pool, tenant: str, user: str) -> list[UserWallet]:
    """A person's wallets by index."""
    places = {f"{PREFIX}{user}-{index}": index for index in range(_MOST)}
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_ALL, tenant, list(places))
    found = [
        UserWallet(row["id"], places[row["id"]], _addresses(row["wallets"]), clock.iso(row["created_at"]))
        for row in rows
    ]
    return sorted(found, key=lambda wallet: wallet.wallet_index)


def _addresses(text: str | None) -> WalletAddresses:
    known = _decode(text or "{}")
    return WalletAddresses(**{family: known.get(family, "") for family in WALLETS})
