"""Custody's client for agents: pay, sign and wait, within rules, without a key.

    from custody_sdk import Vault, Waiting, Refused

    with Vault.from_environment() as vault:
        paid = vault.pay("invoice-4711", to="0x...", amount="42500000", asset="evm:8453:0x...", wait=60)

`custody_sdk.eth`, `.solana` and `.x402` make existing programs use it, each with the library that it is for.
"""

from custody_sdk._asks import NATIVE, Paid, Signed, units
from custody_sdk.client import VERSION, AsyncVault, Vault
from custody_sdk.errors import (
    BadArgument,
    Failed,
    NameTaken,
    NotAsked,
    OutcomeUnknown,
    Refused,
    TryLater,
    VaultError,
    Waiting,
)
from custody_sdk.receipts import verify_receipt
from custody_sdk.webhooks import NotGenuine, verify_webhook

__version__ = VERSION
__all__ = [
    "NATIVE",
    "AsyncVault",
    "BadArgument",
    "Failed",
    "NameTaken",
    "NotAsked",
    "NotGenuine",
    "OutcomeUnknown",
    "Paid",
    "Refused",
    "Signed",
    "TryLater",
    "Vault",
    "VaultError",
    "Waiting",
    "units",
    "verify_receipt",
    "verify_webhook",
]
