"""A person who administers the walk-through's tenant: signs in with a wallet, then shows a second factor."""

import secrets
from base64 import b32decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from eth_keys.datatypes import PrivateKey
from eth_utils.crypto import keccak

from custody.kit import clock
from custody.kit.environment import public_url
from ops.demo.callers import Api
from ops.demo.tenant import platform_key
from ops.local_chain.ledger import CHAIN_ID
from ops.settings import Settings


@asynccontextmanager
async def signed_in(anybody: Api, tenant_id: str, settings: Settings) -> AsyncIterator[Api]:
    """The API as a new admin of the tenant with a recent second factor, who is no member any more afterwards."""
    session = await anybody.do("POST", "/auth/verify", await _signed_message(anybody, settings))
    person = anybody.with_token(session["token"])
    operator = anybody.with_platform_key(platform_key(settings))
    members, user = f"/platform/tenants/{tenant_id}/members", session["user"]["id"]
    await operator.do("POST", members, {"userId": user, "role": "admin"})
    try:
        seed = (await person.do("POST", "/auth/mfa/totp/enroll", {}))["secret"]
        session = await person.do("POST", "/auth/mfa/totp/verify", {"code": _code(seed)})
        person = anybody.with_token(session["token"])
        session = await person.do("POST", "/auth/session/tenant", {"tenantId": tenant_id})
        yield anybody.with_token(session["token"])
    finally:
        # Nobody keeps the wallet.
        await operator.do("DELETE", f"{members}/{user}")


async def _signed_message(anybody: Api, settings: Settings) -> dict[str, str]:
    nonce = (await anybody.get("/auth/nonce"))["nonce"]
    wallet, site = PrivateKey(secrets.token_bytes(32)), public_url(settings.environment)  # noqa: TID251 - a key, no token
    lines = (
        f"{urlsplit(site).netloc} wants you to sign in with your Ethereum account:",
        wallet.public_key.to_checksum_address(),
        "",
        "",
        f"URI: {site}",
        "Version: 1",
        f"Chain ID: {CHAIN_ID}",
        f"Nonce: {nonce}",
        f"Issued At: {clock.iso(clock.now())}",
    )
    message = "\n".join(lines)
    # As wallets sign texts (EIP-191).
    digest = keccak(f"\x19Ethereum Signed Message:\n{len(message)}{message}".encode())
    return {"message": message, "signature": "0x" + wallet.sign_msg_hash(digest).to_bytes().hex()}


def _code(seed: str) -> str:
    """Compute what an authenticator app shows for this seed now."""
    padded = seed + "=" * (-len(seed) % 8)
    app = TOTP(b32decode(padded), 6, SHA1(), 30, enforce_key_length=False)  # noqa: S303 - as apps have it
    return app.generate(int(clock.now().timestamp())).decode()
