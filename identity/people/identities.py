"""The identities of a person, linked and unlinked by themselves. Nothing is linked because two addresses are equal."""

from typing import Any

from custody.kit import clock
from custody.protocol.identity.identities import (
    WALLETS,
    EmailProof,
    Linked,
    LinkedIdentity,
    LinkIdentity,
    OAuthProof,
    UnlinkedIdentity,
    UnlinkIdentity,
    WalletProof,
    provider_and_account,
    provider_of,
)
from custody.protocol.identity.refusals import (
    IdentityAbsent,
    IdentityChoice,
    IdentityTaken,
    LastLoginMethod,
    NotLinkable,
    OneWalletOnly,
)
from custody.protocol.identity.sign_on import ExchangeCode
from custody.worker.acts import remember
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenSession
from identity.administration import config
from identity.context import Identity
from identity.people import email_codes, factors, persons, sessions, sign_in, ways_in
from identity.people.persons import IDENTITY_MAC, Known, of_row
from identity.sign_on import codes

_ROW = (
    "SELECT id, kind, subject, user_id, tenant_id, verified, blocked_at, mac, created_at FROM identities WHERE id = $1"
)
_SHOWN = "SELECT id, verified, created_at FROM identities WHERE kind = $1 AND subject = $2"
_WALLETS = "SELECT count(*) FROM identities WHERE user_id = $1 AND kind = ANY($2)"
_REMOVE = "DELETE FROM identities WHERE id = $1"
# What began with a wallet that was lost must not go on; the one who asks stays.
_END_SESSIONS = (
    "UPDATE sessions SET revoked_at = service_now() WHERE user_id = $1 AND provider = $2 AND id <> $3 "
    "AND revoked_at IS NULL"
)
_WALLET_PROVIDER = "siwe"


async def link(identity: Identity, message: LinkIdentity, call: Call[ProvenSession]) -> Linked:
    """Link what the message proves; what is the person's already stays so, and counts as proven."""
    factors.need(call)
    kind, subject = await _prove(identity, message)
    async with factors.changing(identity, call, way_in=True, held=(kind, subject)) as connection:
        found = await persons.find(connection, identity, kind, subject)
        if found is not None and found.user != call.caller.user:
            raise IdentityTaken
        if found is None:
            await _add(connection, identity, call, Known(kind=kind, subject=subject, user=call.caller.user))
        elif not found.verified:
            await persons.verify(connection, identity, found)
        outcome = Linked(await _to_public(connection, kind, subject), found is None)
        if found is None or not found.verified:
            action = "identity.linked" if found is None else "identity.verified"
            await factors.note(connection, call, action, "identity", outcome.identity.id, provider=provider_of(kind))
        await remember(connection, call, outcome)
    return outcome


async def unlink(identity: Identity, message: UnlinkIdentity, call: Call[ProvenSession]) -> UnlinkedIdentity:
    """Unlink an identity of the person's own."""
    factors.need(call)
    outcome, user = UnlinkedIdentity(message.identity), call.caller.user
    async with identity.pool.acquire() as connection:
        seen = await connection.fetchrow(_ROW, message.identity)
    if seen is None or str(seen["user_id"]) != user:
        raise IdentityAbsent
    async with factors.changing(identity, call, way_in=True, held=(seen["kind"], seen["subject"])) as connection:
        found = await of_person(connection, identity, user, message.identity)
        if found is None:
            raise IdentityAbsent
        if not await ways_in.has_without(connection, user, message.identity):
            raise LastLoginMethod
        await connection.execute(_REMOVE, message.identity)
        provider = _WALLET_PROVIDER if found.kind in WALLETS else found.kind
        await connection.execute(_END_SESSIONS, user, provider, call.caller.session)
        await sessions.turn_away(connection, user)
        await factors.note(
            connection, call, "identity.unlinked", "identity", message.identity, provider=provider_of(found.kind)
        )
        await remember(connection, call, outcome)
    return outcome


async def look_up(connection: Any, identity_id: str, user: str) -> tuple[str, str] | None:
    """Kind and subject of an identity, for `hold`; None unless it is this person's."""
    row = await connection.fetchrow(_ROW, identity_id)
    return (row["kind"], row["subject"]) if row is not None and str(row["user_id"]) == user else None


async def of_person(connection: Any, identity: Identity, user: str, identity_id: str) -> Known | None:
    """An identity by its id, its MAC found true; None unless it is this person's."""
    row = await connection.fetchrow(_ROW, identity_id)
    if row is None or str(row["user_id"]) != user:
        return None
    found = of_row(row)
    identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, found.content)
    return found


async def remove(connection: Any, identity_id: str) -> None:
    """Unlink an identity that was found under both locks."""
    await connection.execute(_REMOVE, identity_id)


async def _prove(identity: Identity, message: LinkIdentity) -> tuple[str, str]:
    """Kind and subject of what the message proves; the code or nonce is used up."""
    match (message.wallet, message.email, message.oauth):
        case (WalletProof() as wallet, None, None):
            return await sign_in.prove(identity, wallet)
        case (None, EmailProof() as email, None):
            return "email", await email_codes.prove(identity, email.email, email.code)
        case (None, None, OAuthProof() as oauth):
            shown = ExchangeCode(code=oauth.code, code_verifier=oauth.code_verifier, redirect_uri=oauth.redirect_uri)
            proven = (await codes.use(identity, shown)).proven
            if proven is None or proven.of_tenant:
                raise NotLinkable
            return proven.kind, proven.subject
    raise IdentityChoice


async def _add(connection: Any, identity: Identity, call: Call[ProvenSession], made: Known) -> None:
    if made.kind in WALLETS:
        judging = await config.judging_of(connection, identity, call.caller.tenant)
        restricted = judging.wallet.restrict_to_one_third_party_wallet
        if restricted and await connection.fetchval(_WALLETS, made.user, list(WALLETS)):
            raise OneWalletOnly
    await persons.add_identity(connection, identity, made)


async def _to_public(connection: Any, kind: str, subject: str) -> LinkedIdentity:
    row = await connection.fetchrow(_SHOWN, kind, subject)
    provider, account = provider_and_account(kind, subject)
    return LinkedIdentity(
        id=str(row["id"]),
        provider=provider,
        provider_account_id=account,
        verified=row["verified"],
        created_at=clock.iso(row["created_at"]),
    )
