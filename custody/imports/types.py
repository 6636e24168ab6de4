"""What clients send to import a private key."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import Uuid
from custody.protocol.signer.imports import Chain

_BASE64URL = r"^[A-Za-z0-9_-]+\Z"


class ImportBegun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For which of the agent's wallets a key comes."""

    chain: Annotated[Chain, described("`evm` or `solana`.")]


class SealedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A private key, sealed to the public key of a session. All in base64url without padding."""

    import_session_id: Annotated[Uuid, described("The session.")]
    ephemeral_public_key: Annotated[
        str,
        Meta(min_length=1, max_length=128, pattern=_BASE64URL),
        described("The client's own one-time X25519 key, as SPKI."),
    ]
    iv: Annotated[str, Meta(min_length=1, max_length=32, pattern=_BASE64URL), described("Twelve fresh random bytes.")]
    ciphertext: Annotated[
        str, Meta(min_length=1, max_length=6_000, pattern=_BASE64URL), described("The ciphertext, without its tag.")
    ]
    tag: Annotated[str, Meta(min_length=1, max_length=32, pattern=_BASE64URL), described("The tag, 16 bytes.")]

    def __repr__(self) -> str:
        return "SealedKey()"
