"""Policy templates: applied they are rules like any others, and what they loosen is said before."""

from contextlib import closing
from typing import Any

from api.areas.templates.shipped import SHIPPED
from tests.fixtures.approvers import approver, quorum
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Tenant, rule
from tests.fixtures.each import each
from tests.fixtures.people import member
from tests.fixtures.server import Service

ETH = 10**18
CENT = ETH // 100
TEMPLATE = {
    "id": "day",
    "name": "A day",
    "policies": [{"id": "day", "type": "spending-limit", "config": {"maxPerDay": "5"}}],
    "customizableFields": [
        {
            "path": "policies[0].config.maxPerDay",
            "label": "Most",
            "type": "amount",
            "default": "7",
            "min": 2,
            "max": "9",
        }
    ],
}


def keep(tenant: Tenant, *templates: dict[str, Any]) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"policyTemplates": list(templates)})


def apply(tenant: Tenant, agent: str, template: str, **values: Any) -> Any:
    body = {"templateId": template, "values": values}
    return tenant.ok("PUT", f"/agents/{agent}/policies/template", body)


def test_a_template_replaces_the_rules_of_an_agent(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1))
    keep(tenant, TEMPLATE)

    put = apply(tenant, agent.id, "day")

    assert put == tenant.ok("GET", f"/agents/{agent.id}/policies")
    assert [(one["id"], one["type"], one["config"]) for one in put] == [("day", "spending-limit", {"maxPerDay": "7"})]
    assert [agent.sign(value=amount).status_code for amount in (7, 1)] == [200, 403]


def test_a_template_is_filled_in_within_its_bounds(tenant: Tenant) -> None:
    agent, path = tenant.agent(), "policies[0].config.maxPerDay"
    keep(tenant, TEMPLATE)

    put = apply(tenant, agent.id, "day", **{path: "9"})

    assert put[0]["config"] == {"maxPerDay": "9"}
    for value, said in (("10", "9 at most"), ("1", "2 at least"), ("x", "takes a number"), (True, "takes a number")):
        body = {"templateId": "day", "values": {path: value}}
        refused = tenant.put(f"/agents/{agent.id}/policies/template", json=body)
        assert (refused.status_code, refused.json()["data"]["code"]) == (400, "template_misfit")
        assert said in refused.json()["error"]
    assert tenant.ok("GET", f"/agents/{agent.id}/policies") == put


@each(
    ("template", "values", "code"),
    [
        (TEMPLATE, {"policies[0].config.asset": "usd"}, "template_misfit"),
        (
            TEMPLATE | {"customizableFields": [{"path": "a", "label": "A", "type": "b", "default": 1}]},
            {},
            "template_misfit",
        ),
        (
            TEMPLATE
            | {"customizableFields": [{"path": "policies[1].config.a", "label": "A", "type": "b", "default": 1}]},
            {},
            "template_misfit",
        ),
        (TEMPLATE | {"policies": [{"type": "no-such-rule"}], "customizableFields": []}, {}, "invalid_policy"),
        (
            TEMPLATE | {"policies": [{"type": "spending-limit", "config": {"x": 1}}], "customizableFields": []},
            {},
            "invalid_policy",
        ),
        (TEMPLATE | {"id": "another"}, {}, "template_absent"),
    ],
)
def test_a_template_that_does_not_fit_changes_nothing(
    tenant: Tenant, template: dict[str, Any], values: dict[str, Any], code: str
) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1))
    before = tenant.ok("GET", f"/agents/{agent.id}/policies")
    keep(tenant, template)

    body = {"templateId": "day", "values": values}
    refused = tenant.put(f"/agents/{agent.id}/policies/template", json=body)
    asked = tenant.post("/policy-templates/preview", json=body)

    assert refused.json()["data"]["code"] == asked.json()["data"]["code"] == code
    assert tenant.ok("GET", f"/agents/{agent.id}/policies") == before


def test_a_preview_says_what_becomes_looser_and_changes_nothing(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="6"), rule("rate-limit", maxTxPerHour=1))
    before = tenant.ok("GET", f"/agents/{agent.id}/policies")
    keep(tenant, TEMPLATE)
    body = {"templateId": "day", "agentId": agent.id}

    found = tenant.ok("POST", "/policy-templates/preview", body)
    tighter = tenant.ok("POST", "/policy-templates/preview", body | {"values": {"policies[0].config.maxPerDay": "6"}})

    assert [one["config"] for one in found["policies"]] == [{"maxPerDay": "7"}]
    limit, pace = (one["id"] for one in before)
    assert [limit in found["loosens"][0], pace in found["loosens"][1], len(found["loosens"])] == [True, True, 2]
    assert [pace in one for one in tighter["loosens"]] == [True]
    assert tenant.ok("GET", f"/agents/{agent.id}/policies") == before


