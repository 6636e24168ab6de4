"""People's identities, and a tenant's wallet policy, as callers send and see them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Role, Uuid
from custody.people.types import CodeText, EmailText
from custody.protocol.identity.identities import MAX_AT_ONCE


class LinkWalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sign-in message of this service's own address, and its signature."""

    message: Annotated[
        str,
        Meta(min_length=1, max_length=8192),
        described("The EIP-4361 message; a Solana wallet's says `Solana` in place of `Ethereum`, and its address."),
    ]
    signature: Annotated[
        str,
        Meta(min_length=4, max_length=16_384, pattern=r"^0x([0-9a-fA-F]{2})*\Z"),
        described("The signature in hex; a Solana wallet's is Ed25519 over the message."),
    ]

    def __repr__(self) -> str:
        return "LinkWalletBody()"


class LinkEmailBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A code that `POST /auth/email/send` mailed."""

    email: Annotated[EmailText, described("The address that the code was sent to.")]
    code: Annotated[CodeText, described("The code.")]

    def __repr__(self) -> str:
        return "LinkEmailBody()"


class LinkOAuthBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of a sign-in at Google, Discord or X, linked instead of exchanged for a session."""

    code: Annotated[str, Meta(min_length=1, max_length=512), described("The code; it works once, for a minute.")]
    redirect_uri: Annotated[
        str, Meta(min_length=1, max_length=2048), described("The address that the code was sent to.")
    ]
    code_verifier: Annotated[
        str, Meta(min_length=1, max_length=128), described("The PKCE verifier of the challenge, 43 to 128 characters.")
    ]

    def __repr__(self) -> str:
        return "LinkOAuthBody()"


class LinkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proof of the person's identity: exactly one of these."""

    wallet: Annotated[LinkWalletBody | None, described("A wallet that signs.")] = None
    email: Annotated[LinkEmailBody | None, described("An address that a code was sent to.")] = None
    oauth: Annotated[LinkOAuthBody | None, described("An account at Google, Discord or X.")] = None


class LinkedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """One of a person's linked wallets."""

    account_id: Annotated[Id, described("The linked account's id.")]
    provider: Annotated[str, described("Kind of wallet.")]
    provider_account_id: Annotated[str, described("Its address; of a contract wallet with the chain before it.")]


class WalletViolation(msgspec.Struct, frozen=True, rename="camel"):
    """A member with more than one linked wallet."""

    user_id: Annotated[Id, described("The member.")]
    email: Annotated[str | None, described("The address that they signed in with.")]
    name: Annotated[str | None, described("Their name.")]
    role: Annotated[Role, described("Role in the tenant.")]
    wallet_count: Annotated[int, described("Number of linked wallets.")]
    wallets: Annotated[list[LinkedWallet], described("The wallets, the first linked first.")]


class WalletViolations(msgspec.Struct, frozen=True, rename="camel"):
    """Members who have more than one linked wallet; a report, whether the policy is on or not."""

    tenant_id: Annotated[str, described("The tenant.")]
    policy_enabled: Annotated[bool, described("True if the tenant restricts people to one linked wallet.")]
    violations: Annotated[list[WalletViolation], described("The members.")]
    total: Annotated[int, described("Number of members with more than one.")]
    limit: Annotated[int, described("Maximum number of items on a page.")]
    offset: Annotated[int, described("Number of items skipped.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.violations), self.total


class RemediatedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that was unlinked; the person's sessions have ended."""

    deleted: Annotated[Literal[True], described("It is not linked any more.")]
    account_id: Annotated[Id, described("The linked account's id.")]
    provider: Annotated[str, described("Kind of wallet.")]
    provider_account_id: Annotated[str, described("Its address.")]
    issued_before: Annotated[Instant, described("Sessions and refresh tokens issued before this moment have ended.")]


class WalletOfMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A wallet that a member has linked."""

    user_id: Annotated[Uuid, described("The member.")]
    account_id: Annotated[Uuid, described("The linked account's id.")]


class RemediationsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wallets to unlink."""

    wallets: Annotated[
        list[WalletOfMember], Meta(min_length=1, max_length=MAX_AT_ONCE), described("The wallets, 50 at most.")
    ]


RefusedStatus = Literal[403, 404, 409]


class RemediationResult(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The outcome for one wallet."""

    ok: Annotated[bool, described("True if it was unlinked.")]
    target_user_id: Annotated[Id, described("The member.")]
    account_id: Annotated[Id, described("The linked account's id.")]
    deleted: Annotated[bool | UnsetType, described("True where it was unlinked.")] = UNSET
    provider: Annotated[str | UnsetType, described("Kind of wallet.")] = UNSET
    provider_account_id: Annotated[str | UnsetType, described("Its address.")] = UNSET
    issued_before: Annotated[
        Instant | UnsetType, described("Sessions and refresh tokens issued before this moment have ended.")
    ] = UNSET
    status: Annotated[
        RefusedStatus | UnsetType, described("The status that this wallet alone would have been answered.")
    ] = UNSET
    code: Annotated[str | UnsetType, described("Why it was not unlinked, for programs.")] = UNSET
    error: Annotated[str | UnsetType, described("Why it was not unlinked, for people.")] = UNSET


class Remediations(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome for each wallet, in the order of the request."""

    tenant_id: Annotated[str, described("The tenant.")]
    succeeded: Annotated[int, described("Number of unlinked wallets.")]
    failed: Annotated[int, described("Number of wallets that were not unlinked.")]
    results: Annotated[list[RemediationResult], described("Each wallet.")]
