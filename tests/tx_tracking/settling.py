"""Payments by x402 as whom they pay takes them to the chain, or leaves them."""

import base64
import json
from typing import Any

from eth_abi import encode
from eth_utils import keccak, to_checksum_address

from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_kinds import X402_EXACT, X402_UPTO
from ops.local_chain import play_usdc
from tests.execution.contracts import call
from tests.fixtures.callers import Agent, Tenant, rule
from tests.outside.evm_node import CALLER, EvmNode
from tests.routes.orders import SELLER, payment_demand, payment_offer

USDC = to_checksum_address(play_usdc.ADDRESS)
ASSET = f"evm:31337:{USDC.lower()}"
HELD, PRICE = 1_000, 60
WAYS: dict[str, dict[str, Any]] = {
    "eip3009": {"extra": {"name": "USDC", "version": "2"}},
    "permit2": {"extra": {"assetTransferMethod": "permit2"}},
    "upto": {"scheme": "upto", "extra": {"facilitatorAddress": CALLER}},
}
_SETTLE = ("address", "address", "uint256", "uint256", "uint256", "bytes32", "bytes")
_EXACT = "settle(((address,uint256),uint256,uint256),address,(address,uint256),bytes)"
_UPTO = "settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)"


def make_buyer(tenant: Tenant, chain: EvmNode) -> Agent:
    """An agent with play USDC, which Permit2 may take, and a rule that names the seller."""
    named = rule("approved-addresses", addresses=[SELLER, USDC, to_checksum_address(PERMIT2)], mode="whitelist")
    agent = tenant.agent(named, rule("spending-limit", maxPerDay=str(10 * HELD), asset=ASSET))
    agent.tenant = tenant
    chain.rpc("dev_fund", agent.evm_address, str(HELD), "USDC")
    return agent


def allow_permit2(agent: Agent, chain: EvmNode) -> None:
    """Let Permit2 take the agent's play USDC, up to what it holds, which counts as spent."""
    chain.fund(agent.evm_address)
    data = keccak(b"approve(address,uint256)")[:4] + encode(["address", "uint256"], [PERMIT2, HELD])
    answer = agent.sign(to=USDC, value=0, data="0x" + data.hex(), broadcast=True)
    assert answer.status_code == 200, answer.text


def pay(agent: Agent, way: str = "eip3009") -> dict[str, Any]:
    """Make a payment; its id, and what the seller is given."""
    offer = payment_offer(asset=USDC, amount=str(PRICE), **WAYS[way])
    made = agent.ok("POST", f"/vault/{agent.id}/x402", {"demand": payment_demand(offer)})
    return {"id": made["txId"], "way": way} | json.loads(base64.b64decode(made["value"]))["payload"]


def take(chain: EvmNode, paid: dict[str, Any], amount: int = PRICE) -> str:
    """Take a payment to the chain, of `upto` this much of it; the hash of the transaction."""
    proof = bytes.fromhex(paid["signature"].removeprefix("0x"))
    if paid["way"] == "eip3009":
        one = paid["authorization"]
        numbers = [int(one[name]) for name in ("value", "validAfter", "validBefore")]
        words = [one["from"], one["to"], *numbers, bytes.fromhex(one["nonce"][2:]), proof]
        selector = keccak(f"transferWithAuthorization({','.join(_SETTLE)})".encode())[:4]
        return chain.call_contract(USDC, selector + encode(_SETTLE, words))
    one = paid["permit2Authorization"]
    permit = ((one["permitted"]["token"], int(one["permitted"]["amount"])), int(one["nonce"]), int(one["deadline"]))
    witness = one["witness"]
    if paid["way"] == "permit2":
        content = call("ExactProxy", _EXACT, permit, one["from"], (witness["to"], int(witness["validAfter"])), proof)
        return chain.call_contract(to_checksum_address(X402_EXACT), content)
    seen = (witness["to"], witness["facilitator"], int(witness["validAfter"]))
    content = call("UptoProxy", _UPTO, permit, amount, one["from"], seen, proof)
    return chain.call_contract(to_checksum_address(X402_UPTO), content)


def balance(chain: EvmNode, holder: str) -> int:
    """The play USDC of an address."""
    data = "0x70a08231" + holder.lower().removeprefix("0x").rjust(64, "0")
    return int(chain.rpc("eth_call", {"to": USDC, "data": data}, "latest"), 16)
