"""The contract calls we can read, and what each one does to us.

A reader gets strictly decoded arguments and returns what happens, or None when the call is about somebody else or
means something we cannot vouch for; that leaves it unread, and a person decides.
"""

from collections.abc import Callable

import msgspec

from custody.chains.evm.abi import Type
from custody.chains.types import UNLIMITED, Call, Effect
from custody.kit.shapes import MAX_UINT256

# The same address on every chain that has the canonical deployment; elsewhere its calls stay unread.
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
# More than any honest batch has, and few enough to be judged quickly and read by a person.
MAX_EFFECTS = 100

type Reading = tuple[tuple[Effect, ...], Call] | None


class Site(msgspec.Struct, frozen=True):
    """The place of a call, and who we are there."""

    chain_id: int
    contract: str
    selector: str
    sender: str
    # Coins sent along.
    value: int
    # The wallet, and the contract that it has make the call: what that holds is ours.
    us: tuple[str, ...]
    # What the call is given, behind its selector.
    arguments: bytes = b""

    def asset(self, token: str | None = None) -> str:
        """The asset name of a token, by default of the contract itself."""
        return f"evm:{self.chain_id}:{token or self.contract}"

    def call(self, *, recipient: str | None = None, spender: str | None = None, amount: int | None = None) -> Call:
        """This call with what was read from its arguments."""
        return Call(
            self.chain_id,
            self.contract,
            self.selector,
            native_value=self.value,
            recipient=recipient,
            spender=spender,
            amount=amount,
            decoded=True,
            arguments=self.arguments,
        )


def _spend(site: Site, to: str, amount: int, token: str | None = None) -> Reading:
    call = site.call(recipient=to, amount=amount)
    unlimited = amount >= UNLIMITED
    effect = Effect("transfer", site.asset(token), amount, site.sender, to, unlimited=unlimited, call=call)
    return (effect,), call


def _allow(site: Site, spender: str, amount: int, token: str | None = None, *, revokes: bool = False) -> Reading:
    call = site.call(spender=spender, amount=amount)
    effect = Effect(
        "approval",
        site.asset(token),
        amount,
        site.sender,
        spender=spender,
        unlimited=amount >= UNLIMITED,
        call=call,
        revokes=revokes,
    )
    return (effect,), call


def _set_allowance(site: Site, spender: str, amount: int, token: str | None = None) -> Reading:
    """Nobody but an ERC-20 token or Permit2 knows these calls: 0 takes back. `approve` of 0 gives NFT number 0 away."""
    return _allow(site, spender, amount, token, revokes=not amount)


def _transfer_from(site: Site, source: str, to: str, amount: int) -> Reading:
    return _spend(site, to, amount) if source in site.us else None


def _decrease_allowance(site: Site, spender: str, _: int) -> Reading:
    return _set_allowance(site, spender, 0)


def _permit(site: Site, owner: str, spender: str, amount: int, *_: object) -> Reading:
    return _set_allowance(site, spender, amount) if owner in site.us else None


def _dai_permit(site: Site, holder: str, spender: str, _n: int, _e: int, allowed: bool, *_: object) -> Reading:
    return _set_allowance(site, spender, MAX_UINT256 if allowed else 0) if holder in site.us else None


def _with_authorization(site: Site, source: str, to: str, amount: int, *_: object) -> Reading:
    return _spend(site, to, amount) if source in site.us else None


def _permit2_approve(site: Site, token: str, spender: str, amount: int, _expiration: int) -> Reading:
    return _set_allowance(site, spender, amount, token) if site.contract == PERMIT2 else None


def _permit2_transfer(site: Site, source: str, to: str, amount: int, token: str) -> Reading:
    return _spend(site, to, amount, token) if site.contract == PERMIT2 and source in site.us else None


def _nfts(site: Site, source: str, to: str, items: list[tuple[int, int]]) -> Reading:
    if source not in site.us or not items:
        return None
    call = site.call(recipient=to, amount=min(sum(amount for _, amount in items), MAX_UINT256))
    return tuple(
        Effect("transfer", site.asset(), amount, site.sender, to, nft=True, label=f"token {token_id}", call=call)
        for token_id, amount in items
    ), call


def _nft_721(site: Site, source: str, to: str, token_id: int, _data: bytes = b"") -> Reading:
    return _nfts(site, source, to, [(token_id, 1)])


def _nft_1155(site: Site, source: str, to: str, token_id: int, amount: int, _data: bytes) -> Reading:
    return _nfts(site, source, to, [(token_id, amount)])


def _nft_1155_batch(site: Site, source: str, to: str, ids: list[int], amounts: list[int], _data: bytes) -> Reading:
    return _nfts(site, source, to, list(zip(ids, amounts, strict=True)))


def _approval_for_all(site: Site, operator: str, approved: bool) -> Reading:
    if not approved:
        return _set_allowance(site, operator, 0)
    call = site.call(spender=operator, amount=MAX_UINT256)
    effect = Effect(
        "approval",
        site.asset(),
        MAX_UINT256,
        site.sender,
        spender=operator,
        unlimited=True,
        nft=True,
        label="every token",
        call=call,
    )
    return (effect,), call


_SIGNED = ("uint8", "bytes32", "bytes32")
_AUTHORIZATION = ("address", "address", "uint256", "uint256", "uint256", "bytes32", *_SIGNED)

READERS: dict[str, tuple[tuple[Type, ...], Callable[..., Reading]]] = {
    "0xa9059cbb": (("address", "uint256"), _spend),
    "0x23b872dd": (("address", "address", "uint256"), _transfer_from),
    "0x095ea7b3": (("address", "uint256"), _allow),
    "0x39509351": (("address", "uint256"), _allow),  # increaseAllowance: what is added counts
    "0xa457c2d7": (("address", "uint256"), _decrease_allowance),
    "0xd505accf": (("address", "address", "uint256", "uint256", *_SIGNED), _permit),
    "0x8fcbaf0c": (("address", "address", "uint256", "uint256", "bool", *_SIGNED), _dai_permit),
    "0xe3ee160e": (_AUTHORIZATION, _with_authorization),
    "0xef55bec6": (_AUTHORIZATION, _with_authorization),
    "0x87517c45": (("address", "address", "uint160", "uint48"), _permit2_approve),
    "0x36c78516": (("address", "address", "uint160", "address"), _permit2_transfer),
    "0x42842e0e": (("address", "address", "uint256"), _nft_721),
    "0xb88d4fde": (("address", "address", "uint256", "bytes"), _nft_721),
    "0xf242432a": (("address", "address", "uint256", "uint256", "bytes"), _nft_1155),
    "0x2eb2c2d6": (("address", "address", ["uint256"], ["uint256"], "bytes"), _nft_1155_batch),
    "0xa22cb465": (("address", "bool"), _approval_for_all),
}
