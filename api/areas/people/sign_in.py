"""Sign-in with a wallet or a code by e-mail; the signer checks both and begins the session."""

import msgspec

from api.areas.people.contract_wallets import demand_agreement
from api.areas.people.mfa_types import PasskeySignInBody
from custody.identity import siwe
from custody.kit.callers import Origin
from custody.kit.errors import Invalid, Unauthenticated
from custody.people.types import CodeSent, EmailCodeBody, EmailNotConfigured, PageHeaders, WalletBody
from custody.ports import Ports
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import NewEmailCode, SignInWithEmail, SignInWithPasskey, SignInWithWallet

# The signer's word that a message is right in everything but its signature, which only a contract could take.
CONTRACT_NEEDED = "contract_needed"


class TenantNeeded(Invalid):
    """`clientId` and `appClientId` name an app client of a tenant; send `tenantId` with them."""


async def with_wallet(ports: Ports, origin: Origin, headers: PageHeaders, body: WalletBody) -> SignedIn:
    """A session for the wallet that signed, or for the contract wallet that says so (EIP-1271)."""
    demand_tenant(body.tenant_id, body.client_id or body.app_client_id)
    if body.client_id is not None and headers.origin and headers.origin != siwe.page_of(siwe.parse(body.message)):
        raise siwe.SiweDomainMismatch
    message = SignInWithWallet(
        body.message, body.signature, body.tenant_id, client=body.client_id, app=body.app_client_id
    )
    try:
        return await ports.workers.tell(message, origin)
    except Unauthenticated as refusal:
        if refusal.code != CONTRACT_NEEDED:
            raise
    await demand_agreement(ports, body.message, body.signature)
    agreed = msgspec.structs.replace(message, by_contract=True)
    return await ports.workers.tell(agreed, origin)


async def with_email(ports: Ports, origin: Origin, body: EmailCodeBody) -> SignedIn:
    """A session for anyone who reads the address."""
    demand_tenant(body.tenant_id, body.app_client_id)
    return await ports.workers.tell(SignInWithEmail(body.email, body.code, body.tenant_id, body.app_client_id), origin)


async def with_passkey(ports: Ports, origin: Origin, body: PasskeySignInBody) -> SignedIn:
    """A session for the person whose passkey this is."""
    demand_tenant(body.tenant_id, body.app_client_id)
    return await ports.workers.tell(SignInWithPasskey(body.credential, body.tenant_id, body.app_client_id), origin)


def demand_tenant(tenant: str | None, client: str | None) -> None:
    """Raise TenantNeeded for an app client of no tenant."""
    if client is not None and tenant is None:
        raise TenantNeeded(fields=["tenantId"])


async def send_code(ports: Ports, origin: Origin, email: str) -> CodeSent:
    """Mail a code. The answer waits for no mail server, and is the same whether somebody has this address or not."""
    if ports.mail is None:
        raise EmailNotConfigured
    made = await ports.workers.tell(NewEmailCode(email), origin)
    if made.code is not None:
        ports.mail.send_code(made.email, made.code)
    return CodeSent(made.expires_at)