def test_a_template_replaces_the_rules_of_a_policy_set(tenant: Tenant) -> None:
    keep(tenant, TEMPLATE)
    made = tenant.ok("POST", "/policy-sets", {"name": "Buyers", "policies": []})

    put = tenant.ok("PUT", f"/policy-sets/{made['id']}/template", {"templateId": "day"})
    of_all = tenant.ok("PUT", "/policy-sets/tenant/template", {"templateId": "day"})
    named = tenant.ok("PUT", "/policy-sets/tenant/template", {"templateId": "day", "name": "Everybody"})
    looser = tenant.ok("POST", "/policy-templates/preview", {"templateId": "ask-first", "policySetId": made["id"]})

    assert (put["name"], put["policies"][0]["config"]) == ("Buyers", {"maxPerDay": "7"})
    assert (of_all["name"], named["name"]) == ("A day", "Everybody")
    assert len(looser["loosens"]) == 1


def test_a_template_needs_votes_where_a_quorum_guards_the_rules(service: Service, tenant: Tenant) -> None:
    agent = tenant.agent()
    voter = approver(service, tenant)
    with closing(voter.person) as person:
        person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, voter)])

    refused = tenant.put(f"/agents/{agent.id}/policies/template", json={"templateId": "ask-first"})

    assert (refused.status_code, refused.json()["data"]["code"]) == (403, "quorum_needed")


def test_a_template_takes_a_recent_second_factor(service: Service, tenant: Tenant) -> None:
    agent = tenant.agent()
    with closing(member(service, tenant, "owner")) as owner:
        refused = owner.put(f"/agents/{agent.id}/policies/template", json={"templateId": "ask-first"})

    assert refused.json()["data"]["code"] == "mfa_required"


# ---- the templates that come with the service


def test_each_shipped_template_is_listed_behind_those_of_the_tenant(tenant: Tenant) -> None:
    keep(tenant, TEMPLATE, TEMPLATE | {"id": "ask-first", "name": "Our own"})

    listed = tenant.ok("GET", "/policy-templates")

    assert [one["id"] for one in listed] == ["day", "ask-first", "small-purchases", "known-recipients"]
    assert listed[1]["name"] == "Our own"


def test_each_shipped_template_fits_an_agent_as_it_is(tenant: Tenant) -> None:
    for template in SHIPPED:
        agent = tenant.agent()

        put = apply(tenant, agent.id, template.id)

        assert [one["id"] for one in put] == [one.id for one in template.policies]
        assert apply(tenant, agent.id, template.id) == put


def test_small_purchases_are_signed_larger_ones_wait_and_the_largest_are_refused(tenant: Tenant) -> None:
    agent = tenant.agent()
    apply(tenant, agent.id, "small-purchases")

    answers = [agent.sign(value=cents * CENT).status_code for cents in (2, 3, 6, 2)]

    assert answers == [200, 202, 403, 200]
    assert [agent.sign(value=2 * CENT).status_code for _ in range(8)][-1] == 429


def test_known_recipients_are_paid_and_nobody_else(tenant: Tenant) -> None:
    agent = tenant.agent()
    nobody = apply(tenant, agent.id, "known-recipients")
    closed = agent.sign(ADDRESS)
    apply(tenant, agent.id, "known-recipients", **{"policies[0].config.addresses": [ADDRESS]})

    answers = [
        agent.sign(to, value=value).status_code
        for to, value in ((ADDRESS, ETH // 2), (OTHER_ADDRESS, 1), (ADDRESS, ETH))
    ]

    assert (nobody[0]["config"]["addresses"], closed.status_code) == ([], 403)
    assert answers == [200, 403, 403]


def test_every_payment_waits_for_a_person_who_decides_within_the_limit(tenant: Tenant) -> None:
    agent = tenant.agent()
    apply(tenant, agent.id, "ask-first")

    assert [agent.sign(value=value).status_code for value in (1, ETH, ETH + 1)] == [202, 202, 403]
