"""The play USDC of the local chain: the code of its source, a fixed address, and a name in development's table."""

import json
from pathlib import Path

import pytest
from eth_abi import decode, encode
from eth_account import Account
from eth_utils.crypto import keccak

from custody.chains import chains_file
from ops import development_chains
from ops.demo.callers import USDC
from ops.local_chain import play_usdc
from ops.local_chain.ledger import CHAIN_ID, FAUCET, Ledger
from ops.local_chain.methods import Methods
from ops.local_chain.node import Node
from ops.settings import load
from tests.outside.processes import PROJECT

FAUCET_ADDRESS = FAUCET.public_key.to_canonical_address()
SOMEBODY = b"\x11" * 20
DOMAIN = {
    "name": play_usdc.SYMBOL,
    "version": play_usdc.VERSION,
    "chainId": CHAIN_ID,
    "verifyingContract": "0x" + play_usdc.ADDRESS.hex(),
}
TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def ask(node: Node, signature: str, kind: str) -> object:
    said = node.ledger.call(SOMEBODY, play_usdc.ADDRESS, 0, bytes.fromhex(signature))
    return decode([kind], said)[0]


def balance(node: Node, holder: bytes) -> int:
    return int(str(ask(node, "70a08231" + holder.hex().rjust(64, "0"), "uint256")))


def test_its_code_is_that_of_the_kept_source() -> None:
    source = json.loads((PROJECT / "tests/vectors/play_usdc.json").read_text())
    arguments = encode(["uint256"], [1])
    creation = bytes.fromhex(source["bytecode"].removeprefix("0x")) + arguments

    assert source["compiler"].startswith("solc 0.8.37, evmVersion paris, optimizer 200 runs")
    assert Ledger().call(FAUCET_ADDRESS, b"", 0, creation) == play_usdc.RUNTIME


def test_it_is_there_before_any_block() -> None:
    node = Node()

    assert node.ledger.height == 0
    assert ask(node, "95d89b41", "string") == "USDC"
    assert ask(node, "313ce567", "uint8") == 6
    assert ask(node, "18160ddd", "uint256") == balance(node, FAUCET_ADDRESS) == play_usdc.SUPPLY


@pytest.mark.parametrize("in_one_piece", [False, True])
def test_a_transfer_that_its_payer_signed_is_made_once(in_one_piece: bool) -> None:
    node, payer, nonce = Node(), Account.from_key(b"\x22" * 32), b"\x33" * 32
    wallet = bytes.fromhex(payer.address[2:])
    Methods(node).table()["dev_fund"](payer.address, "1000000", "USDC")
    message = {
        "from": payer.address,
        "to": "0x" + SOMEBODY.hex(),
        "value": 250_000,
        "validAfter": 0,
        "validBefore": 2**40,
        "nonce": nonce,
    }
    signed = payer.sign_typed_data(DOMAIN, TYPES, message)
    r, s = signed.r.to_bytes(32), signed.s.to_bytes(32)
    proof: list[object] = [r + s + bytes([signed.v])] if in_one_piece else [signed.v, r, s]
    kinds = ["address", "address", "uint256", "uint256", "uint256", "bytes32"]
    kinds += ["bytes"] if in_one_piece else ["uint8", "bytes32", "bytes32"]

    def send(value: int) -> bool:
        words = keccak(f"transferWithAuthorization({','.join(kinds)})".encode())[:4]
        content = [payer.address, "0x" + SOMEBODY.hex(), value, 0, 2**40, nonce, *proof]
        order = node.ledger.fund(play_usdc.ADDRESS, 0, words + encode(kinds, content))
        node.send(order.encode())
        return node.ledger.mined[order.hash].succeeded

    used = "e94a0102" + wallet.hex().rjust(64, "0") + nonce.hex()
    assert ask(node, used, "bool") is False
    assert not send(250_001)
    assert send(250_000)
    assert not send(250_000)
    assert (balance(node, SOMEBODY), balance(node, wallet)) == (250_000, 750_000)
    assert ask(node, used, "bool") is True


def test_dev_fund_gives_some() -> None:
    node = Node()
    methods = Methods(node).table()

    methods["dev_fund"]("0x" + SOMEBODY.hex(), "100000000", "USDC")

    assert balance(node, SOMEBODY) == 100 * 10**6
    assert node.ledger.state().get_balance(SOMEBODY) == 0


def test_development_names_it(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path)})

    development_chains.ensure(settings, tmp_path)

    [token] = next(chain for chain in chains_file.load(settings.environment).all if chain.id == 31337).tokens
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
