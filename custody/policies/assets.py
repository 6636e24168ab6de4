"""Asset names and amounts as rules write them."""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from custody.chains.evm.family import coin_chain
from custody.chains.families import FAMILIES
from custody.chains.units import NO_UNITS, Unit, Units
from custody.kit.shapes import MAX_UINT256
from custody.policies.parts import SOLANA_RENT, names
from custody.policies.types import InvalidPolicy

BITCOIN: Final = FAMILIES["bitcoin"].native_asset
NATIVE_OF: Final[Mapping[str, str]] = {name: family.native_asset for name, family in FAMILIES.items()}
NATIVES: Final = frozenset(NATIVE_OF.values())
# One coin, whatever its network.
_BTC: Final = Unit("BTC", 8, FAMILIES["bitcoin"].unit)
_UNITS: Final = {family.native_asset: family.unit for family in FAMILIES.values()}
# The field of that name in several types of rule.
AssetName = str
ASSET_UNIT: Final = "smallest unit of `asset`"
ASSET_MEANS: Final = (
    "`evm:native` (the coins of all EVM chains together), `evm:<chainId>:native` (the coin of one), "
    "`evm:<chainId>:<token>`, `solana:native`, `solana:<mint>` or `bitcoin`. "
    "Without it: the native asset of the order's chain family."
)


def parse_asset(text: str) -> str:
    """The asset as effects name it (EVM tokens in lower case), or InvalidPolicy."""
    if text in NATIVES:
        return text
    for family in FAMILIES.values():
        if (asset := family.parse_asset(text)) is not None:
            return asset
    raise InvalidPolicy(
        f"`asset` {text[:128]!r} is none of evm:native, evm:<chainId>:native, solana:native, bitcoin, "
        "evm:<chainId>:<token>, solana:<mint>"
    )


def parse_amount(text: str, field: str) -> int:
    """The amount as an integer, or InvalidPolicy when it does not fit 256 bits."""
    amount = int(text)
    if amount > MAX_UINT256:
        raise InvalidPolicy(f"`{field}` must be at most 2^256-1")
    return amount


def parse_optional_amount(text: str | UnsetType | None, field: str) -> int | None:
    """The amount, or None when the field is absent."""
    return None if text is None or text is UNSET else parse_amount(text, field)


def parse_optional_asset(text: str | UnsetType | None) -> str | None:
    """The asset, or None for the native asset of whatever chain family is asked."""
    return None if text is None or text is UNSET else parse_asset(text)


def told(amount: int, asset: str, units: Units = NO_UNITS, chain_id: int | None = None, *, brief: bool = False) -> str:
    """An amount as a person reads it: `0.5 ETH`, `300 wei`, `5 USDC`, `5 units of evm:1:0x...`.

    `chain_id` is where the order happens, for coins that have one name on many chains. `brief` leaves out the name of
    an asset that the sentence has named before.
    """
    if (unit := unit_of(asset, units, chain_id)) is not None:
        return unit.told(amount)
    if (small := _UNITS.get(names(asset)[-1])) is not None:
        return f"{amount} {small}"
    return f"{amount} units" if brief else f"{amount} units of {asset}"


def unit_of(asset: str, units: Units, chain_id: int | None) -> Unit | None:
    """Find the unit that amounts of an asset are written in, if this deployment knows it."""
    if asset == BITCOIN:
        return _BTC
    if asset in NATIVES or asset == SOLANA_RENT:
        return None if chain_id is None else units.coins.get(chain_id)
    if (chain := coin_chain(asset)) is not None:
        return units.coins.get(chain)
    return units.tokens.get(asset)
