"""Payment routes: what they may say, whose they are, and what a changed row is worth."""

import uuid
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Tenant
from tests.routes.secrets.makers import HOST, PAYEE, TOKEN, keep_payment_route, payment_fields

ROUTES = "/payment-routes"
MINT = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
MIXED = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"


def path(route: dict[str, Any]) -> str:
    return f"{ROUTES}/{route['id']}"


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def test_a_payment_route_is_made_with_the_defaults_of_the_document(tenant: Tenant) -> None:
    sent = {"hostPattern": HOST, "maxPerCall": {TOKEN: "5"}}

    answer = tenant.post(ROUTES, json=sent)

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert {name: made[name] for name in made if name not in ("id", "createdAt")} == {
        **sent,
        "pathPattern": "/*",
        "method": "*",
        "priority": 0,
        "enabled": True,
        "agents": [],
        "payTo": [],
        "schemes": ["exact"],
        "allowUnknownPayTo": False,
    }
    assert tenant.ok("GET", ROUTES) == [made]
    assert tenant.ok("GET", path(made)) == made
    assert refusal(tenant.get(f"{ROUTES}/{uuid.uuid4()}")) == (404, "payment_route_absent")


def test_a_payment_route_keeps_assets_and_addresses_in_one_spelling(tenant: Tenant) -> None:
    made = keep_payment_route(
        tenant,
        hostPattern="API.Example.com",
        method="get",
        maxPerCall={f"evm:8453:{MIXED}": "7", f"solana:{MINT}": "8"},
        payTo=[MIXED, MINT],
    )

    assert (made["hostPattern"], made["method"]) == ("api.example.com", "GET")
    assert made["maxPerCall"] == {f"evm:8453:{MIXED.lower()}": "7", f"solana:{MINT}": "8"}
    assert made["payTo"] == [MIXED.lower(), MINT]


def test_a_payment_route_changes_where_it_is_told_to_and_goes(tenant: Tenant) -> None:
    made = keep_payment_route(tenant)

    changed = tenant.ok("PUT", path(made), {"maxPerCall": {TOKEN: "9"}, "schemes": ["upto", "exact"], "enabled": False})

    assert changed == made | {"maxPerCall": {TOKEN: "9"}, "schemes": ["upto", "exact"], "enabled": False}
    assert tenant.ok("GET", path(made)) == changed
    assert tenant.ok("DELETE", path(made)) == {"deleted": made["id"]}
    assert refusal(tenant.put(path(made), json={"priority": 1})) == (404, "payment_route_absent")
    assert refusal(tenant.delete(path(made))) == (404, "payment_route_absent")


WRONG = [
    {"hostPattern": "*.com"},
    {"pathPattern": "v1"},
    {"maxPerCall": {"USDC": "1"}},
    {"maxPerCall": {"evm:native": "1"}},
    {"maxPerCall": {f"evm:8453:{MIXED[:-1]}": "1"}},
    {"maxPerCall": {f"evm:8453:{MIXED}": "1", f"evm:8453:{MIXED.lower()}": "1"}},
    {"maxPerCall": {TOKEN: "0"}},
    {"maxPerCall": {TOKEN: str(2**256)}},
    {"payTo": ["nobody"]},
    {"payTo": [MIXED, MIXED.lower()]},
    {"payTo": [MIXED.swapcase()]},
    {"schemes": ["exact", "exact"]},
    {"agents": ["one", "one"]},
]
MALFORMED = [
    {"maxPerCall": {}},
    {"maxPerCall": {f"evm:{chain}:{MIXED}": "1" for chain in range(1, 18)}},
    *({"maxPerCall": {TOKEN: amount}} for amount in ("-1", "1.0", "0x10", "01", "1e3", "", 5, None, "9" * 79)),
    {"payTo": [PAYEE] * 17},
    {"schemes": []},
    {"schemes": ["batch-settlement"]},
    {"allowUnknownPayTo": "true"},
    {"secretId": str(uuid.UUID(int=0))},
]


def test_a_field_that_could_mean_something_else_is_named(tenant: Tenant) -> None:
    made = keep_payment_route(tenant)

    for changed in WRONG:
        answers = [tenant.post(ROUTES, json=payment_fields(**changed)), tenant.put(path(made), json=changed)]
        assert [refusal(answer) for answer in answers] == [(400, "invalid_route")] * 2, changed
        assert [answer.json()["data"]["fields"] for answer in answers] == [list(changed)] * 2

    assert tenant.ok("GET", ROUTES) == [made]


def test_a_field_of_another_form_is_refused(tenant: Tenant) -> None:
    made = keep_payment_route(tenant)

    for changed in MALFORMED:
        answers = [tenant.post(ROUTES, json=payment_fields(**changed)), tenant.put(path(made), json=changed)]
        assert [answer.status_code for answer in answers] == [400, 400], changed

    assert tenant.ok("GET", ROUTES) == [made]


_EDITED = (
    "UPDATE payment_routes SET fields = replace(fields, '1000000', '9000000') WHERE id = $1 AND $2::uuid IS NOT NULL"
)
_MOVED = (
    "UPDATE payment_routes r SET fields = o.fields, mac = o.mac FROM payment_routes o "
    "WHERE r.id = $1 AND o.id = $2::uuid"
)


@pytest.mark.parametrize("forged", [_EDITED, _MOVED], ids=["edited", "of another"])
async def test_a_row_that_the_signer_did_not_write_is_never_sealed_again(
    tenant: Tenant, owner: asyncpg.Connection, forged: str
) -> None:
    made, other = keep_payment_route(tenant), keep_payment_route(tenant, maxPerCall={TOKEN: "2000000"})
    await owner.execute(forged, made["id"], other["id"])

    answer = tenant.put(path(made), json={"priority": 1})

    assert answer.status_code in (500, 503), answer.text
    # The control: the one beside it changes, and the forged one can be deleted.
    assert tenant.ok("PUT", path(other), {"priority": 1})["priority"] == 1
    assert tenant.ok("DELETE", path(made)) == {"deleted": made["id"]}
