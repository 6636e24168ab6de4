"""`custody routes` and `custody payment-routes`."""

import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.tenant_commands import Desk
from tests.routes.secrets.makers import HOST, PAYEE, TOKEN, keep_payment_route, keep_route, keep_secret, preset_fields

NOBODYS = "00000000-0000-4000-8000-000000000000"


def test_a_route_is_made_by_a_secrets_name_changed_and_deleted(desk: Desk, tenant: Tenant, agent: Agent) -> None:
    secret = keep_secret(tenant, name="openai")
    made = desk.ok("routes", "add", HOST, "--secret", "openai", "--agent", agent.id, "--path", "/v1/*")
    changed = desk.ok("routes", "change", made["id"], "--disabled", "--priority", "7", "-F", "ranges=true")
    listed = desk.run("routes", "list")
    deleted = desk.ok("routes", "delete", made["id"], "--yes")

    said = {"secretId": secret["id"], "hostPattern": HOST, "pathPattern": "/v1/*", "agents": [agent.id]}
    bearer = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}
    assert made.items() >= (said | bearer | {"enabled": True}).items()
    assert changed == made | {"enabled": False, "priority": 7, "ranges": True}
    assert listed.said.split("\t") == [
        f"{HOST}/v1/* of {agent.id}",
        "openai",
        "header Authorization: Bearer {value}",
        "7",
        "no",
        f"{made['id']}\n",
    ]
    assert deleted == {"deleted": made["id"]}
    assert tenant.ok("GET", "/secrets/routes") == []


def test_a_route_can_put_its_secret_elsewhere_or_have_none(desk: Desk, tenant: Tenant) -> None:
    secret = keep_secret(tenant)
    query = desk.ok("routes", "add", HOST, "--secret", secret["id"], "--as", "query", "--key", "key", "--method", "GET")
    none = desk.ok("routes", "add", "cdn.example.com", "--as", "none")

    assert (query["injectAs"], query["injectKey"], query["injectFormat"]) == ("query", "key", "{value}")
    assert (query["method"], none["secretId"], none["injectAs"]) == ("GET", None, "none")


def test_the_route_of_a_request_is_explained_in_words(desk: Desk, tenant: Tenant, agent: Agent) -> None:
    secret = keep_secret(tenant, name="openai")
    keep_route(tenant, secret, priority=2, method="POST")
    route = keep_route(tenant, secret)
    words = ("routes", "explain", agent.id, "GET", f"https://{HOST}/v1/models")
    said = desk.run(*words).said

    assert desk.ok(*words)["matched"]["id"] == route["id"]
    assert "would be forwarded with the secret of this route" in said
    assert f"1. POST {HOST}/*: it is for another method\n" in said
    assert f"2. {HOST}/*: it matches\n" in said
    assert "secret openai\n" in said


def test_payments_are_allowed_listed_and_forbidden(desk: Desk, tenant: Tenant) -> None:
    made = desk.ok("payment-routes", "add", HOST, "--max", f"{TOKEN}=10000", "--pay-to", PAYEE, "--scheme", "upto")
    listed = desk.run("payment-routes", "list")
    deleted = desk.ok("payment-routes", "delete", made["id"], "--yes")

    said = {"hostPattern": HOST, "maxPerCall": {TOKEN: "10000"}, "payTo": [PAYEE], "schemes": ["upto"]}
    assert made.items() >= (said | {"allowUnknownPayTo": False}).items()
    assert f"\t10,000 of {TOKEN}\t{PAYEE}\t" in listed.said
    assert listed.said.endswith(f"{made['id']}\n")
    assert deleted == {"deleted": made["id"]}


def test_a_deletion_is_confirmed_first(desk: Desk, tenant: Tenant) -> None:
    routes = {"routes": keep_route(tenant), "payment-routes": keep_payment_route(tenant)}
    for word, route in routes.items():
        ended = desk.run(word, "delete", route["id"])
        assert ended.status == 1
        assert "--yes" in ended.complained

    assert len(tenant.ok("GET", "/secrets/routes") + tenant.ok("GET", "/payment-routes")) == 2


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (("routes", "add", HOST), 2, "name the secret with --secret, or say --as none"),
        (
            ("routes", "add", HOST, "--secret", "nobodys"),
            1,
            "no secret 'nobodys': see `custody secrets list`.",
        ),
        (("routes", "change", NOBODYS), 2, "say what to change"),
        (
            ("routes", "change", NOBODYS, "--enabled"),
            1,
            f"'{NOBODYS}': see `custody routes list`.",
        ),
        (("payment-routes", "add", HOST, "--max", "10000"), 2, "'10000' is no price: write --max ASSET=AMOUNT"),
        (("payment-routes", "add", HOST, "--max", f"{TOKEN}=much"), 1, "maxPerCall"),
    ],
)
def test_words_that_name_no_route_make_none(
    desk: Desk, tenant: Tenant, words: tuple[str, ...], status: int, complaint: str
) -> None:
    ended = desk.run(*words)

    assert (ended.status, ended.said) == (status, "")
    assert complaint in " ".join(ended.complained.split())
    assert tenant.ok("GET", "/secrets/routes") + tenant.ok("GET", "/payment-routes") == []


def test_a_route_is_made_from_a_preset_of_the_tenant(desk: Desk, tenant: Tenant, agent: Agent) -> None:
    secret = keep_secret(tenant, name="openai")
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"secretRoutePresets": [preset_fields()]})

    made = desk.ok("routes", "add-preset", "api", "--secret", "openai", "--agent", agent.id)

    assert (made["hostPattern"], made["secretId"], made["agents"]) == (HOST, secret["id"], [agent.id])
