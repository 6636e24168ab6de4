"""Private keys that come from elsewhere, sealed to a one-time key of the signer."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, Instant, described
from custody.kit.errors import Frozen
from custody.kit.shapes import AgentId, Uuid
from custody.protocol.command import DECIDER, Command, command, refuses
from custody.protocol.signer import import_refusals, order_refusals, refusals

Chain = Literal["evm", "solana"]
_BASE64URL = r"^[A-Za-z0-9_-]+\Z"


class ImportAad(msgspec.Struct, frozen=True, rename="camel"):
    """The data that the session is bound to. The additional data of the encryption is `importSessionId` alone."""

    import_session_id: Annotated[Id, described("The session.")]
    tenant_id: Annotated[str, described("The tenant.")]
    agent_id: Annotated[str, described("The agent.")]
    chain: Annotated[Chain, described("`evm` or `solana`.")]


class ImportAttestation(msgspec.Struct, frozen=True):
    """The signer's word that the public key is its own: an Ed25519 signature by the key of receipts."""

    kid: Annotated[str, described("The key that signed it, in `/.well-known/jwks.json`.")]
    signature: Annotated[
        str, described("The signature in base64url, over the canonical JSON that docs/wallets.md names.")
    ]


class AnyImportSession(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The public part of every session: one key may be sealed to its public key, once."""

    import_session_id: Annotated[Id, described("The session.")]
    public_key: Annotated[str, described("The one-time X25519 key as SPKI, in base64url without padding.")]
    algorithm: Annotated[
        Literal["X25519-HKDF-SHA256-AES-256-GCM"], described("Algorithm that seals a key to it; docs/wallets.md.")
    ]
    expires_at: Annotated[Instant, described("End of the session, ten minutes after it began.")]
    attestation: Annotated[ImportAttestation, described("By which a client notices a public key that was swapped.")]


class ImportSession(AnyImportSession, frozen=True, rename="camel", kw_only=True):
    """A session: one key may be sealed to its public key, once."""

    aad: Annotated[ImportAad, described("The data that the session is bound to.")]


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


class Imported(msgspec.Struct, frozen=True, rename="camel"):
    """The wallet that the key opens."""

    agent_id: Annotated[str, described("The agent.")]
    wallet_address: Annotated[str, described("The address of the key, which is the agent's on this chain from now on.")]
    chain: Annotated[Chain, described("`evm` or `solana`.")]


_importing = command("signer", proofs=DECIDER, mfa="keyImport", audit=("import.begun", "import.finished"))
# Of both steps, for an agent's wallet and for a person's.
EITHER_STEP = (Frozen, import_refusals.ImportDisabled, import_refusals.ImportUnderQuorum, order_refusals.PolicyTampered)
OPENING = (
    import_refusals.ImportEnvelope,
    import_refusals.ImportSessionInvalid,
    import_refusals.ImportWrongAgent,
    import_refusals.WalletInUse,
    import_refusals.WalletTaken,
    order_refusals.KeyTampered,
)
_BY_PERSON = (order_refusals.AgentAbsent, import_refusals.ImportByPerson, refusals.WalletOfPerson)


@_importing
@refuses(*EITHER_STEP, *_BY_PERSON, import_refusals.TooManyImports)
class BeginImport(Command[ImportSession], frozen=True):
    """Make a one-time key for an agent's private key."""

    agent: AgentId
    chain: Chain


@_importing
@refuses(*EITHER_STEP, *_BY_PERSON, *OPENING)
class FinishImport(Command[Imported], frozen=True):
    """Open an envelope, and put its key in place of the agent's, which must never have signed."""

    agent: AgentId
    sealed: SealedKey

    def __repr__(self) -> str:
        return f"FinishImport({self.agent})"
