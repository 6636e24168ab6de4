"""PSBTs as agents send them, over coins of their own addresses."""

import itertools
from typing import Any

import httpx
from embit.psbt import PSBT
from embit.script import Script

from tests.fixtures.bitcoin import SOMEBODY, coin, hint, script_of, spend, text
from tests.fixtures.callers import Agent, rule

SCOPE = "bitcoin:regtest:p2wpkh:0:0:0"
# Without it no PSBT of that network is signed.
LISTED = rule("allowed-chains", chains=["bitcoin:regtest"])
_coins = itertools.count(1)


def address(agent: Agent, scope: str = SCOPE) -> dict[str, Any]:
    """One of the agent's addresses."""
    return agent.ok("GET", f"/vault/{agent.id}/bitcoin/address?walletScope={scope}")


def payment(
    agent: Agent,
    amount: int,
    *,
    fee: int = 1_000,
    to: Script = SOMEBODY,
    scope: str = SCOPE,
    brings: int | None = None,
    inputs: int = 1,
) -> PSBT:
    """A PSBT that pays somebody from fresh coins, and the rest back to the same address."""
    own = script_of(address(agent, scope)["address"])
    each = (brings if brings is not None else amount + fee + 10_000) // inputs
    coins = [(coin(own, each, f"coin {next(_coins)}"), 0) for _ in range(inputs)]
    change = each * inputs - amount - fee
    return spend(coins, [(to, amount), *([(own, change)] if change else [])])


def psbt_body(psbt: PSBT | str, scope: str = SCOPE, **changed: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"walletScope": scope, "psbtBase64": psbt if isinstance(psbt, str) else text(psbt), **changed}


def sign_psbt(
    agent: Agent, psbt: PSBT | str, scope: str = SCOPE, *, key: str | None = None, **changed: Any
) -> httpx.Response:
    """Have a PSBT signed, authorised by the agent's own signer."""
    headers = getattr(agent, "signer", {}) | ({"Idempotency-Key": key} if key else {})
    return agent.post(f"/vault/{agent.id}/sign-bitcoin-psbt", json=psbt_body(psbt, scope, **changed), headers=headers)


__all__ = ["LISTED", "SCOPE", "SOMEBODY", "address", "hint", "payment", "psbt_body", "sign_psbt"]
