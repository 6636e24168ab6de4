"""Sign-in with a wallet or a code by e-mail; the signer checks both and begins the session. Spec 1/5, decisions 5."""

import msgspec

from custody.kit.callers import Origin
from custody.kit.errors import Unauthenticated
from custody.people.contract_wallets import demand_agreement
from custody.people.types import CodeSent, EmailCodeBody, EmailNotConfigured, Nonce, SignedIn, WalletBody
from custody.ports import Ports
from custody.protocol.client import told
from custody.protocol.messages import NewEmailCode, NewNonce, SignInWithEmail, SignInWithWallet

# The signer's word that a message is right in everything but its signature, which only a contract could take.
_CONTRACT_NEEDED = "contract_needed"


async def nonce(ports: Ports, origin: Origin) -> Nonce:
    """A nonce for one message."""
    return msgspec.convert(await told(ports.signer, NewNonce(), origin), Nonce)


async def with_wallet(ports: Ports, origin: Origin, body: WalletBody) -> SignedIn:
    """A session for the wallet that signed, or for the contract wallet that says so (EIP-1271)."""
    message = SignInWithWallet(body.message, body.signature, body.tenant_id)
    try:
        return msgspec.convert(await told(ports.signer, message, origin), SignedIn)
    except Unauthenticated as refusal:
        if refusal.code != _CONTRACT_NEEDED:
            raise
    await demand_agreement(ports, body.message, body.signature)
    agreed = msgspec.structs.replace(message, by_contract=True)
    return msgspec.convert(await told(ports.signer, agreed, origin), SignedIn)


async def send_code(ports: Ports, origin: Origin, email: str) -> CodeSent:
    """Mail a code. The answer waits for no mail server, and is the same whether somebody has this address or not."""
    if ports.mail is None:
        raise EmailNotConfigured
    data = await told(ports.signer, NewEmailCode(email), origin)
    if data["code"] is not None:
        ports.mail.send_code(data["email"], data["code"])
    return CodeSent(data["expiresAt"])


async def with_email(ports: Ports, origin: Origin, body: EmailCodeBody) -> SignedIn:
    """A session for whoever reads the address."""
    message = SignInWithEmail(body.email, body.code, body.tenant_id)
    return msgspec.convert(await told(ports.signer, message, origin), SignedIn)
