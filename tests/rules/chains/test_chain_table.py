"""Tokens and fees that the operator names in SERVICE_CHAINS_FILE."""

from pathlib import Path

import pytest

from custody.chains.chains_file import load
from custody.chains.units import Unit

USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
MINT = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"


def declare(tmp_path: Path, chain: int, token: str) -> dict[str, str]:
    file = tmp_path / "chains.toml"
    file.write_text(f"[[chains]]\nid = {chain}\ntokens = [{token}]\n")
    return {"SERVICE_CHAINS_FILE": str(file)}


@pytest.mark.parametrize(
    ("chain", "address", "asset"), [(1, USDC, f"evm:1:{USDC.lower()}"), (101, MINT, f"solana:{MINT}")]
)
def test_a_token_is_known_by_its_asset(tmp_path: Path, chain: int, address: str, asset: str) -> None:
    token = f'{{address = "{address}", symbol = "USDC", decimals = 6}}'

    units = load(declare(tmp_path, chain, token)).units

    assert units.tokens == {asset: Unit("USDC", 6)}
    assert units.coins[137].tell(5 * 10**17) == "0.5 POL"


@pytest.mark.parametrize(
    "token",
    [
        '{address = "0x12", symbol = "USDC", decimals = 6}',
        f'{{address = "{MINT}", symbol = "USDC", decimals = 6}}',
        f'{{address = "{USDC[:-1]}9", symbol = "USDC", decimals = 6}}',
        f'{{address = "{USDC}", symbol = "US DC", decimals = 6}}',
        f'{{address = "{USDC}", symbol = "", decimals = 6}}',
        f'{{address = "{USDC}", symbol = "USDC", decimals = -1}}',
        f'{{address = "{USDC}", symbol = "USDC"}}',
        f'{{address = "{USDC}", symbol = "USDC", decimals = 6, price = 1}}',
    ],
)
def test_a_token_that_cannot_be_meant_stops_the_start(tmp_path: Path, token: str) -> None:
    with pytest.raises(ValueError, match="SERVICE_CHAINS_FILE"):
        load(declare(tmp_path, 1, token))


@pytest.mark.parametrize(("floor", "fits"), [(0, True), (50 * 10**9, True), (50 * 10**9 + 1, False), (-1, False)])
def test_a_floor_on_fees_is_within_the_caps(tmp_path: Path, floor: int, fits: bool) -> None:
    file = tmp_path / "chains.toml"
    file.write_text(f"[[chains]]\nid = 1\nmin_priority_fee_per_gas = {floor}\n")
    given = {"SERVICE_CHAINS_FILE": str(file)}

    if not fits:
        with pytest.raises(ValueError, match="min_priority_fee_per_gas of chain 1"):
            load(given)
        return
    chain = load(given).find(1)
    assert chain is not None
    assert chain.min_priority_fee_per_gas == floor
