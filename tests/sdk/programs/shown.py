"""All that programs show of the adapters, with everything logged: the test looks for the token in what is printed."""

import contextlib
import json
import logging
import os
import pickle
import sys
import traceback
from typing import Any

from custody_sdk import Vault, VaultError
from custody_sdk.eth import VaultAccount, vault_middleware
from custody_sdk.solana import SolanaWallet
from custody_sdk.x402 import PayingAuth, client_signer
from web3 import Web3

node, to = sys.argv[1:3]
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
said: dict[str, Any] = {"copied": []}


def is_in(content: bytes) -> bool:
    # No variable of this program may hold it: tracebacks show them.
    return os.environ["SERVICE_AGENT_TOKEN"].encode() in content


with Vault.from_environment() as vault:
    w3 = Web3(Web3.HTTPProvider(node))
    w3.middleware_onion.inject(vault_middleware(vault), layer=0)
    account = VaultAccount(vault)
    middleware = vault_middleware(vault)(w3)
    things = [vault, w3, w3.middleware_onion, middleware, account, SolanaWallet(vault)]
    things += [client_signer(vault), PayingAuth(vault, "quote-1")]
    for thing in things:
        print(
            repr(thing), str(thing), [repr(one) for one in vars(thing).values()] if hasattr(thing, "__dict__") else ""
        )
        with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):
            said["copied"].append(is_in(pickle.dumps(thing)))
    said["shown"] = len(things)

    calls = {
        "web3": lambda: w3.eth.send_transaction({"from": account.address, "to": to, "value": 500}),
        "account": lambda: account.sign_transaction(
            {
                "to": to,
                "value": 500,
                "nonce": 0,
                "gas": 21_000,
                "chainId": 31337,
                "maxFeePerGas": 9,
                "maxPriorityFeePerGas": 1,
            }
        ),
    }
    for name, call in calls.items():
        try:
            call()
        except VaultError as error:
            told = traceback.TracebackException.from_exception(error, capture_locals=True)
            print("".join(told.format()))
            said[name] = [type(error).__name__, "make_request" in "".join(told.format())]
    # The control: it is there.
    said["held"] = is_in(vault._auth._token.encode())
print(json.dumps(said))
