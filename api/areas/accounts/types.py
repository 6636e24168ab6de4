"""Accounts as callers see them. Every field of two words has both spellings, as the specification asks."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import Id, Instant, described
from custody.kit.errors import Conflict, Invalid, NotFound, TooMany, Unavailable
from custody.kit.shapes import AccountId, AgentId, ChainId, DisplayName, Offset
from custody.kit.spellings import both_spellings, same_as

MAX_METADATA_BYTES = 16 * 1024
MAX_WALLETS = 5
MAX_ASSIGNED = 32
MAX_ACCOUNTS = 1_000
MAX_AGGREGATIONS = 1_000
ChainFamily = Literal["evm", "solana"]
ChainType = Literal["ethereum", "solana"]
Custody = Literal["server", "user_embedded"]
Mode = Literal["server", "user", "delegated", "quorum"]
# Longer than what is taken, so that the answer can say how many are.
Assigned = Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(max_length=1000)]
Wallets = Annotated[list[AgentId], Meta(max_length=100)]
_ID = described("The account's id, yours to choose; without it one is made.")
_DISPLAY_NAME = described("Name to display.")
_METADATA = described("Anything of yours, at most 16 KiB as JSON; `authorization` is reserved.")
_OWNERS = described("User ids of the owners. Informational: grants no access.")
_SIGNERS = described("Ids of signers of its wallets. Informational: grants no access.")
_RULES = described("Ids of policy rules of its wallets. Informational: applies no rule.")
_WALLETS = described("Agents whose wallets belong to it. Sent at all, the wallet fields replace all of its wallets.")
_USER_WALLETS = described("Wallets of the person whose tenant this is, by their ids.")
_CONFIGURATION = described("Wallets of one chain family each: of the agent `wallet_id`, or of an agent made for it.")
_TYPE = Literal["ethereum", "evm", "solana"]


class AccountAbsent(NotFound):
    """No such account."""


class AggregationAbsent(NotFound):
    """No such aggregation of this account."""


class AccountTaken(Conflict):
    """An account with this id exists."""


class AggregationTaken(Conflict):
    """An aggregation with this id exists in this tenant."""


class AccountsFull(Conflict):
    """A tenant has at most 1,000 accounts; delete one."""


class AggregationsFull(Conflict):
    """A tenant has at most 1,000 aggregations; delete some."""


class BalanceAlready(TooMany):
    """Eight questions for balances of one person's tenants are queued; retry when one has finished."""


class BalancesBusy(Unavailable):
    """Nodes are being asked for other tenants; retry in a few seconds."""

    retry_after = 5


class UnknownWallet(Invalid):
    """Not a wallet of this tenant."""


class WalletTwice(Invalid):
    """A wallet belongs to an account once."""


class TooManyWallets(Invalid):
    """An account has at most 5 wallets."""


class AccountMetadataTooLarge(Invalid):
    """metadata: must be at most 16 KiB as JSON."""


class MetadataReserved(Invalid):
    """metadata.authorization is read-only; set `owner_user_ids` and the other assignment fields instead."""


class BadConfiguration(Invalid):
    """walletsConfiguration: every entry must have a `chain_type`, `ethereum` or `solana`."""


class BadAssignment(Invalid):
    """An assignment names nobody that it may name."""


class WalletConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True):
    """A wallet of one chain family."""

    chain_type: Annotated[_TYPE | UnsetType, described("The chain family.")] = UNSET
    chain_type_: Annotated[_TYPE | UnsetType, same_as("chainType")] = UNSET
    name: Annotated[DisplayName | None, described("Name of the wallet.")] = None
    wallet_id: Annotated[AgentId | None, described("An agent; without it one is made.")] = None
    wallet_id_: Annotated[AgentId | None, same_as("walletId")] = None


Configurations = Annotated[list[WalletConfiguration], Meta(max_length=100)]


class AccountChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True):
    """Changes of an account; omitted fields stay. Fields of two words may be sent in snake_case too."""

    display_name: Annotated[DisplayName | UnsetType | None, _DISPLAY_NAME] = UNSET
    display_name_: Annotated[DisplayName | UnsetType | None, same_as("displayName")] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, _METADATA] = UNSET
    owner_user_ids: Annotated[Assigned | UnsetType, _OWNERS] = UNSET
    owner_user_ids_: Annotated[Assigned | UnsetType, same_as("ownerUserIds")] = UNSET
    additional_signer_ids: Annotated[Assigned | UnsetType, _SIGNERS] = UNSET
    additional_signer_ids_: Annotated[Assigned | UnsetType, same_as("additionalSignerIds")] = UNSET
    signer_policy_ids: Annotated[Assigned | UnsetType, _RULES] = UNSET
    signer_policy_ids_: Annotated[Assigned | UnsetType, same_as("signerPolicyIds")] = UNSET
    wallet_ids: Annotated[Wallets | UnsetType, _WALLETS] = UNSET
    wallet_ids_: Annotated[Wallets | UnsetType, same_as("walletIds")] = UNSET
    user_wallet_ids: Annotated[Wallets | UnsetType, _USER_WALLETS] = UNSET
    user_wallet_ids_: Annotated[Wallets | UnsetType, same_as("userWalletIds")] = UNSET
    wallets_configuration: Annotated[Configurations | UnsetType, _CONFIGURATION] = UNSET
    wallets_configuration_: Annotated[Configurations | UnsetType, same_as("walletsConfiguration")] = UNSET


class NewAccountBody(AccountChangeBody, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A new account. Fields of two words may be sent in snake_case too."""

    id: Annotated[AccountId | None, _ID] = None


class AggregationChangeBody(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True
):
    """Changes of an aggregation; `refresh` updates it to the account's present wallets."""

    display_name: Annotated[DisplayName | UnsetType | None, _DISPLAY_NAME] = UNSET
    display_name_: Annotated[DisplayName | UnsetType | None, same_as("displayName")] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, _METADATA] = UNSET
    refresh: Annotated[bool, described("True to update it to the account's present wallets.")] = False


class NewAggregationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True):
    """A new aggregation: the account's wallets as they are now."""

    id: Annotated[AccountId | None, described("The aggregation's id, yours to choose; without it one is made.")] = None
    display_name: Annotated[DisplayName | UnsetType | None, _DISPLAY_NAME] = UNSET
    display_name_: Annotated[DisplayName | UnsetType | None, same_as("displayName")] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, _METADATA] = UNSET


class AccountQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a list that is asked for."""

    limit: Annotated[int, Meta(ge=1, le=100), described("Maximum number of items.")] = 50
    offset: Annotated[Offset, described("Number of items to skip.")] = 0


class BalanceQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The chain, every configured one if none is named; and the tokens, addresses with commas between."""

    chain_id: Annotated[ChainId | None, described("The chain; without it every configured one that has a node.")] = None
    tokens: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2000)] | None,
        described(
            "Addresses of ERC-20 tokens, with commas between; at most 25. Tokens on Solana are found by themselves."
        ),
    ] = None


class CustodyOf(msgspec.Struct, frozen=True, rename="camel"):
    """The owner of a wallet."""

    type: Annotated[Custody, described("Kind of owner: an agent or a person.")]
    owner_user_id: Annotated[Id | None, described("The person, of a person's wallet.")]


class CustodyDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The owner of a wallet, in detail."""

    type: Annotated[Custody, described("Kind of owner: an agent or a person.")]
    owner_user_id: Annotated[Id | None, described("The person, of a person's wallet.")]
    server_managed: Annotated[bool, described("True if it is an agent's.")]
    user_owned: Annotated[bool, described("True if it is a person's.")]


class SigningOf(msgspec.Struct, frozen=True, rename="camel"):
    """The number of signers that may authorise for the wallet."""

    signer_count: Annotated[int, described("Its signers, without those revoked.")]
    active_signer_count: Annotated[int, described("Those of them that are active.")]
    quorum_count: Annotated[int, described("Its key quorums, without those revoked.")]
    active_quorum_count: Annotated[int, described("Those of them that are active.")]


class SigningDetails(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The ways to authorise a wallet's orders."""

    mode: Annotated[Mode, described("By whom: a quorum if one is active, else a delegated signer, else its owner.")]
    signer_count: Annotated[int, described("Its signers, without those revoked.")]
    active_signer_count: Annotated[int, described("Those of them that are active.")]
    quorum_count: Annotated[int, described("Its key quorums, without those revoked.")]
    active_quorum_count: Annotated[int, described("Those of them that are active.")]
    has_active_delegated_signers: Annotated[bool, described("True if a delegated signer is active.")]
    has_active_key_quorums: Annotated[bool, described("True if a key quorum is active.")]


class WalletCapabilities(msgspec.Struct, frozen=True):
    """The details of one wallet's capabilities."""

    custody: Annotated[CustodyDetails, described("Owner of the wallet.")]
    signing: Annotated[SigningDetails, described("Ways to authorise its orders.")]
    operations: Annotated[
        dict[str, bool], described("Every capability there is, and whether the wallet has it; none while it is frozen.")
    ]


