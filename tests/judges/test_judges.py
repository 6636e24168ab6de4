"""Signatures held against the libraries that wallets read them with: ethers, viem, web3.js, tweetnacl."""

import base64
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from coincurve import PrivateKey
from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from custody.chains.evm import transaction, typed_data
from custody.chains.evm.address import address_of
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.solana import message as solana_message
from custody.chains.solana import sign as solana
from tests.judges import npm

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

SEED = 20_260_101
DOCUMENTS = json.loads((Path(__file__).parents[1] / "vectors" / "typed_data.json").read_text())
NESTED = {
    "domain": {"name": "Exchange", "version": "2", "chainId": "8453", "verifyingContract": "0x" + "ab" * 20},
    "types": {
        "Basket": [{"name": "lots", "type": "Lot[][2]"}, {"name": "by", "type": "Party"}],
        "Lot": [{"name": "amounts", "type": "int128[]"}, {"name": "proof", "type": "bytes"}],
        "Party": [{"name": "wallet", "type": "address"}, {"name": "tag", "type": "bytes3"}],
    },
    "primaryType": "Basket",
    "value": {
        "lots": [[], [{"amounts": ["-5", str(2**127 - 1)], "proof": "0x"}, {"amounts": [], "proof": "0x" + "01" * 40}]],
        "by": {"wallet": "0x" + "cd" * 20, "tag": "0x00ff01"},
    },
}
UNUSUAL_NAME = {
    "domain": {},
    "types": {"Exchange:Note": [{"name": "text", "type": "string"}]},
    "primaryType": "Exchange:Note",
    "value": {"text": "caf\u00e9 \U0001f404"},
}


@pytest.fixture(scope="session", autouse=True)
def _judges() -> None:
    npm.install()


def verdicts(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    assert node
    lines = "\n".join(json.dumps(case) for case in cases)
    done = subprocess.run(
        [node, "judge.mjs"], cwd=npm.JUDGES, input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def some_transaction(chance: random.Random, number: int) -> transaction.EvmTransaction:
    max_fee = chance.getrandbits(chance.choice([1, 40, 90]))
    return transaction.EvmTransaction(
        chain_id=chance.choice([1, 137, 8453, 31337]),
        nonce=chance.choice([0, 127, 128, chance.getrandbits(32)]),
        gas_limit=chance.randint(21_000, 30_000_000),
        max_fee=max_fee,
        priority_fee=chance.randint(0, max_fee),
        to="0x" + chance.randbytes(20).hex(),
        value=chance.getrandbits(chance.choice([1, 64, 256])),
        data=chance.randbytes(chance.choice([0, 1, 4, 55, 56, 68, 300])),
        legacy=number % 2 == 0,
    )


def expectation(made: transaction.EvmTransaction, signed: transaction.SignedTransaction, signer: str) -> dict[str, Any]:
    return {
        "signer": signer,
        "hash": signed.hash,
        "type": 0 if made.legacy else 2,
        "chainId": str(made.chain_id),
        "nonce": made.nonce,
        "gas": str(made.gas_limit),
        "maxFee": str(made.max_fee),
        "priorityFee": "0" if made.legacy else str(made.priority_fee),
        "to": made.to,
        "value": str(made.value),
        "data": "0x" + made.data.hex(),
    }


def test_ethers_and_viem_read_every_field_of_our_transactions() -> None:
    chance = random.Random(SEED)
    key = PrivateKey(chance.randbytes(32))
    signer = address_of(key.public_key.format(compressed=False))
    made = [some_transaction(chance, number) for number in range(40)]
    signed = [transaction.sign(each, key) for each in made]

    found = verdicts([{"kind": "transaction", "raw": "0x" + each.raw.hex()} for each in signed])

    wanted = [expectation(each, its, signer) for each, its in zip(made, signed, strict=True)]
    assert [verdict.get("ethers", verdict) for verdict in found] == wanted
    assert [verdict.get("viem", verdict) for verdict in found] == wanted


def test_ethers_and_viem_recover_the_signer_of_our_typed_data() -> None:
    key = PrivateKey(random.Random(SEED).randbytes(32))
    signer = address_of(key.public_key.format(compressed=False))
    cases = []
    for document in [*DOCUMENTS, NESTED, UNUSUAL_NAME]:
        fields = {name: document[name] for name in ("domain", "types", "primaryType", "value")}
        signature = typed_data.sign(msgspec.convert(fields, TypedDataOrder), key)
        types = {name: declared for name, declared in fields["types"].items() if name != "EIP712Domain"}
        cases.append({**fields, "types": types, "kind": "typed_data", "signature": signature})

    assert verdicts(cases) == [{"ethers": signer, "viem": signer}] * len(cases)


def test_a_changed_document_recovers_to_somebody_else() -> None:
    key = PrivateKey(random.Random(SEED).randbytes(32))
    signature = typed_data.sign(msgspec.convert(UNUSUAL_NAME, TypedDataOrder), key)

    (verdict,) = verdicts([{**UNUSUAL_NAME, "kind": "typed_data", "value": {"text": "cafe"}, "signature": signature}])

    assert set(verdict) == {"ethers", "viem"}
    assert address_of(key.public_key.format(compressed=False)) not in verdict.values()


def some_solana_order(chance: random.Random, payer: Pubkey, number: int) -> str:
    """An unsigned transaction as an agent would send it, with one to three transfers."""
    moves = [
        transfer(
            TransferParams(from_pubkey=payer, to_pubkey=Pubkey(chance.randbytes(32)), lamports=chance.getrandbits(40))
        )
        for _ in range(chance.randint(1, 3))
    ]
    if number % 2:
        message: Message | MessageV0 = Message.new_with_blockhash(moves, payer, Hash.default())
    else:
        message = MessageV0.try_compile(payer, moves, [], Hash.default())
    return base64.b64encode(bytes(VersionedTransaction.populate(message, [Signature.default()]))).decode()


def test_web3js_and_tweetnacl_verify_our_solana_transactions() -> None:
    chance = random.Random(SEED)
    seed = chance.randbytes(32)
    payer, blockhash = Keypair.from_seed(seed).pubkey(), str(Hash(chance.randbytes(32)))
    cases, signatures = [], []
    for number in range(10):
        parsed = solana_message.parse(some_solana_order(chance, payer, number))
        signature, raw = solana.sign(parsed, Keypair.from_seed(seed), blockhash)
        cases.append({"kind": "solana", "raw": base64.b64encode(raw).decode(), "publicKey": str(payer)})
        signatures.append(signature)

    for verdict, signature in zip(verdicts(cases), signatures, strict=True):
        assert verdict["verified"] is True
        assert verdict["signature"] == bytes(Signature.from_string(signature)).hex()
        assert (verdict["payer"], verdict["blockhash"]) == (str(payer), blockhash)
        assert set(verdict["programs"]) == {"1" * 32}
