"""The identities of a person: linking and unlinking, by themselves or by a tenant's wallet policy."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadEmailAddress
from custody.identity.roles import ADMINS, ANYBODY
from custody.identity.siwe import SiweDomainMismatch, SiweMalformed, SiweNotValidNow
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.sign_in import Code
from custody.protocol.refusals import AdministrationMoving, MfaRequired

MAX_AT_ONCE = 50
# A wallet is one of a chain family, or a contract that agrees (EIP-1271).
WALLETS = {"wallet": "wallet:ethereum", "solana": "wallet:solana", "contract": "wallet:contract"}


def provider_and_account(kind: str, subject: str) -> tuple[str, str]:
    """Name an identity as answers do: its provider, and what that knows it by."""
    if kind in ("oidc", "saml"):
        # Of a tenant: tenant, provider, issuer, account; or tenant, issuer, format, account.
        _, provider, _, account = msgspec.json.decode(subject, type=tuple[str, str, str, str])
        return (f"oidc:{provider}" if kind == "oidc" else kind), account
    return provider_of(kind), subject


def provider_of(kind: str) -> str:
    """The provider alone, where there is one of a kind."""
    return WALLETS.get(kind, kind)


class LinkedIdentity(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Something that a person signs in with."""

    id: Annotated[Id, described("The identity's id.")]
    provider: Annotated[str, described("Kind of identity, such as `email`, `wallet:ethereum` or `google`.")]
    provider_account_id: Annotated[str, described("Name at the provider: an address, or an id.")]
    verified: Annotated[bool, described("True if the person has proven it; false: the operator named it.")]
    created_at: Annotated[Instant, described("Time of linking.")]


class Linked(msgspec.Struct, frozen=True):
    """The identity that is linked now, and whether it was not before."""

    identity: LinkedIdentity
    added: bool


class UnlinkedIdentity(msgspec.Struct, frozen=True):
    """The identity that was unlinked."""

    deleted: Annotated[Id, described("The identity's id.")]


class WalletProof(msgspec.Struct, frozen=True):
    """A message and its signature, as for a sign-in; `by_contract`: its contract agreed, by the api's word."""

    message: Annotated[str, Meta(max_length=8192)]
    signature: Annotated[str, Meta(max_length=16_384)]
    by_contract: bool = False

    def __repr__(self) -> str:
        return "WalletProof()"


class EmailProof(msgspec.Struct, frozen=True):
    """A code that was mailed to an address."""

    email: Annotated[str, Meta(max_length=254)]
    code: Code

    def __repr__(self) -> str:
        return "EmailProof()"


class OAuthProof(msgspec.Struct, frozen=True):
    """The code with which a sign-in at Google, Discord or X ended, and its client's verifier."""

    code: Annotated[str, Meta(max_length=512)]
    redirect_uri: Annotated[str, Meta(max_length=2048)]
    code_verifier: Annotated[str, Meta(max_length=128)]

    def __repr__(self) -> str:
        return "OAuthProof()"


class WalletAt(msgspec.Struct, frozen=True):
    """A wallet of a member."""

    user: Uuid
    account: Uuid


# Why a wallet stays.
Refusal = Literal[
    "identity_absent",
    "last_login_method",
    "member_absent",
    "member_elsewhere",
    "not_wallet",
    "own_account",
    "owner_only",
]


class WalletOutcome(msgspec.Struct, frozen=True):
    """The outcome for one wallet: it was unlinked at a moment, or `code` says why not."""

    user: str
    account: str
    provider: str | None = None
    provider_account_id: str | None = None
    issued_before: str | None = None
    code: Refusal | None = None


class WalletOutcomes(msgspec.Struct, frozen=True):
    """The outcome for each, in the order in which they were named."""

    tenant: str
    outcomes: list[WalletOutcome]


@command("identity", proofs=SESSION, roles=ANYBODY, audit=("identity.linked", "identity.verified"))
@refuses(BadEmailAddress, refusals.CodeInvalid, refusals.CodeRedirectMismatch, refusals.CodeVerifierMismatch)
@refuses(refusals.Deactivated, refusals.ExchangeCodeInvalid, refusals.IdentityChoice, refusals.IdentityTaken)
@refuses(MfaRequired, refusals.NonceInvalid, refusals.NotLinkable, refusals.OneWalletOnly, refusals.SignatureInvalid)
@refuses(refusals.SiweChainUnknown, SiweDomainMismatch, SiweMalformed, SiweNotValidNow, refusals.TooManyAttempts)
class LinkIdentity(Command[Linked], frozen=True):
    """Let the person sign in with one more thing that they have just proven: exactly one of these.

    Fails with `contract_needed` as a sign-in does. What belongs to somebody else stays theirs.
    """

    wallet: WalletProof | None = None
    email: EmailProof | None = None
    oauth: OAuthProof | None = None

    def __repr__(self) -> str:
        return "LinkIdentity()"


@command("identity", proofs=SESSION, roles=ANYBODY, audit=("identity.unlinked",))
@refuses(refusals.Deactivated, refusals.IdentityAbsent, refusals.LastLoginMethod, MfaRequired)
class UnlinkIdentity(Command[UnlinkedIdentity], frozen=True):
    """Unlink an identity of the person, never the last way in; other sessions that began with its kind end."""

    identity: Uuid


@command(
    "identity",
    proofs=SESSION,
    roles=ADMINS,
    mfa="tenantAdmin",
    audit=("wallet_policy.remediation_authorized", "wallet_policy.remediated", "wallet_policy.refused"),
)
@refuses(AdministrationMoving)
class RemediateWallets(Command[WalletOutcomes], frozen=True):
    """Unlink wallets of members, each in a transaction of its own; what is refused is told and recorded."""

    wallets: Annotated[list[WalletAt], Meta(min_length=1, max_length=MAX_AT_ONCE)]
