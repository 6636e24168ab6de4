"""The check of addresses against the keys that lie here: what people fund must be a wallet that can spend it."""

from typing import Any

from custody.kit.db import tenant_scope
from custody.kit.logs import logger
from custody.protocol.signer.agents import ClaimedAddresses, HaveKeys
from custody.worker.call import Call
from custody.worker.sealing import Context, Tampered
from signer.context import Signer
from signer.wallets.built_in import BORN_WITH, address_of

log = logger(__name__)
_READ = """
SELECT a.id, a.incarnation::text, s.purpose, s.blob
  FROM agents a JOIN sealed s ON s.tenant_id = a.tenant_id AND s.owner_kind = 'agent' AND s.owner = a.id
 WHERE a.tenant_id = $1 AND a.id = ANY ($2) AND s.purpose = ANY ($3)
"""


async def have_keys(signer: Signer, message: HaveKeys, call: Call[None]) -> list[str]:
    """Open the keys of a few agents, and name those whose addresses are others. No key leaves."""
    named = [one.agent for one in message.claimed]
    async with tenant_scope(signer.pool, message.tenant) as connection:
        rows = await connection.fetch(_READ, message.tenant, named, list(BORN_WITH))
    own = {(row["id"], row["purpose"]): _address(signer, message.tenant, row) for row in rows}
    others = [one.agent for one in message.claimed if not _holds(own, one)]
    if others:
        log.error(
            "addresses are not those of their keys",
            extra={"tenant": message.tenant, "agents": others, "request_id": call.origin.request_id},
        )
    return others


def _holds(own: dict[tuple[str, str], str | None], one: ClaimedAddresses) -> bool:
    """An agent that is older than a family has neither key nor address of it; one without the other is tampering."""
    claimed = {family: address for family, address in one.wallets if address}
    return claimed == {family: address for (agent, family), address in own.items() if agent == one.agent}


def _address(signer: Signer, tenant: str, row: Any) -> str | None:
    purpose = row["purpose"]
    try:
        secret = signer.sealer.open(row["blob"], Context(tenant, "agent", row["id"], purpose, row["incarnation"]))
        return address_of(purpose, secret)
    except (Tampered, ValueError):
        return None
