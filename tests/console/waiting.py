"""Orders that wait for a person, as agents ask for them."""

from datetime import datetime, timedelta
from typing import Any

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from words.texts.moments import moment

TOKEN = "0x" + "33" * 20
SPENDER = "0x" + "44" * 20


def cautious(tenant: Tenant, name: str = "payer") -> Agent:
    """An agent of whom every order waits."""
    made = tenant.ok("POST", "/agents", {"id": name, "name": name.capitalize()})
    tenant.ok("PUT", f"/agents/{name}/policies", [rule("auto-approve-threshold", threshold="0")])
    return tenant.as_agent(made)


def queue_order(agent: Agent, value: int = 5, to: str = ADDRESS, **fields: Any) -> str:
    """Ask for a payment; the id of the item that waits for it."""
    answer = agent.sign(to=to, value=value, **fields)
    assert answer.status_code == 202, answer.text
    found: str = answer.json()["data"]["approvalId"]
    return found


def queue_unlimited(agent: Agent) -> str:
    """Ask to let somebody spend all of a token."""
    return queue_order(agent, 0, TOKEN, data="0x095ea7b3" + SPENDER[2:].rjust(64, "0") + "f" * 64)


def several(agent: Agent, *payments: tuple[str, int]) -> str:
    """Ask for payments of a token to many at once."""
    calls = [f"a9059cbb{to[2:]:0>64}{amount:064x}".ljust(256, "0") for to, amount in payments]
    # Each call has 68 bytes, which are padded to 96, and its length before it.
    places = "".join(f"{32 * len(calls) + 128 * place:064x}" for place in range(len(calls)))
    said = "".join(f"{68:064x}{call[:136]:0<192}" for call in calls)
    return queue_order(agent, 0, TOKEN, data=f"0xac9650d8{32:064x}{len(calls):064x}{places}{said}")


def item(tenant: Tenant, approval: str) -> dict[str, Any]:
    """An item as the API has it now."""
    return next(one for one in tenant.ok("GET", "/approvals?status=all") if one["id"] == approval)


def random_of(*items: dict[str, Any]) -> list[str]:
    """List the parts of these items that differ from run to run."""
    found = []
    for one in items:
        found += [one["id"], one["txId"], one["digest"]]
        for name in ("requestedAt", "expiresAt", "resolvedAt"):
            if then := moment(one[name]):
                found += [f"{then:%Y-%m-%d}", f"{then:%H:%M:%S}"]
    return found


def later(one: dict[str, Any], seconds: int = 90) -> datetime:
    """A moment after an item was asked for."""
    then = moment(one["requestedAt"])
    assert then
    return then + timedelta(seconds=seconds)
