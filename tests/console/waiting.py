"""Orders that wait for a person, as agents ask for them."""

from datetime import datetime, timedelta
from typing import Any

from console.moments import moment
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule

TOKEN = "0x" + "33" * 20
SPENDER = "0x" + "44" * 20


def cautious(tenant: Tenant, name: str = "payer") -> Agent:
    """An agent of whom every order waits."""
    made = tenant.ok("POST", "/agents", {"id": name, "name": name.capitalize()})
    tenant.ok("PUT", f"/agents/{name}/policies", [rule("auto-approve-threshold", threshold="0")])
    return tenant.as_agent(made)


def queued(agent: Agent, value: int = 5, to: str = ADDRESS, **fields: Any) -> str:
    """Ask for a payment; the id of the item that waits for it."""
    answer = agent.sign(to=to, value=value, **fields)
    assert answer.status_code == 202, answer.text
    found: str = answer.json()["data"]["approvalId"]
    return found


def unlimited(agent: Agent) -> str:
    """Ask to let somebody spend all of a token."""
    return queued(agent, 0, TOKEN, data="0x095ea7b3" + SPENDER[2:].rjust(64, "0") + "f" * 64)


def item(tenant: Tenant, approval: str) -> dict[str, Any]:
    """An item as the API has it now."""
    return next(one for one in tenant.ok("GET", "/approvals?status=all") if one["id"] == approval)


def random_of(*items: dict[str, Any]) -> list[str]:
    """What differs from run to run in what is shown of these."""
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
