"""The terms of an offer on a chain that is known here: which asset, how much of it, to whom, for how long, and how."""

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from custody.chains import families
from custody.chains.evm.transaction import MAX_UINT64
from custody.chains.family import Chain
from custody.chains.table import ChainTable
from custody.chains.units import Token
from custody.kit.errors import Invalid
from custody.kit.shapes import MAX_UINT256
from custody.payments.demand import Offer

# A payment can be used for so many seconds, whatever an offer says.
MIN_SECONDS: Final = 30
MAX_SECONDS: Final = 300
_AMOUNT: Final = re.compile(r"[1-9][0-9]{0,77}\Z")
# Characters of a name or version in an EIP-712 domain.
_MAX_NAME: Final = 128
# Bytes of the memo that an offer wants in the transaction.
_MAX_MEMO: Final = 256
# x402-foundation/x402, typescript/packages/mechanisms: the names that version 1 has for networks.
_NICKNAMES: Final[Mapping[str, str]] = {
    "abstract": "eip155:2741",
    "abstract-testnet": "eip155:11124",
    "avalanche": "eip155:43114",
    "avalanche-fuji": "eip155:43113",
    "base": "eip155:8453",
    "base-sepolia": "eip155:84532",
    "celo": "eip155:42220",
    "educhain": "eip155:656476",
    "ethereum": "eip155:1",
    "iotex": "eip155:4689",
    "megaeth": "eip155:4326",
    "monad": "eip155:143",
    "monad-testnet": "eip155:10143",
    "peaq": "eip155:3338",
    "polygon": "eip155:137",
    "polygon-amoy": "eip155:80002",
    "sei": "eip155:1329",
    "sei-testnet": "eip155:1328",
    "solana": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    "solana-devnet": "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
    "story": "eip155:1513",
}
Scheme = Literal["exact", "upto"]
Method = Literal["eip3009", "permit2", "upto", "solana"]


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that was understood: `amount` of `asset`, its whole name, goes to `pay_to`.

    `third` is whom the offer names besides: on Solana who pays the fee, of `upto` who settles. `name` and `version` are
    those of the token's EIP-712 domain.
    """

    offer: Offer
    scheme: Scheme
    method: Method
    chain: Chain
    network: str
    asset: str
    contract: str
    amount: int
    pay_to: str
    seconds: int
    third: str | None = None
    name: str = ""
    version: str = ""
    decimals: int = 0
    memo: str | None = None
    blockhash: str | None = None


def terms_of(offer: Offer, chains: ChainTable) -> Terms | None:
    """Understand an offer; None where it cannot be paid from here."""
    network = _NICKNAMES.get(offer.network) if offer.version == 1 else offer.network
    chain = next((one for one in chains.all if families.caip2(one) == network), None)
    if chain is None or network is None or not _AMOUNT.match(offer.amount) or int(offer.amount) > MAX_UINT256:
        return None
    family = families.wallets()[chain.family]
    try:
        token, pay_to = (_address(chain, text) for text in (offer.asset, offer.pay_to))
        plain = Terms(
            offer=offer,
            scheme="exact",
            method="eip3009",
            chain=chain,
            network=network,
            asset=family.token_asset(chain.id, token),
            contract=token,
            amount=int(offer.amount),
            pay_to=pay_to,
            seconds=max(MIN_SECONDS, min(offer.seconds, MAX_SECONDS)),
        )
        known = next((one for one in chain.tokens if _address(chain, one.address) == token), None)
        return (_evm if chain.family == "evm" else _solana)(plain, known)
    except Invalid:
        return None


def _evm(plain: Terms, known: Token | None) -> Terms | None:
    extra, scheme = plain.offer.extra, plain.offer.scheme
    method = extra.get("assetTransferMethod", "eip3009")
    if plain.offer.version == 1 and (scheme, method) != ("exact", "eip3009"):
        return None
    if scheme == "upto" and isinstance(third := extra.get("facilitatorAddress"), str):
        return msgspec.structs.replace(plain, scheme="upto", method="upto", third=_address(plain.chain, third))
    if scheme != "exact" or method not in ("eip3009", "permit2"):
        return None
    if method == "permit2":
        return msgspec.structs.replace(plain, method="permit2")
    # A wrong pair makes a useless signature, and never another payment: chain and contract are fixed.
    name, version = extra.get("name"), extra.get("version")
    if known is not None and known.eip712_name is not None:
        name, version = known.eip712_name, known.eip712_version or "1"
    texts = [each for each in (name, version) if isinstance(each, str) and 0 < len(each) <= _MAX_NAME]
    return msgspec.structs.replace(plain, name=texts[0], version=texts[1]) if len(texts) == 2 else None


def _solana(plain: Terms, known: Token | None) -> Terms | None:
    """Decimals are part of what is signed: they are the operator's, or nothing is."""
    extra = plain.offer.extra
    third, memo = extra.get("feePayer"), extra.get("memo")
    if plain.offer.scheme != "exact" or known is None or plain.amount > MAX_UINT64:
        return None
    if not isinstance(third, str) or not isinstance(memo, str | None) or len((memo or "").encode()) > _MAX_MEMO:
        return None
    recent = extra.get("recentBlockhash")
    return msgspec.structs.replace(
        plain,
        method="solana",
        third=_address(plain.chain, third),
        decimals=known.decimals,
        memo=memo or None,
        # As many bytes as an address has, written like one.
        blockhash=_address(plain.chain, recent) if isinstance(recent, str) else None,
    )


def _address(chain: Chain, text: str) -> str:
    """The one spelling of an address of this chain's family; raises Invalid for any other text."""
    family = families.wallets()[chain.family]
    if not family.is_address(text):
        raise Invalid("This is no address of the chain.")
    return family.parse_address(text)
