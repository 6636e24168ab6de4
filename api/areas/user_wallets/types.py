"""The queries and bodies about people's own wallets."""

from typing import Annotated, Any, Literal

import msgspec

from custody.identity.authority import Standing
from custody.kit.described import described
from custody.kit.shapes import DisplayName, HashOrAddress
from custody.protocol.signer.authority import AgentSigner, SubjectId, Words
from custody.protocol.signer.imports import Chain
from custody.protocol.signer.user_wallets import WalletIndex

_INDEX = described("Index of your wallet, 0 to 255; by default the first, 0.")


class UserWalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The wallet to create."""

    wallet_index: Annotated[WalletIndex, _INDEX] = 0


class UserWalletQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The wallet that is meant."""

    wallet_index: Annotated[WalletIndex, _INDEX] = 0


class UserSignerQuery(UserWalletQuery, frozen=True, rename="camel"):
    """The signers to list, of one wallet; without a status revoked ones too."""

    status: Annotated[Standing | None, described("Only those with this status.")] = None


class UserImportBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """For which wallet a key comes."""

    chain: Annotated[Chain, described("`evm` or `solana`.")]
    wallet_index: Annotated[WalletIndex, _INDEX] = 0


class UserSignerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A delegated signer of a wallet; its credential is made here and shown once."""

    subject_id: Annotated[SubjectId, described("Id of the user, wallet or key, or a name of your own.")]
    wallet_index: Annotated[WalletIndex, _INDEX] = 0
    subject_type: Annotated[Literal["external", "user", "wallet", "api_key"], described("Type of the subject.")] = (
        "external"
    )
    label: Annotated[DisplayName | None, described("A name for people.")] = None
    permissions: Annotated[
        Words | None,
        described("Permissions; without it `sign_transaction` and `sign_message`."),
    ] = None
    address: Annotated[HashOrAddress | None, described("An address of the subject; it grants nothing.")] = None
    chain_family: Annotated[Literal["evm", "solana"] | None, described("The family of `address`.")] = None
    metadata: Annotated[dict[str, Any], described("Your own notes, at most 4 KiB.")] = {}


class UserSigners(msgspec.Struct, frozen=True):
    """The signers of a wallet, newest first."""

    signers: Annotated[list[AgentSigner], described("The signers.")]
