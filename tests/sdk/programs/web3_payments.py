"""web3.py pays by the vault: several at once, by threads and on a loop, and what nobody may send."""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from custody_sdk import AsyncVault, Refused, Vault, VaultError, Waiting
from custody_sdk.eth import vault_middleware
from web3 import AsyncWeb3, Web3

node, to, token = sys.argv[1:4]
ABI = [
    {
        "name": "transfer",
        "type": "function",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "to", "type": "address"}, {"name": "amount", "type": "uint256"}],
        "outputs": [{"name": "", "type": "bool"}],
    }
]


def code_of(call: Any) -> str:
    try:
        call()
    except VaultError as error:
        return f"{type(error).__name__} {error.code}"
    return "sent"


with Vault.from_environment() as vault:
    w3 = Web3(Web3.HTTPProvider(node))
    w3.middleware_onion.inject(vault_middleware(vault), layer=0)
    w3.eth.default_account = w3.eth.accounts[0]
    said: dict[str, Any] = {"accounts": w3.eth.accounts}

    with ThreadPoolExecutor(5) as beside:
        sent = list(beside.map(lambda _: w3.eth.send_transaction({"to": to, "value": 1}), range(5)))
    said["mined"] = [w3.eth.wait_for_transaction_receipt(one, timeout=60)["status"] for one in sent]

    contract = w3.eth.contract(address=Web3.to_checksum_address(token), abi=ABI)
    moved = contract.functions.transfer(to, 7).transact({"from": w3.eth.default_account})
    said["token"] = w3.eth.wait_for_transaction_receipt(moved, timeout=60)["status"]

    said["refused"] = code_of(lambda: w3.eth.send_transaction({"to": to, "value": 500}))
    said["waiting"] = code_of(lambda: w3.eth.send_transaction({"to": to, "value": 50}))
    said["creation"] = code_of(lambda: w3.eth.send_transaction({"data": "0x00", "gas": 100_000}))
    said["other_from"] = code_of(lambda: w3.eth.send_transaction({"from": to, "to": to, "value": 1, "gas": 21_000}))
    said["legacy"] = code_of(lambda: w3.eth.send_transaction({"to": to, "value": 1, "gasPrice": 10**9}))
    listed = [{"address": to, "storageKeys": []}]
    said["access_list"] = code_of(lambda: w3.eth.send_transaction({"to": to, "value": 1, "accessList": listed}))
    said["eth_sign"] = code_of(lambda: w3.eth.sign(w3.eth.default_account, text="hello"))
    said["wrong"] = [issubclass(Refused, VaultError), issubclass(Waiting, VaultError)]


async def on_a_loop() -> list[int]:
    async with AsyncVault.from_environment() as vault:
        w3 = AsyncWeb3(AsyncWeb3.AsyncHTTPProvider(node))
        w3.middleware_onion.inject(vault_middleware(vault), layer=0)
        own = (await w3.eth.accounts)[0]
        order: Any = {"from": own, "to": to, "value": 1}
        sent = await asyncio.gather(*(w3.eth.send_transaction(order) for _ in range(5)))
        return [(await w3.eth.wait_for_transaction_receipt(one, timeout=60))["status"] for one in sent]


said["on_a_loop"] = asyncio.run(on_a_loop())
print(json.dumps(said))
