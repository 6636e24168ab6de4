"""Demands of the paywall, a route that pays it, and the looks at what that came to."""

import json
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import rule
from tests.fixtures.proxied import Keyless
from tests.routes.orders import CHAIN, TOKEN_CONTRACT

SELLER = f"0x{'5e' * 20}"
ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
LIMIT = rule("spending-limit", asset=ASSET, maxPerDay="500")


def offer(**changed: Any) -> dict[str, Any]:
    """Offer to sell a call for 60 units."""
    return {
        "scheme": "exact",
        "network": f"eip155:{CHAIN}",
        "amount": "60",
        "asset": TOKEN_CONTRACT,
        "payTo": SELLER,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDX", "version": "1"},
        **changed,
    }


def demands(how: str = "", *offers: dict[str, Any], **more: str) -> dict[str, str]:
    """The query that has the paywall demand this."""
    return {"how": how, "accepts": json.dumps(offers or [offer()]), **more}


@pytest.fixture
def paying(keyless: Keyless) -> Keyless:
    """An agent with 500 units a day, whose tenant pays the paywall up to 100 a call."""
    keyless.tenant.ok("PUT", f"/agents/{keyless.agent.id}/policies", [LIMIT])
    keyless.route("paywall", secretId=None, injectAs="none", injectKey="", injectFormat="{value}")
    pay_for(keyless)
    return keyless


def pay_for(keyless: Keyless, **changed: Any) -> dict[str, Any]:
    """Make a payment route for the paywall."""
    fields = {
        "hostPattern": f"localhost:{keyless.upstream.ports['paywall']}",
        "maxPerCall": {ASSET: "100"},
        "payTo": [SELLER],
        **changed,
    }
    made: dict[str, Any] = keyless.tenant.ok("POST", "/payment-routes", fields)
    return made


def change(keyless: Keyless, changed: dict[str, Any]) -> None:
    """Change the one payment route there is."""
    [route] = keyless.tenant.ok("GET", "/payment-routes")
    keyless.tenant.ok("PUT", f"/payment-routes/{route['id']}", changed)


def payments_at(keyless: Keyless) -> list[dict[str, Any]]:
    """The payments that reached the paywall."""
    return [line["payment"] for line in keyless.upstream.lines("paid")]


def spending(keyless: Keyless) -> int:
    """The amount that counts against the agent's limit."""
    found = keyless.agent.ok("GET", f"/dashboard/{keyless.agent.id}")["budgets"]
    [limit] = [one for one in found if one["asset"] == ASSET]
    return int(limit["spent"])


def code(answer: httpx.Response) -> tuple[int, str | None]:
    """Status of an answer, and what the proxy calls it where it is one of its own."""
    return answer.status_code, answer.headers.get("x-service-error") or answer.headers.get("x-service-body")
