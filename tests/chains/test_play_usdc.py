"""The play USDC of the local chain: the code of its source, a fixed address, and a name in development's table."""

import json
from pathlib import Path

from eth_abi import decode, encode

from custody.chains import table
from ops import development_chains
from ops.demo.callers import USDC
from ops.local_chain import play_usdc
from ops.local_chain.ledger import FAUCET, Ledger
from ops.local_chain.methods import Methods
from ops.local_chain.node import Node
from ops.settings import load
from tests.outside.processes import PROJECT

FAUCET_ADDRESS = FAUCET.public_key.to_canonical_address()
SOMEBODY = b"\x11" * 20


def asked(node: Node, signature: str, kind: str) -> object:
    said = node.ledger.call(SOMEBODY, play_usdc.ADDRESS, 0, bytes.fromhex(signature))
    return decode([kind], said)[0]


def balance(node: Node, holder: bytes) -> int:
    return int(str(asked(node, "70a08231" + holder.hex().rjust(64, "0"), "uint256")))


def test_its_code_is_that_of_the_kept_source() -> None:
    source = json.loads((PROJECT / "tests/vectors/erc20.json").read_text())
    arguments = encode(["string", "uint8", "uint256"], ["Any", 18, 1])
    creation = bytes.fromhex(source["bytecode"].removeprefix("0x")) + arguments

    assert source["compiler"].startswith("solc 0.8.37, evmVersion paris, optimizer 200 runs")
    assert Ledger().call(FAUCET_ADDRESS, b"", 0, creation) == play_usdc.RUNTIME


def test_it_is_there_before_any_block() -> None:
    node = Node()

    assert node.ledger.height == 0
    assert asked(node, "95d89b41", "string") == "USDC"
    assert asked(node, "313ce567", "uint8") == 6
    assert asked(node, "18160ddd", "uint256") == balance(node, FAUCET_ADDRESS) == play_usdc.SUPPLY


def test_dev_fund_gives_some() -> None:
    node = Node()
    methods = Methods(node).table()

    methods["dev_fund"]("0x" + SOMEBODY.hex(), "100000000", "USDC")

    assert balance(node, SOMEBODY) == 100 * 10**6
    assert node.ledger.state().get_balance(SOMEBODY) == 0


def test_development_names_it(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path)})

    development_chains.ensure(settings, tmp_path)

    [token] = next(chain for chain in table.load(settings.environment).all if chain.id == 31337).tokens
    assert (token.address, token.symbol, token.decimals) == (USDC, "USDC", 6)
    assert "0x" + play_usdc.ADDRESS.hex() == USDC


def test_a_table_of_the_operator_stays(tmp_path: Path) -> None:
    named = load({"SERVICE_HOME": str(tmp_path), "SERVICE_CHAINS_FILE": "/etc/chains.toml"})
    production = load({"SERVICE_HOME": str(tmp_path), "SERVICE_ENV": "production"})
    for settings in (named, production):
        development_chains.ensure(settings, tmp_path)
    assert not any(tmp_path.iterdir())
    assert named.environment["SERVICE_CHAINS_FILE"] == "/etc/chains.toml"

    (tmp_path / "chains.toml").write_text("# mine\n")
    development_chains.ensure(load({"SERVICE_HOME": str(tmp_path)}), tmp_path)

    assert (tmp_path / "chains.toml").read_text() == "# mine\n"
