"""Tools that look: what the agent has, what it may call, and what became of an order."""

from collections.abc import Mapping
from typing import Any

from mcp_server.outcomes import error, reasons, unknown
from mcp_server.vault import Answer, NoAnswer, Vault

_MICRO = 1_000_000
_LIMITS = ("window", "asset", "limit", "spent", "remaining")


async def wallet_status(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Find addresses, money, limits and what waits."""
    agent = await read(vault, "/agents/{agent}")
    board = await read(vault, "/dashboard/{agent}")
    found = {
        "addresses": agent.get("walletAddresses"),
        "frozen": agent.get("frozenAt") is not None,
        "limits": [{name: limit.get(name) for name in _LIMITS} for limit in _rows(board.get("budgets"))],
        "waiting": board.get("pendingApprovals"),
    }
    if "chain_id" not in given:
        return found
    chain = await read(vault, "/agents/{agent}/balance", chainId=given["chain_id"])
    held = chain.get("balances") or {}
    return found | {
        "balance": {
            "amount": held.get("native"),
            "formatted": held.get("nativeFormatted"),
            "symbol": held.get("symbol"),
        }
    }


async def list_apis(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """List the APIs that the agent may call."""
    del given
    answer = await read(vault, "/agents/{agent}/apis", limit=200)
    rows = _rows(answer.data)
    return {
        "apis": [
            {
                "host": row.get("hostPattern"),
                "path": row.get("pathPattern"),
                "method": row.get("method"),
                "price_usd": _dollars(row.get("costMicroUsd")),
                "most_usd": _dollars(row.get("maxMicroUsd")),
                "pays": row.get("pays") is True,
            }
            for row in rows
            if row.get("enabled") is True
        ]
    }


async def get_payment(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Look what became of an order."""
    return payment(await transaction(vault, given["transaction_id"]))


async def transaction(vault: Vault, tx_id: str) -> Answer:
    """Read one transaction; `tx_id` was checked to be an id. Raises ToolError."""
    return await read(vault, f"/vault/{{agent}}/transactions/{tx_id}")


def payment(answer: Answer) -> dict[str, Any]:
    """A transaction as tools show it."""
    found = {
        "transaction_id": answer.get("id"),
        "state": answer.get("status"),
        "state_detail": answer.get("statusDetail"),
        "transaction_hash": answer.get("txHash"),
        "signature": answer.get("signature"),
        "reason": answer.get("reason"),
        "payment_name": answer.get("referenceId"),
    }
    why = reasons(answer.get("policyResults")) if answer.get("status") in ("pending_approval", "rejected") else []
    return {name: value for name, value in found.items() if value is not None} | ({"reasons": why} if why else {})


async def read(vault: Vault, path: str, **query: str | int) -> Answer:
    """Read something of the service. Raises ToolError unless it was answered."""
    try:
        answer = await vault.get(path, **query)
    except NoAnswer as problem:
        raise unknown(problem, reading=True) from None
    if not answer.done:
        raise error(answer, reading=True)
    return answer


def _rows(data: Any) -> list[dict[str, Any]]:
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _dollars(micro: Any) -> str:
    amount = micro if isinstance(micro, int) else 0
    return f"{amount // _MICRO}.{amount % _MICRO:06d}".rstrip("0").rstrip(".")
