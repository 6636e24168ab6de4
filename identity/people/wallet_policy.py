"""A tenant's wallet policy: its admins unlink wallets of members who have more than one.

They take a way to sign in from somebody else. So what they ask for is recorded before it is judged, nobody loses the
last way in, and nobody who is also a member elsewhere loses any.
"""

from typing import Any

from custody.kit import clock
from custody.protocol.identity.identities import (
    WALLETS,
    Refusal,
    RemediateWallets,
    WalletAt,
    WalletOutcome,
    WalletOutcomes,
    provider_of,
)
from custody.webhooks.payload import UserUnlinkedAccount, encode_events
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import identities, ways_in
from identity.people.persons import Known, hold, personal

_HOLD_PERSON = "SELECT id FROM users WHERE id = $1 FOR UPDATE"
# One round trip each for what is asked and done together: fifty wallets are fifty transactions.
_STANDS = (
    "SELECT (SELECT role FROM memberships WHERE tenant_id = $1 AND user_id = $2) AS role, "
    "is_member_elsewhere($2, $1, $3) AS elsewhere"
)
_END_SESSIONS = (
    "WITH turned_away AS (DELETE FROM device_codes WHERE user_id = $1 AND status = 'approved') "
    "UPDATE sessions SET revoked_at = service_now() WHERE user_id = $1 AND revoked_at IS NULL RETURNING id"
)
_EMIT = "SELECT emit(NULL, $1)"


async def remediate(identity: Identity, message: RemediateWallets, call: Call[ProvenSession]) -> WalletOutcomes:
    """Unlink each wallet that may be, one after the other; a failure takes nothing back of the others."""
    outcomes = [await _one(identity, call, wallet) for wallet in message.wallets]
    outcome = WalletOutcomes(call.caller.tenant, outcomes)
    if call.key is not None:
        async with identity.pool.acquire() as connection, connection.transaction():
            await remember(connection, call, outcome)
    return outcome


async def _one(identity: Identity, call: Call[ProvenSession], wallet: WalletAt) -> WalletOutcome:
    """One wallet; both its audit rows are written whether it may be unlinked or not."""
    said = {"accountId": wallet.account}
    async with acting(identity, call) as connection:
        await tell(connection, call, "wallet_policy.remediation_authorized", "user", wallet.user, **said)
        held = await identities.look_up(connection, wallet.account, wallet.user)
        if held is not None:
            await hold(connection, *held)
        # What signs in, links or unlinks waits for this, and this for that.
        await connection.execute(_HOLD_PERSON, wallet.user)
        found = await identities.of_person(connection, identity, wallet.user, wallet.account)
        refusal = await _refusal(connection, call.caller, wallet, found)
        if refusal is not None or found is None:
            await tell(connection, call, "wallet_policy.refused", "user", wallet.user, reason=refusal, **said)
            return WalletOutcome(wallet.user, wallet.account, code=refusal)
        provider, now = provider_of(found.kind), clock.now()
        await identities.remove(connection, wallet.account)
        ended = await connection.fetch(_END_SESSIONS, wallet.user)
        payload = UserUnlinkedAccount(user_id=wallet.user, provider=provider, account_id=wallet.account)
        await connection.execute(_EMIT, encode_events(payload))
        await tell(
            connection,
            call,
            "wallet_policy.remediated",
            "user",
            wallet.user,
            provider=provider,
            sessionsEnded=len(ended),
            **said,
        )
    return WalletOutcome(wallet.user, wallet.account, provider, found.subject, clock.iso(now))


async def _refusal(connection: Any, caller: ProvenSession, wallet: WalletAt, found: Known | None) -> Refusal | None:
    """Why the wallet stays; None: it may be unlinked."""
    stands = await connection.fetchrow(_STANDS, caller.tenant, wallet.user, personal(wallet.user))
    if stands["role"] is None:
        return "member_absent"
    if wallet.user == caller.user:
        return "own_account"
    if stands["role"] == "owner" and caller.role != "owner":
        return "owner_only"
    if found is None:
        return "identity_absent"
    if found.kind not in WALLETS:
        return "not_wallet"
    if stands["elsewhere"]:
        return "member_elsewhere"
    if not await ways_in.has_without(connection, wallet.user, wallet.account):
        return "last_login_method"
    return None
