"""Queries about what people sign in with, through listed functions."""

from typing import Any

import msgspec

from api.areas.people.identity_types import LinkedWallet, WalletViolation, WalletViolations
from custody.identity.joining import WalletPolicy
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import AS_JSON, Listed, Page, cut, fitting
from custody.protocol.identity.identities import LinkedIdentity, provider_and_account, provider_of

_JUDGING = "SELECT judging FROM tenant_config WHERE tenant_id = $1"
_BEYOND_ONE = fitting("SELECT * FROM wallets_beyond_one($1, $2, $3) WITH ORDINALITY", "ordinality", f"2 * {AS_JSON}")
_COUNT = "SELECT COALESCE(max(total), 0) FROM wallets_beyond_one($1, 1, 0)"


class _Judging(msgspec.Struct, frozen=True):
    """Of what identity judges by, the part that the report shows."""

    wallet: WalletPolicy = WalletPolicy()


async def all_of(pool: Pool, user: str, page: Page) -> Listed[LinkedIdentity]:
    """List a person's identities, beside passkeys, the newest first."""
    rows = await pool.fetch("SELECT * FROM user_identities($1)", user)
    return cut([_identity(row) for row in rows], page)


async def violations(pool: Pool, tenant: str, page: Page) -> WalletViolations:
    """Members with more than one linked wallet, the newest members first."""
    async with tenant_scope(pool, tenant) as connection:
        text = await connection.fetchval(_JUDGING, tenant)
        rows = await connection.fetch(_BEYOND_ONE, tenant, page.limit, page.offset)
        total = rows[0]["total"] if rows else await connection.fetchval(_COUNT, tenant)
    judging = msgspec.json.decode(text, type=_Judging) if text else _Judging()
    enabled = judging.wallet.restrict_to_one_third_party_wallet
    return WalletViolations(tenant, enabled, [_violation(row) for row in rows], total, page.limit, page.offset)


def _violation(row: Any) -> WalletViolation:
    wallets = [
        LinkedWallet(str(account), provider_of(kind), subject)
        for account, kind, subject in zip(row["ids"], row["kinds"], row["subjects"], strict=True)
    ]
    return WalletViolation(str(row["user_id"]), row["email"], row["name"], row["role"], len(wallets), wallets)


def _identity(row: Any) -> LinkedIdentity:
    provider, account = provider_and_account(row["kind"], row["subject"])
    return LinkedIdentity(
        id=str(row["id"]),
        provider=provider,
        provider_account_id=account,
        verified=row["verified"],
        created_at=clock.iso(row["created_at"]),
    )
