"""Kinds and capabilities of an account's wallets, from rows of agents. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, cast, get_args

import msgspec

from api.areas.accounts.types import (
    AccountCapabilities,
    AccountWallet,
    ChainFamily,
    ChainType,
    Custody,
    CustodyDetails,
    CustodyOf,
    Mode,
    SigningDetails,
    SigningOf,
    WalletCapabilities,
)
from custody.chains.built_in import WALLETS
from custody.identity.authority import Permission
from custody.kit import clock
from custody.protocol.signer.user_wallets import PREFIX

CAPABILITIES: Final[tuple[str, ...]] = get_args(Permission)
# Those that have a route.
_OFFERED: Final[Mapping[ChainFamily, frozenset[str]]] = {
    "evm": frozenset({"sign_transaction", "sign_message", "sign_typed_data", "send_calls", "transfer"}),
    "solana": frozenset({"sign_transaction", "sign_message", "solana_transaction"}),
}
CHAIN_TYPES: Final[Mapping[ChainFamily, ChainType]] = {"evm": "ethereum", "solana": "solana"}
FAMILIES: Final[tuple[ChainFamily, ...]] = tuple(_OFFERED)


class Member(msgspec.Struct, frozen=True):
    """An agent whose wallets belong to an account: those of one family, or all of them."""

    id: str
    agent: str
    incarnation: str
    family: str | None
    name: str | None

    @property
    def families(self) -> tuple[ChainFamily, ...]:
        """The chain families that belong to the account."""
        return tuple(family for family in FAMILIES if self.family in (None, family))

    @property
    def rows(self) -> list[str]:
        """The ids of its wallets."""
        return [f"{self.agent}:{family}" for family in self.families]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is now: where it is paid, and how many may authorise for it."""

    incarnation: str
    name: str
    frozen: bool
    created_at: datetime
    # Chain family to address.
    addresses: dict[str, str]
    signers: int
    active_signers: int
    active_delegated: int
    quorums: int
    active_quorums: int

    @property
    def wallets(self) -> tuple[tuple[str, str], ...]:
        """Every family that an agent has a wallet of from its beginning, with its address; none is an empty one."""
        return tuple((family, self.addresses.get(family, "")) for family in WALLETS)


def of_members(members: Sequence[Member], standings: Mapping[str, Standing]) -> list[AccountWallet]:
    """The wallets of an account; of an agent that was deleted, or made again since, without what was that agent's."""
    found = []
    for member in members:
        standing = standings.get(member.agent)
        if standing is not None and standing.incarnation != member.incarnation:
            standing = None
        found += [_wallet(member, family, standing) for family in member.families]
    return found


def _wallet(member: Member, family: ChainFamily, standing: Standing | None) -> AccountWallet:
    owner = owner_of(member.agent)
    custody: Custody = "server" if owner is None else "user_embedded"
    usable = standing is not None and not standing.frozen
    operations = {one: usable and one in _OFFERED[family] for one in CAPABILITIES}
    counts = (0, 0, 0, 0)
    if standing is not None:
        counts = (standing.signers, standing.active_signers, standing.quorums, standing.active_quorums)
    delegated = standing is not None and standing.active_delegated > 0
    quorum = standing is not None and standing.active_quorums > 0
    mode: Mode = "quorum" if quorum else "delegated" if delegated else "server" if owner is None else "user"
    return AccountWallet(
        id=f"{member.agent}:{family}",
        wallet_id=member.agent,
        membership_id=member.id,
        name=member.name or (member.agent if standing is None else standing.name),
        owner_user_id=owner,
        wallet_type=custody,
        custody=CustodyOf(custody, owner),
        signing=SigningOf(*counts),
        capabilities=[one for one in CAPABILITIES if operations[one]],
        capability_metadata=WalletCapabilities(
            CustodyDetails(custody, owner, server_managed=owner is None, user_owned=owner is not None),
            SigningDetails(
                mode=mode,
                signer_count=counts[0],
                active_signer_count=counts[1],
                quorum_count=counts[2],
                active_quorum_count=counts[3],
                has_active_delegated_signers=delegated,
                has_active_key_quorums=quorum,
            ),
            operations,
        ),
        chain_type=CHAIN_TYPES[family],
        chain_family=family,
        address=None if standing is None else standing.addresses.get(family),
        created_at=None if standing is None else clock.iso(standing.created_at),
    )


def owner_of(agent: str) -> str | None:
    """The person whose wallet an agent is; None for an agent of the tenant's own."""
    return agent.removeprefix(PREFIX).rpartition("-")[0] if agent.startswith(PREFIX) else None


def capabilities_of(wallets: Sequence[AccountWallet]) -> list[str]:
    """List the capabilities of any of the wallets."""
    return [one for one in CAPABILITIES if any(one in wallet.capabilities for wallet in wallets)]


def together(wallets: Sequence[AccountWallet]) -> AccountCapabilities:
    """The capabilities of all wallets of an account together."""
    kinds = sorted({wallet.custody.type for wallet in wallets})
    details = [wallet.capability_metadata.signing for wallet in wallets]
    return AccountCapabilities(
        wallet_count=len(wallets),
        wallet_ids=list(dict.fromkeys(wallet.wallet_id for wallet in wallets)),
        chain_families=families_of(wallets),
        custody_types=kinds,
        wallet_types=kinds,
        has_server_wallets="server" in kinds,
        has_user_embedded_wallets="user_embedded" in kinds,
        has_active_delegated_signers=any(one.has_active_delegated_signers for one in details),
        has_active_key_quorums=any(one.has_active_key_quorums for one in details),
    )


def families_of(wallets: Sequence[AccountWallet]) -> list[ChainFamily]:
    """The chain families of wallets, each once."""
    present = {wallet.chain_family for wallet in wallets}
    return [family for family in FAMILIES if family in present]


def family_of(chain_type: str) -> ChainFamily:
    """The chain family that a configuration names."""
    return cast(ChainFamily, "evm" if chain_type == "ethereum" else chain_type)
