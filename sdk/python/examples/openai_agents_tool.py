"""A tool of the OpenAI Agents SDK: `Agent(name="Buyer", tools=[pay])`. Answers tell the model what to do."""

import os

from agents import function_tool
from custody_sdk import AsyncVault, VaultError

vault = AsyncVault.from_environment()


@function_tool
async def pay(payment_name: str, to: str, amount: str) -> str:
    """Pay. payment_name is your name for THIS payment, such as invoice-4711; use it again only to repeat it."""
    try:
        return f"paid: {(await vault.pay(payment_name, to, amount, os.environ['ASSET'])).tx_hash}"
    except VaultError as error:
        return f"{type(error).__name__}: {error}"
