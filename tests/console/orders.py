"""Orders as the API would describe them, for tests that need no API."""

from typing import Any

from words.orders.order import Known, Order
from words.orders.words import essentials
from words.shapes import Effect, Transaction

US, THEM, TOKEN, SPENDER = ("0x" + pair * 20 for pair in ("aa", "11", "cc", "dd"))
ETHER, TOKENS = "evm:native", f"evm:1:{TOKEN}"
MOST = str(2**256 - 1)


def order(*effects: Effect, **changed: Any) -> Order:
    """An order on Ethereum."""
    given: dict[str, Any] = {
        "agent_id": "payer",
        "kind": "evm",
        "chain_id": 1,
        "to_address": None,
        "value": None,
        "effects": list(effects),
        "policy_results": [],
        "agent_name": "Payer",
        "tx_id": "t-1",
        "status": "pending_approval",
        "asked_at": "2026-03-01T12:00:00.000Z",
    }
    return Order(**{**given, **changed})


def pays(amount: str = "1500000000000000000", to: str = THEM, asset: str = ETHER, **changed: Any) -> Effect:
    """A transfer."""
    return Effect("transfer", asset, amount, US, to, **changed)


def allows(amount: str = MOST, spender: str = SPENDER, **changed: Any) -> Effect:
    """An approval."""
    return Effect("approval", TOKENS, amount, US, spender=spender, unlimited=int(amount) >= 2**128, **changed)


FEE = Effect("fee", ETHER, "5000000000000000", US, label="at most")


def earlier(number: int, *effects: Effect, status: str = "confirmed", **changed: Any) -> Transaction:
    """A transaction of the past."""
    return Transaction(
        id=f"e-{number}",
        agent_id="payer",
        kind="evm",
        status=status,
        chain_id=1,
        to_address=THEM,
        created_at=f"2026-02-{number:02}T12:00:00.000Z",
        effects=list(effects),
        **changed,
    )


def lines_of(shown: Order, known: Known | None = None) -> list[str]:
    """The essentials, as lines."""
    return [one.text for one in essentials(shown, known or Known())]


def tone_of(text: str, shown: Order, known: Known | None = None) -> str | None:
    """The tone of the line that begins so."""
    return next(one.tone for one in essentials(shown, known or Known()) if one.text.startswith(text))
