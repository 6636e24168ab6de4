"""Sign-in with a wallet: identity checks the signature itself, and uses up the nonce with it. EIP-4361."""

from datetime import timedelta
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from custody.chains import base58
from custody.chains.evm.personal_message import BadSignature, recover
from custody.identity import siwe
from custody.identity.siwe import SiweMessage
from custody.kit import clock, tokens
from custody.kit.errors import Unauthenticated
from custody.protocol.identity.identities import WalletProof
from custody.protocol.identity.refusals import NonceInvalid, SignatureInvalid, SiweChainUnknown
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import NewNonce, Nonce, SignInWithWallet
from custody.worker.call import Call
from identity.administration import origins
from identity.context import Identity
from identity.people import attempts, registration, sessions
from identity.tokens import Page

NONCE_SECONDS = 300
_PUT = "INSERT INTO sign_in_nonces (nonce_hash, expires_at) VALUES ($1, $2)"
# Anyone who asks clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM sign_in_nonces WHERE nonce_hash IN "
    "(SELECT nonce_hash FROM sign_in_nonces WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_LIVES = "SELECT expires_at > service_now() FROM sign_in_nonces WHERE nonce_hash = $1"
_USE = "DELETE FROM sign_in_nonces WHERE nonce_hash = $1 RETURNING expires_at > service_now()"


class Proven(NamedTuple):
    """The kind and subject of a wallet that signed."""

    kind: str
    subject: str


class ContractNeeded(Unauthenticated):
    """The signature is not the wallet key's; only a contract wallet could accept it."""


async def new_nonce(identity: Identity, message: NewNonce, call: Call[None]) -> Nonce:
    """A nonce for one message."""
    nonce, expires_at = tokens.new_nonce(), clock.now() + timedelta(seconds=NONCE_SECONDS)
    async with identity.pool.acquire() as connection:
        await connection.execute(_PUT, tokens.digest(nonce), expires_at)
        await connection.execute(_CLEAR)
    return Nonce(nonce, clock.iso(expires_at))


async def with_wallet(identity: Identity, message: SignInWithWallet, call: Call[None]) -> SignedIn:
    """A session for the wallet that signed. Its first one makes a user and a tenant of their own."""
    said = siwe.parse(message.message)
    page = await _page(identity, said, message)
    kind, subject = await _prove(identity, said, message)
    async with identity.pool.acquire() as connection, connection.transaction():
        user = await registration.find_or_make(
            connection, identity, call.origin, kind, subject, tenant=message.tenant, app=message.app or message.client
        )
        return await sessions.begin(
            connection,
            identity,
            call.origin,
            user,
            tenant=message.tenant,
            provider="siwe",
            amr=("wallet",),
            page=page,
        )


async def prove(identity: Identity, shown: WalletProof) -> Proven:
    """The wallet that signed a message for our own address just now; the nonce is used up."""
    said = siwe.parse(shown.message)
    siwe.check(said, domains=siwe.domains_of(identity.public_url), now=clock.now())
    return await _prove(identity, said, shown)


async def _prove(identity: Identity, said: SiweMessage, shown: SignInWithWallet | WalletProof) -> Proven:
    """Find whose the signature is.

    A contract wallet has no key to recover; that its contract agreed is the api's word, so what signs in that way is
    another identity than a wallet that signed itself, and no such word ever opens that one's account.
    """
    chain = identity.chains.find(said.chain_id)
    if chain is None or chain.family != said.family:
        raise SiweChainUnknown
    if said.family == "solana":
        if not _signed_by_solana(said.address, shown):
            raise SignatureInvalid
        found = Proven("solana", said.address)
    elif shown.by_contract:
        found = Proven("contract", f"{said.chain_id}:{said.address}")
    elif _signed_by(said.address, shown):
        found = Proven("wallet", said.address)
    else:
        raise await _refusal(identity, tokens.digest(said.nonce))
    await _use(identity, said.nonce)
    return found


async def _page(identity: Identity, said: SiweMessage, message: SignInWithWallet) -> Page | None:
    """At which app client's page the message was signed, None at our own; SiweDomainMismatch anywhere else.

    The wallet showed the person that page's address. So a tenant that lists an origin gets a session in itself alone.
    """
    if message.client is None:
        siwe.check(said, domains=siwe.domains_of(identity.public_url), now=clock.now())
        return None
    page = Page(message.client, siwe.page_of(said))
    siwe.check_times(said, now=clock.now())
    if message.tenant is None or not await origins.is_page_of(identity, page, message.tenant):
        raise siwe.SiweDomainMismatch
    return page


def _signed_by(address: str, shown: SignInWithWallet | WalletProof) -> bool:
    try:
        return recover(shown.message, shown.signature) == address
    except BadSignature:
        return False


def _signed_by_solana(address: str, shown: SignInWithWallet | WalletProof) -> bool:
    """Ed25519 over the text as it is: what wallets do when a page asks them to sign a message."""
    try:
        public = Ed25519PublicKey.from_public_bytes(base58.decode(address) or b"")
        public.verify(bytes.fromhex(shown.signature.removeprefix("0x")), shown.message.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


async def _refusal(identity: Identity, nonce: bytes) -> Unauthenticated:
    """Choose the answer to a signature that is not the wallet's own: ContractNeeded once for a nonce that lives.

    The api asks a node then; so nobody has it ask more often than they get nonces.
    """
    async with identity.pool.acquire() as connection:
        if not await connection.fetchval(_LIVES, nonce):
            return NonceInvalid()
    asked_before = not await attempts.is_within(identity, f"contract:{nonce.hex()}", 1, NONCE_SECONDS)
    return SignatureInvalid() if asked_before else ContractNeeded()


async def _use(identity: Identity, nonce: str) -> None:
    """Use up a nonce for good, whatever becomes of the sign-in."""
    async with identity.pool.acquire() as connection:
        if not await connection.fetchval(_USE, tokens.digest(nonce)):
            raise NonceInvalid
