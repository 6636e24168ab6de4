"""The proof of a caller who only reads: the api has no key to check a MAC with, and must not believe a planted row."""

from custody.protocol.identity.tenants import (
    Vouch,
    Vouched,
    VouchedAppClient,
    VouchedPlatform,
    VouchedSession,
    VouchedTenant,
)
from custody.worker.call import Call
from custody.worker.proven import Proven, ProvenAgent, ProvenAppClient, ProvenPlatform, ProvenSession
from identity.administration import api_keys
from identity.context import Identity


async def vouch(identity: Identity, _message: Vouch, call: Call[Proven]) -> Vouched:
    """Say what was proven of the caller, for the api to compare with the row that it read.

    The api asks once a minute for each key in use: that is how the time of its last use is known.
    """
    caller = call.caller
    if isinstance(caller, ProvenPlatform):
        return VouchedPlatform(None if caller.scopes is None else sorted(caller.scopes))
    if isinstance(caller, ProvenSession):
        return VouchedSession(caller.tenant, caller.user, caller.role, caller.policy)
    if isinstance(caller, ProvenAppClient):
        return VouchedAppClient(caller.tenant, caller.client)
    # An agent's row has no MAC, and its token speaks for itself: the table takes none of them.
    assert not isinstance(caller, ProvenAgent)  # noqa: S101
    await api_keys.note_use(identity, caller)
    return VouchedTenant(caller.tenant)
