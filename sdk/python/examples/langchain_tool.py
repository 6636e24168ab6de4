"""A tool of LangChain: bind it with `model.bind_tools([pay])`. Answers are sentences that tell the model what to do."""

import os

from custody_sdk import Vault, VaultError
from langchain_core.tools import tool

vault = Vault.from_environment()


@tool
def pay(payment_name: str, to: str, amount: str) -> str:
    """Pay. payment_name is your name for THIS payment, such as invoice-4711; use it again only to repeat it."""
    try:
        return f"paid: {vault.pay(payment_name, to, amount, os.environ['ASSET']).tx_hash}"
    except VaultError as error:
        return f"{type(error).__name__}: {error}"
