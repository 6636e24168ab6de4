"""An administrator tries a provider before people depend on it: every check is shown, and nobody is signed in.

The address to open works once, for ten minutes, for a provider that may still be switched off. The last report is kept
for the tenant's administrators; nothing is decided by it.
"""

from datetime import timedelta

from custody.kit import clock
from custody.kit.errors import CustodyError
from custody.protocol.identity.sign_on import Check, SignOnTest, TestSignOn
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.sign_on import providers, requests
from identity.sign_on.requests import Request

# Each check with the beginnings of the codes of what can be wrong there, in the order in which they are made.
_OIDC: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("answer", "The provider signed the person in and sent the browser back", ("provider_refused", "issuer_mismatch")),
    ("exchange", "The provider exchanged its code for an ID token", ("token_endpoint", "profile_", "id_token_missing")),
    ("keys", "The provider's keys could be fetched", ("keys_",)),
    ("id_token", "The ID token is the provider's, for this client, and for this very sign-in", ("id_token",)),
    ("email", "It says that the e-mail address is verified", ("email_unverified", "userinfo_")),
    ("domain", "The address is in a domain that this tenant has verified", ("email_domain",)),
)
_ACCOUNT = ("account", "Somebody would be signed in")


async def begin(identity: Identity, message: TestSignOn, call: Call[ProvenSession]) -> SignOnTest:
    """An address at which a try of one provider begins."""
    tenant, until = call.caller.tenant, clock.now() + timedelta(seconds=requests.SECONDS)
    async with acting(identity, call) as connection:
        found = await providers.begins(connection, identity, tenant, message.provider)
        # No browser has it yet: it is a ticket to begin with, and no state.
        ticket = await requests.put(
            connection,
            identity,
            Request(
                kind=found.kind,
                provider=message.provider,
                tenant=tenant,
                browser="",
                configured=found.configured,
                redirect_uri="",
                state="",
                challenge="",
                test=True,
                ends_at=requests.ends_at(),
            ),
        )
        await tell(connection, call, "sso.test_begun", "sign_on", message.provider)
        await remember(connection, call, None)
    return SignOnTest(providers.with_query(found.address, {"test": ticket.state}), clock.iso(until))


def oidc_checks(refusal: CustodyError | None) -> list[Check]:
    """The checks of an ID token up to the one that a refusal belongs to."""
    failed = len(_OIDC)
    if refusal is not None:
        codes = (number for number, check in enumerate(_OIDC) if refusal.code.startswith(check[2]))
        failed = next(codes, len(_OIDC))
    checks = [_check(name, title, number, failed, refusal) for number, (name, title, _) in enumerate(_OIDC)]
    return [*checks, _check(*_ACCOUNT, len(_OIDC), failed if refusal else len(_OIDC) + 1, refusal)]


def _check(name: str, title: str, number: int, failed: int, refusal: CustodyError | None) -> Check:
    if number != failed or refusal is None:
        return Check(name, title, True if number < failed else None)
    said = {key: str(value)[:500] for key, value in refusal.context.items() if key in ("expected", "found")}
    return Check(name, title, False, said.get("expected"), said.get("found", refusal.message))
