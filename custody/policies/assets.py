"""Asset names and amounts as rules write them."""

from typing import Final

from msgspec import UNSET, UnsetType

from custody.chains import families
from custody.chains.evm.family import coin_chain
from custody.chains.units import NO_UNITS, SOLANA_RENT, USD, Unit, Units
from custody.kit.shapes import MAX_UINT256
from custody.policies.parts import names
from custody.policies.types import InvalidPolicy

_DOLLARS: Final = Unit("USD", 6)
# The field of that name in several types of rule.
AssetName = str
ASSET_UNIT: Final = "smallest unit of `asset`"
ASSET_MEANS: Final = (
    "`evm:native` (the coins of all EVM chains together), `evm:<chainId>:native` (the coin of one), "
    "`evm:<chainId>:<token>`, `solana:native`, `solana:<mint>`, `bitcoin`, or `usd` (what everything that moves is "
    "worth, in millionths of a dollar). "
    "Without it: the native asset of the order's chain family."
)


def native_of(family: str) -> str:
    """The native asset of a chain family."""
    return families.of_name(family).native_asset


def is_native(asset: str | None) -> bool:
    """Say whether it is the native asset of a family."""
    family = families.of_asset(asset)
    return family is not None and family.native_asset == asset


def natives() -> frozenset[str]:
    """The native assets of all families."""
    return frozenset(family.native_asset for family in families.all_families())


def parse_asset(text: str) -> str:
    """The asset as effects name it (EVM tokens in lower case), or InvalidPolicy."""
    if is_native(text) or text == USD:
        return text
    for family in families.all_families():
        if (asset := family.parse_asset(text)) is not None:
            return asset
    raise InvalidPolicy(
        f"`asset` {text[:128]!r} is none of evm:native, evm:<chainId>:native, solana:native, bitcoin, "
        "evm:<chainId>:<token>, solana:<mint>, usd"
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


def say_amount(
    amount: int, asset: str, units: Units = NO_UNITS, chain_id: int | None = None, *, brief: bool = False
) -> str:
    """An amount as a person reads it: `0.5 ETH`, `300 wei`, `5 USDC`, `5 units of evm:1:0x...`.

    `chain_id` is where the order happens, for coins that have one name on many chains. `brief` leaves out the name of
    an asset that the sentence has named before.
    """
    if (unit := unit_of(asset, units, chain_id)) is not None:
        return unit.tell(amount)
    if (family := families.of_asset(asset)) is not None and is_native(names(asset)[-1]):
        return f"{amount} {family.unit}"
    return f"{amount} units" if brief else f"{amount} units of {asset}"


def unit_of(asset: str, units: Units, chain_id: int | None) -> Unit | None:
    """Find the unit that amounts of an asset are written in, if this deployment knows it."""
    if asset == USD:
        return _DOLLARS
    if is_native(asset) and (family := families.of_asset(asset)) is not None and family.coin is not None:
        return family.coin
    if is_native(asset) or asset == SOLANA_RENT:
        return None if chain_id is None else units.coins.get(chain_id)
    if (chain := coin_chain(asset)) is not None:
        return units.coins.get(chain)
    return units.tokens.get(asset)
