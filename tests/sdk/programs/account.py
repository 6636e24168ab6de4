"""eth-account's account, as libraries use it: transactions, messages, documents, and web3's own middleware."""

import json
import sys
from typing import Any

from custody_sdk import Vault, VaultError
from custody_sdk.eth import VaultAccount
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from web3 import Web3
from web3.middleware import SignAndSendRawMiddlewareBuilder

node, to, chain = sys.argv[1], sys.argv[2], int(sys.argv[3])
FEES = {"gas": 21_000, "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9, "chainId": chain}
DOMAIN = {"name": "Mail", "version": "1", "chainId": chain, "salt": b"\x09" * 32}
TYPES = {
    "Mail": [
        {"name": "number", "type": "uint256"},
        {"name": "of", "type": "bytes32"},
        {"name": "by", "type": "Person[]"},
    ],
    "Person": [{"name": "wallet", "type": "address"}, {"name": "raw", "type": "bytes"}],
}
MESSAGE = {"number": 2**255, "of": b"\x07" * 32, "by": [{"wallet": to, "raw": b"\x01\x02"}]}


def code_of(call: Any) -> str:
    try:
        call()
    except VaultError as error:
        return f"{type(error).__name__} {error.code}"
    return "signed"


with Vault.from_environment() as vault:
    account = VaultAccount(vault)
    w3 = Web3(Web3.HTTPProvider(node))
    nonce = w3.eth.get_transaction_count(account.address)
    order = {"to": to, "value": 3, "nonce": nonce, **FEES}
    signed = account.sign_transaction(order)
    said: dict[str, Any] = {
        "own": Account.recover_transaction(signed.raw_transaction) == account.address,
        "again": account.sign_transaction(order) == signed,
        "status": w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(signed.raw_transaction))["status"],
    }

    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    sent = w3.eth.send_transaction({"from": account.address, "to": to, "value": 2})
    said["by_web3"] = w3.eth.wait_for_transaction_receipt(sent, timeout=60)["status"]

    text = encode_defunct(text="I own this wallet.")
    said["message"] = Account.recover_message(text, signature=account.sign_message(text).signature) == account.address
    document = account.sign_typed_data(DOMAIN, TYPES, MESSAGE)
    signable = encode_typed_data(DOMAIN, TYPES, MESSAGE)
    said["document"] = Account.recover_message(signable, signature=document.signature) == account.address
    whole = {"domain": {"name": "Mail"}, "types": {**TYPES, "EIP712Domain": [{"name": "name", "type": "string"}]}}
    whole |= {"primaryType": "Mail", "message": MESSAGE}
    said["whole"] = len(account.sign_typed_data(full_message=whole).signature)

    said["blobs"] = code_of(lambda: account.sign_transaction(order, blobs=[b"x"]))
    said["blob_fields"] = code_of(lambda: account.sign_transaction({**order, "type": 3, "blobVersionedHashes": []}))
    said["authorizations"] = code_of(lambda: account.sign_transaction({**order, "type": 4, "authorizationList": []}))
    said["legacy"] = code_of(lambda: account.sign_transaction({**order, "type": 0}))
    said["creation"] = code_of(lambda: account.sign_transaction({**order, "to": None}))
    said["other_from"] = code_of(lambda: account.sign_transaction({**order, "from": to}))
    said["no_nonce"] = code_of(lambda: account.sign_transaction({"to": to, "value": 3, **FEES}))
    said["hash"] = code_of(lambda: account.unsafe_sign_hash(b"\1" * 32))
    said["key"] = code_of(lambda: account.key)
    said["bytes"] = code_of(lambda: bytes(account))
print(json.dumps(said))
