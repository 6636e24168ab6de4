"""web3.py and eth-account before a node that lies about all that it is asked."""

import json
import sys
from typing import Any

from custody_sdk import Vault, VaultError
from custody_sdk.eth import VaultAccount, vault_middleware
from web3 import Web3
from web3.middleware import SignAndSendRawMiddlewareBuilder

node, to, chain = sys.argv[1], sys.argv[2], int(sys.argv[3])


def code_of(call: Any) -> str:
    try:
        call()
    except VaultError as error:
        return f"{type(error).__name__} {error.code}"
    return "signed"


with Vault.from_environment() as vault:
    w3 = Web3(Web3.HTTPProvider(node))
    w3.middleware_onion.inject(vault_middleware(vault), layer=0)
    w3.eth.default_account = w3.eth.accounts[0]
    sent = w3.eth.send_transaction({"to": to, "value": 1})
    said: dict[str, Any] = {"estimated": w3.eth.estimate_gas({"to": to, "value": 1}), "chain": w3.eth.chain_id}
    said["hash"] = "0x" + bytes(sent).hex()

    for name, known in (("any_chain", None), ("one_chain", chain)):
        account = VaultAccount(vault, chain_id=known)
        signing = Web3(Web3.HTTPProvider(node))
        signing.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
        order: Any = {"from": account.address, "to": to, "value": 2}
        # web3 takes chain, nonce, gas and fees from the node.
        filled = code_of(lambda signing=signing, order=order: signing.eth.send_transaction(order))
        fees = {"gas": 21_000, "maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1, "nonce": 1000}
        given: Any = {"to": to, "value": 2, "chainId": said["chain"], **fees}
        said[name] = [filled, code_of(lambda account=account, given=given: account.sign_transaction(given))]
print(json.dumps(said))
