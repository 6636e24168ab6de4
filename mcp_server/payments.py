"""Tools that pay and sign: each is one order of the service, under an idempotency key made of the payment's name."""

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from mcp_server.outcomes import ToolError, error, order, reasons, unknown
from mcp_server.vault import Answer, NoAnswer, Vault
from mcp_server.wallet import read

# transfer(address,uint256)
_TRANSFER = "0xa9059cbb"
_WORD_BYTES = 32
_MAX_UINT256 = 2**256 - 1
# The service keeps an idempotency key for 24 hours; an hour less, for clocks that differ.
_KEY_SECONDS = 23 * 3600
# Orders of one name that are looked through: one of each tool, and what was refused.
_MAX_EARLIER = 50
_DECISIONS = {"sign": "sign", "queue": "ask", "refuse": "refuse"}


async def check_payment(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Ask what would happen to a payment now."""
    answer = await _read(vault, _order(given))
    if not answer.done:
        raise error(answer, reading=True)
    why, needed = reasons(answer.get("results")), answer.get("needed")
    return {
        "decision": _DECISIONS.get(str(answer.get("decision")), "refuse"),
        **({"reasons": why} if why else {}),
        **({"needed": [str(one)[:500] for one in needed[:16]]} if isinstance(needed, list) and needed else {}),
    }


async def pay(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Pay in a coin or a token on an EVM chain."""
    name = given["payment_name"]
    body = _order(given) | {"referenceId": name}
    await _refuse_old_name(vault, ("evm",), name)
    answer = await _post(vault, "/vault/{agent}/sign", body, key_of(vault.agent, "signEvmTransaction", name))
    return order(answer, transaction_hash="txHash")


async def sign_typed_data(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Sign an EIP-712 document."""
    name, document = given["payment_name"], given["document"]
    fields = ("domain", "types", "primaryType", "message", "value")
    if unknown_fields := [field for field in document if field not in fields]:
        raise ToolError(
            f"bad_argument: document must have domain, types, primaryType and message alone, and has "
            f"{str(unknown_fields[0])[:40]!r}. Nothing was done. Change that argument and call again."
        )
    body = dict(document) | {"referenceId": name}
    await _refuse_old_name(vault, ("typed_data",), name)
    answer = await _post(vault, "/vault/{agent}/sign-typed-data", body, key_of(vault.agent, "signTypedData", name))
    return order(answer, signature="signature")


async def pay_demand(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Get the payment for what a server demands (x402)."""
    name = given["payment_name"]
    body = {"demand": given["demand"], "referenceId": name}
    if "resource" in given:
        body["resource"] = given["resource"]
    await _refuse_old_name(vault, ("x402", "solana_x402"), name)
    answer = await _post(vault, "/vault/{agent}/x402", body, key_of(vault.agent, "payDemand", name))
    if answer.code == "offer_unpayable":
        return {
            "outcome": "refused",
            "what_to_do": "Do not try variations. Tell the user.",
            "reasons": [answer.sentence],
        }
    return order(answer, header="header", value="value", asset="asset", amount="amount", expires_at="expiresAt")


def _order(given: Mapping[str, Any]) -> dict[str, Any]:
    chain, to, amount = given["chain_id"], given["to"], int(given["amount"])
    if amount > _MAX_UINT256:
        raise ToolError(
            "bad_argument: amount must be below 2^256, for example 2500000. "
            "Nothing was done. Change that argument and call again."
        )
    token = _token(given.get("asset", "native"), chain)
    if token is None:
        return {"to": to, "value": str(amount), "chainId": chain}
    data = _TRANSFER + to[2:].lower().rjust(2 * _WORD_BYTES, "0") + f"{amount:064x}"
    return {"to": token, "value": "0", "data": data, "chainId": chain}


def _token(asset: str, chain: int) -> str | None:
    """The token's contract, None for the chain's coin. An asset's whole name has to be of the same chain."""
    *named, last = asset.split(":")
    if named and named[1] != str(chain):
        raise ToolError(
            f"bad_argument: asset is of chain {named[1]}, and chain_id is {chain}; they must be the same, for example "
            f"evm:{chain}:native. Nothing was done. Change that argument and call again."
        )
    return None if last == "native" else last


def key_of(agent: str, operation: str, name: str) -> str:
    """The idempotency key: the same for a payment by its name, however and by whichever client it is asked for."""
    return "sdk-" + hashlib.sha256("\n".join((agent, operation, name)).encode()).hexdigest()[:48]


async def _refuse_old_name(vault: Vault, kinds: tuple[str, ...], name: str) -> None:
    """Raise ToolError for a name whose key the service may have forgotten: it would be paid under it once more."""
    then = time.time() - _KEY_SECONDS  # noqa: TID251 - the kit is not for clients
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then))
    found = await read(vault, "/vault/{agent}/transactions", referenceId=name, to=until, limit=_MAX_EARLIER)
    rows = found.get("transactions")
    for row in rows if isinstance(rows, list) else []:
        if row.get("kind") in kinds and row.get("status") != "rejected":
            raise ToolError(
                f"name_used: {name} was another day's payment, {row.get('id')}. Nothing was done. Look with "
                "get_payment what became of it; only a new payment needs a new name."
            )


async def _post(vault: Vault, path: str, body: object, key: str) -> Answer:
    try:
        return await vault.post(path, body, key)
    except NoAnswer as problem:
        raise unknown(problem) from None


async def _read(vault: Vault, body: dict[str, Any]) -> Answer:
    try:
        return await vault.simulate({"kind": "evm", "request": body})
    except NoAnswer as problem:
        raise unknown(problem, reading=True) from None
