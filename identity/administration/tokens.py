"""Names that the owners of a tenant give its tokens, under the MAC of what the tenant is judged by.

So a database writer renames none: a row that they changed is refused, and the names with it.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from custody.kit.errors import Unavailable
from custody.policies.named_tokens import NamedToken
from custody.protocol.identity.refusals import BadTokens
from custody.protocol.identity.tenants import NamedTokens, PutTokens, ReadTokens
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession, ProvenTenant
from identity.administration.config import judging_of
from identity.context import Identity

_READ = "SELECT version, judging, mac FROM config_read($1)"
_DOCUMENT = "SELECT document FROM tenant_config WHERE tenant_id = $1"
_PUT = "SELECT put_config($1, $2, $3, $4, $5)"
# Of a tenant that was never configured: what is shown of one stays as it is.
_NO_DOCUMENT = ""
_EVM: Final = re.compile(r"evm:[1-9][0-9]{0,15}:0x[0-9a-fA-F]{40}\Z")
_SOLANA: Final = re.compile(r"solana:[1-9A-HJ-NP-Za-km-z]{32,44}\Z")
# The coins of the chains: a token that is called like one would be taken for it.
_COINS: Final = frozenset({"BNB", "BTC", "ETH", "POL", "SOL", "USD"})


async def put(identity: Identity, message: PutTokens, call: Call[ProvenSession]) -> NamedTokens:
    """Replace all names in one transaction; the rest of what is judged by stays as it is."""
    tenant, named = call.caller.tenant, _normalize(message.tokens)
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_READ, tenant)
        before = identity.judging.open(tenant, row["version"], row["judging"], row["mac"])
        after = msgspec.structs.replace(before, tokens=named or UNSET)
        text, mac = identity.judging.seal(tenant, row["version"] + 1, msgspec.to_builtins(after))
        # A document that changed since its version was read is not written: the version is another one then.
        document = await connection.fetchval(_DOCUMENT, tenant) or _NO_DOCUMENT
        if not await connection.fetchval(_PUT, tenant, row["version"], document, text, mac):
            raise Unavailable
        changed = {one.asset: _describe(one) for one in named if one not in before.named}
        dropped = sorted({one.asset for one in before.named} - {one.asset for one in named})
        await tell(connection, call, "tenant.tokens_named", "tenant", tenant, named=changed, dropped=dropped)
        outcome = NamedTokens([*named])
        await remember(connection, call, outcome)
    return outcome


async def read(identity: Identity, _message: ReadTokens, call: Call[ProvenTenant]) -> NamedTokens:
    """Read the names, once their seal was checked: the api has no key to check one with."""
    async with identity.pool.acquire() as connection, connection.transaction():
        judging = await judging_of(connection, identity, call.caller.tenant)
    return NamedTokens([*judging.named])


def _describe(one: NamedToken) -> str:
    return f"{one.symbol}, {one.decimals} decimals"


def _normalize(tokens: Sequence[NamedToken]) -> tuple[NamedToken, ...]:
    """The same with each asset in the one spelling that effects have; raises BadTokens."""
    found = dict[str, NamedToken]()
    for one in tokens:
        asset = one.asset.lower() if _EVM.match(one.asset) else one.asset
        if asset == one.asset and not (_EVM.match(asset) or _SOLANA.match(asset)):
            raise BadTokens(
                f"{asset!r} is no token: send evm:<chainId>:<address>, or solana:<mint>.", fields=["tokens"]
            )
        if asset in found:
            raise BadTokens(f"{asset} is named twice.", fields=["tokens"])
        if one.symbol.upper() in _COINS:
            raise BadTokens(f"A token cannot be called {one.symbol}, as a chain's own coin is.", fields=["tokens"])
        found[asset] = msgspec.structs.replace(one, asset=asset)
    return tuple(found.values())
