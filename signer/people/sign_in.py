"""Sign-in with Ethereum: the signer checks the signature itself, and uses up the nonce with it. Spec 1/5, EIP-4361."""

from datetime import timedelta

from custody.chains.evm.personal_message import BadSignature, recover
from custody.identity import siwe
from custody.kit import clock, tokens
from custody.kit.errors import Unauthenticated
from custody.protocol.messages import Done, NewNonce, Outcome, SignInWithWallet
from signer.context import Ask, Signer
from signer.people import attempts, persons, sessions

NONCE_SECONDS = 300
_PUT = "INSERT INTO sign_in_nonces (nonce_hash, expires_at) VALUES ($1, $2)"
# Whoever asks clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM sign_in_nonces WHERE nonce_hash IN "
    "(SELECT nonce_hash FROM sign_in_nonces WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_LIVES = "SELECT expires_at > service_now() FROM sign_in_nonces WHERE nonce_hash = $1"
_USE = "DELETE FROM sign_in_nonces WHERE nonce_hash = $1 RETURNING expires_at > service_now()"


class NonceInvalid(Unauthenticated):
    """The nonce is unknown, used or older than five minutes; get another one from GET /auth/nonce."""


class SignatureInvalid(Unauthenticated):
    """The signature is not that of the wallet in the message."""


class ContractNeeded(Unauthenticated):
    """The message is right but for its signature, which only a contract could take for its own."""


class SiweChainUnknown(Unauthenticated):
    """The message names a chain that this service does not know."""


async def new_nonce(signer: Signer, message: NewNonce, ask: Ask[None]) -> Outcome:
    """A nonce for one message."""
    nonce, expires_at = tokens.new_nonce(), clock.now() + timedelta(seconds=NONCE_SECONDS)
    async with signer.pool.acquire() as connection:
        await connection.execute(_PUT, tokens.digest(nonce), expires_at)
        await connection.execute(_CLEAR)
    return Done({"nonce": nonce, "expiresAt": clock.iso(expires_at)})


async def with_wallet(signer: Signer, message: SignInWithWallet, ask: Ask[None]) -> Outcome:
    """A session for the wallet that signed. Its first one makes a user and a tenant of his own.

    A contract wallet has no key to recover; that its contract agreed is the api's word, so what signs in that way is
    another identity than a wallet that signed itself, and no such word ever opens that one's account.
    """
    said = siwe.parse(message.message)
    siwe.check(said, domains=siwe.domains_of(signer.public_url), now=clock.now())
    chain = signer.chains.find(said.chain_id)
    if chain is None or chain.family != "evm":
        raise SiweChainUnknown
    if message.by_contract:
        kind, subject = "contract", f"{said.chain_id}:{said.address}"
    elif _signed_by(said.address, message):
        kind, subject = "wallet", said.address
    else:
        raise await _refusal(signer, tokens.digest(said.nonce))
    await _use(signer, said.nonce)
    async with signer.pool.acquire() as connection, connection.transaction():
        user = await persons.find_or_make(connection, signer, kind, subject)
        return Done(
            await sessions.begin(
                connection, signer, ask.origin, user, tenant=message.tenant, provider="siwe", amr=("wallet",)
            )
        )


def _signed_by(address: str, message: SignInWithWallet) -> bool:
    try:
        return recover(message.message, message.signature) == address
    except BadSignature:
        return False


async def _refusal(signer: Signer, nonce: bytes) -> Unauthenticated:
    """What to answer to a signature that is not the wallet's own: ContractNeeded once for a nonce that lives.

    The api asks a node then; so nobody has it ask more often than he gets nonces.
    """
    async with signer.pool.acquire() as connection:
        if not await connection.fetchval(_LIVES, nonce):
            return NonceInvalid()
    asked_before = not await attempts.is_within(signer, f"contract:{nonce.hex()}", 1, NONCE_SECONDS)
    return SignatureInvalid() if asked_before else ContractNeeded()


async def _use(signer: Signer, nonce: str) -> None:
    """Use up a nonce for good, whatever becomes of the sign-in."""
    async with signer.pool.acquire() as connection:
        if not await connection.fetchval(_USE, tokens.digest(nonce)):
            raise NonceInvalid
