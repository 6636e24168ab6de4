"""A person who signed in at our own page goes on to an app client: with a code, to an address that it lists."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from custody.kit import clock
from custody.kit.callers import Origin
from custody.protocol.identity.refusals import BadClientState, BadCodeChallenge
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_on import CodeGranted, GrantCode, LookAtSignIn, SignInAsked
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import sessions
from identity.sign_on import codes, destinations, domains
from identity.sign_on.codes import Granted
from identity.sign_on.providers import with_query
from identity.tokens import Bound


async def look(identity: Identity, message: LookAtSignIn, call: Call[None]) -> SignInAsked:
    """The app client that a person is to sign in for, and the ways in which they may."""
    async with identity.pool.acquire() as connection, connection.transaction(readonly=True):
        client = await destinations.demand_listed(
            connection, identity, message.tenant, message.client, message.redirect_uri
        )
        found = await domains.providers(connection, message.tenant)
    return SignInAsked(
        name=client.name,
        registers=client.allow_registration,
        oauth_off=sorted(name for name, on in client.login_methods.oauth.items() if not on),
        methods=found.methods(identity, message.tenant),
    )


async def grant(identity: Identity, message: GrantCode, call: Call[ProvenSession]) -> CodeGranted:
    """The address with a code for a session like the one that asks, in its tenant alone."""
    if not codes.CHALLENGE.fullmatch(message.code_challenge):
        raise BadCodeChallenge
    if not destinations.STATE.fullmatch(message.state):
        raise BadClientState
    tenant = call.caller.tenant
    async with identity.pool.acquire() as connection, connection.transaction():
        # In the tenant that the token names; the session may have gone on in another one since.
        session = msgspec.structs.replace(await sessions.own(connection, identity, call), tenant=tenant)
        await destinations.demand_listed(connection, identity, tenant, message.client, message.redirect_uri)
        granted = Granted(
            user=session.user,
            tenant=tenant,
            client=message.client,
            provider=session.provider,
            amr=session.amr,
            mfa_at=session.mfa_at,
            until=_until(session.bound),
        )
        code = await codes.grant(connection, identity, granted, message.redirect_uri, message.code_challenge)
        await sessions.note(connection, session, "session.code_made", call.origin, clientId=message.client)
    state = {"state": message.state} if message.state else {}
    return CodeGranted(with_query(message.redirect_uri, {"code": code, **state, "iss": identity.public_url}))


async def begin(
    connection: Any, identity: Identity, origin: Origin, granted: Granted, redirect_uri: str, session_id: str
) -> SignedIn:
    """The session behind such a code, if the app client is enabled and lists the address still."""
    await destinations.demand_listed(connection, identity, granted.tenant, granted.client, redirect_uri)
    return await sessions.begin(
        connection,
        identity,
        origin,
        granted.user,
        tenant=granted.tenant,
        provider=granted.provider,
        amr=granted.amr,
        mfa_at=granted.mfa_at,
        session_id=session_id,
        bound=Bound(granted.tenant, min(granted.until, _until(None))),
    )


def _until(bound: Bound | None) -> datetime:
    """Until when a session may go on that follows from one; of single sign-on no longer than that."""
    latest = clock.now() + timedelta(days=sessions.SESSION_DAYS)
    return min(bound.until, latest) if bound else latest
