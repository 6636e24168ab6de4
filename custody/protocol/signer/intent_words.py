"""The types and the states of intents."""

from typing import Literal

IntentType = Literal[
    "rpc",
    "transfer",
    "wallet_update",
    "policy_update",
    "policy_rule_create",
    "policy_rule_delete",
    "policy_rule_update",
    "quorum_update",
    "wallet_action",
]
IntentStatus = Literal["pending", "authorized", "executing", "executed", "failed", "rejected", "canceled", "expired"]
