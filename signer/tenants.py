"""Deleting a tenant: its wallets' keys go with it, so it is the signer's act. Identity makes tenants."""

from custody.kit import tokens
from custody.protocol.refusals import TenantAbsent
from custody.protocol.signer.operation import DeletedTenant, DeleteTenant
from custody.worker.act import act
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenPlatform
from signer.context import Signer

_DELETE = "SELECT delete_tenant($1, $2, $3)"


async def delete(signer: Signer, message: DeleteTenant, call: Call[ProvenPlatform]) -> DeletedTenant:
    """Delete a tenant with everything it has. Permanent."""
    outcome = DeletedTenant(message.id)
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _DELETE, message.id, tokens.digest(call.credential), act(call, pack(outcome))
        )
    if result == "absent":
        raise TenantAbsent
    signer.policies.heads.forget_sets(message.id)
    return outcome