class AccountWallet(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A wallet of an account: one chain family of an agent."""

    id: Annotated[str, described("The agent and the chain family, such as `payroll:evm`.")]
    wallet_id: Annotated[str, described("The agent.")]
    membership_id: Annotated[Id, described("Its place in the account.")]
    name: Annotated[str, described("Name in this account, else the agent's name.")]
    owner_user_id: Annotated[Id | None, described("The person, of a person's wallet.")]
    wallet_type: Annotated[Custody, described("Kind of owner: an agent or a person.")]
    custody: Annotated[CustodyOf, described("Owner of the wallet.")]
    signing: Annotated[SigningOf, described("Counts of signers that may authorise for it.")]
    capabilities: Annotated[list[str], described("Capabilities; none while it is frozen.")]
    capability_metadata: Annotated[WalletCapabilities, described("Details of its capabilities.")]
    chain_type: Annotated[ChainType, described("The chain family by its chain.")]
    chain_family: Annotated[ChainFamily, described("The chain family.")]
    address: Annotated[str | None, described("Address for payments; null if its agent was deleted.")]
    purpose: Annotated[str | None, described("Always null.")] = None
    venue: Annotated[str | None, described("Always null.")] = None
    created_at: Annotated[Instant | None, described("Time of its agent's creation.")]


class AccountCapabilities(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The capabilities of all wallets of an account together."""

    wallet_count: Annotated[int, described("Number of wallets.")]
    wallet_ids: Annotated[list[str], described("Their agents.")]
    chain_families: Annotated[list[ChainFamily], described("Their chain families.")]
    custody_types: Annotated[list[Custody], described("Kinds of owners of its wallets.")]
    wallet_types: Annotated[list[Custody], described("Kinds of owners of its wallets.")]
    has_server_wallets: Annotated[bool, described("True if one is an agent's.")]
    has_user_embedded_wallets: Annotated[bool, described("True if one is a person's.")]
    has_active_delegated_signers: Annotated[bool, described("True if a delegated signer of one is active.")]
    has_active_key_quorums: Annotated[bool, described("True if a key quorum of one is active.")]


class DigitalAssetAccount(msgspec.Struct, frozen=True, rename=both_spellings, kw_only=True):
    """An account: wallets under one name. Its assignments are told, and grant nothing."""

    id: Annotated[str, described("The account.")]
    tenant_id: Annotated[str, described("The tenant.")]
    tenant_id_: Annotated[str, same_as("tenantId")]
    display_name: Annotated[str | None, _DISPLAY_NAME]
    display_name_: Annotated[str | None, same_as("displayName")]
    metadata: Annotated[
        dict[str, Any], described("Your own data; `authorization` has its assignments, if there are any.")
    ]
    owner_user_ids: Annotated[list[str], _OWNERS]
    owner_user_ids_: Annotated[list[str], same_as("ownerUserIds")]
    additional_signer_ids: Annotated[list[str], _SIGNERS]
    additional_signer_ids_: Annotated[list[str], same_as("additionalSignerIds")]
    signer_policy_ids: Annotated[list[str], _RULES]
    signer_policy_ids_: Annotated[list[str], same_as("signerPolicyIds")]
    wallet_ids: Annotated[list[str], described("The agents whose wallets belong to it.")]
    wallet_ids_: Annotated[list[str], same_as("walletIds")]
    wallets: Annotated[list[AccountWallet], described("Its wallets.")]
    capabilities: Annotated[list[str], described("Capabilities of any of its wallets.")]
    capability_metadata: Annotated[AccountCapabilities, described("Capabilities of all its wallets together.")]
    capability_metadata_: Annotated[AccountCapabilities, same_as("capabilityMetadata")]
    created_at: Annotated[Instant, described("Time of creation.")]
    created_at_: Annotated[Instant, same_as("createdAt")]
    updated_at: Annotated[Instant, described("Time of the last change.")]
    updated_at_: Annotated[Instant, same_as("updatedAt")]


class AccountList(msgspec.Struct, frozen=True):
    """A page of accounts, newest first; it ends before its limit where it reaches 4 MiB."""

    accounts: Annotated[list[DigitalAssetAccount], described("The accounts.")]
    total: Annotated[int, described("Number of items in all.")]
    limit: Annotated[int, described("Maximum number of items on a page.")]
    offset: Annotated[int, described("Number of items skipped.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.accounts), self.total


class DeletedAccount(msgspec.Struct, frozen=True):
    """It is gone; its wallets are not."""

    id: Annotated[str, described("Id of the deleted item.")]
    deleted: Annotated[bool, described("Always true.")] = True


class AccountAggregation(msgspec.Struct, frozen=True, rename=both_spellings, kw_only=True):
    """A snapshot of an account's wallets and chain families."""

    id: Annotated[str, described("The aggregation.")]
    account_id: Annotated[str, described("The account.")]
    account_id_: Annotated[str, same_as("accountId")]
    tenant_id: Annotated[str, described("The tenant.")]
    tenant_id_: Annotated[str, same_as("tenantId")]
    display_name: Annotated[str | None, _DISPLAY_NAME]
    display_name_: Annotated[str | None, same_as("displayName")]
    wallet_ids: Annotated[list[str], described("The agents whose wallets belonged to it.")]
    wallet_ids_: Annotated[list[str], same_as("walletIds")]
    chain_families: Annotated[list[ChainFamily], described("The chain families of those.")]
    chain_families_: Annotated[list[ChainFamily], same_as("chainFamilies")]
    metadata: Annotated[dict[str, Any], described("Your own data.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    created_at_: Annotated[Instant, same_as("createdAt")]
    updated_at: Annotated[Instant, described("Time of the last change.")]
    updated_at_: Annotated[Instant, same_as("updatedAt")]


class AggregationList(msgspec.Struct, frozen=True):
    """A page of an account's aggregations, newest first."""

    aggregations: Annotated[list[AccountAggregation], described("The aggregations.")]
    total: Annotated[int, described("Number of items in all.")]
    limit: Annotated[int, described("Maximum number of items on a page.")]
    offset: Annotated[int, described("Number of items skipped.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.aggregations), self.total


class WalletBalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The native coin of one wallet on one chain."""

    wallet_id: Annotated[str, described("The agent.")]
    chain_family: Annotated[ChainFamily, described("The chain family.")]
    chain_id: Annotated[int, described("The chain.")]
    symbol: Annotated[str, described("The coin's symbol.")]
    native: Annotated[str | None, described("The balance in the smallest unit; null if no node responded.")]
    native_formatted: Annotated[str | None, described("The same in whole coins, cut to six places.")]
    wallet_address: Annotated[str | None, described("The wallet's address; null where its agent was deleted.")]
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class TokenBalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One token in one wallet. A value that the token does not report, or in an unusable form, is null."""

    wallet_id: Annotated[str, described("The agent.")]
    chain_id: Annotated[int, described("The chain.")]
    token: Annotated[str, described("The token's contract or mint.")]
    symbol: Annotated[str | None, described("The token's symbol, as it says itself.")]
    balance: Annotated[str | None, described("The balance in the smallest unit.")]
    formatted: Annotated[str | None, described("The balance in whole tokens.")]
    decimals: Annotated[int | None, described("The token's decimals.")]
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class NativeRollup(msgspec.Struct, frozen=True, rename="camel"):
    """The sum of one coin in all wallets of the account, as far as it is known."""

    chain_id: Annotated[int, described("The chain.")]
    symbol: Annotated[str, described("The coin's symbol.")]
    native: Annotated[str, described("The sum in the smallest unit.")]


class TokenRollup(msgspec.Struct, frozen=True, rename="camel"):
    """The sum of one token in all wallets of the account, as far as it is known."""

    chain_id: Annotated[int, described("The chain.")]
    token: Annotated[str, described("The token's contract or mint.")]
    symbol: Annotated[str | None, described("The token's symbol, as it says itself.")]
    balance: Annotated[str, described("The sum in the smallest unit.")]
    decimals: Annotated[int | None, described("The token's decimals.")]


class Rollups(msgspec.Struct, frozen=True):
    """The holdings of all wallets of the account."""

    native: Annotated[list[NativeRollup], described("Of each coin.")]
    tokens: Annotated[list[TokenRollup], described("Of each token.")]


class AccountBalance(msgspec.Struct, frozen=True, rename=both_spellings, kw_only=True):
    """The holdings of an account's wallets, as nodes report them; a missing value is null, with a note beside it."""

    id: Annotated[str, described("The account.")]
    account_id: Annotated[str, same_as("id")]
    account_id_: Annotated[str, same_as("id")]
    wallets: Annotated[list[AccountWallet], described("Its wallets.")]
    capabilities: Annotated[list[str], described("Capabilities of any of its wallets.")]
    capability_metadata: Annotated[AccountCapabilities, described("Capabilities of all its wallets together.")]
    balances: Annotated[list[WalletBalance], described("The coin of each wallet on each chain.")]
    token_balances: Annotated[list[TokenBalance], described("The tokens of each wallet on each chain.")]
    rollups: Annotated[Rollups, described("Sums over all wallets.")]
