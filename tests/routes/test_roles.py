"""Rights of each role, on every route that takes a session: as the table of acts says once more, route by route."""

from collections.abc import Collection, Iterator
from contextlib import closing

import httpx
import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.acts.act import ROLES
from tests.acts.table import BY_ROUTE
from tests.fixtures.callers import Tenant, new_tenant, platform_client
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service

# Not read from the declarations: a route that is declared wrongly must fail here.
EXPECTED = {route: (act.roles, act.factor) for route, act in BY_ROUTE.items() if "session" in act.who}
# It ends the session with which it is tried.
LAST = "POST /auth/logout"


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


TABLE = {name(endpoint): endpoint for endpoint in endpoints()}
FOR_PEOPLE = [endpoint for endpoint in TABLE.values() if "session" in endpoint.who.kinds]
IDS = {"agent": "absent", "client_id": "absent"}
CHANGES_FACTORS = {"POST /auth/mfa/recovery-codes", "DELETE /auth/mfa/totp"}
REFUSALS = {"wrong_role", "mfa_required", "wrong_kind", "session_revoked", "bad_credential", "bad_token"}


class Team:
    """A tenant with a member of each role, once with a second factor shown just now, once without any."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self.tenant, self._service = tenant, service
        self.people = {(role, mfa): member(service, tenant, role, mfa=mfa) for role in ROLES for mfa in (False, True)}

    def call(self, endpoint: Endpoint, role: str, *, mfa: bool) -> httpx.Response:
        """Call a route with a body that no route accepts: an admitted caller gets 400, and nothing happens."""
        path = endpoint.path.replace("<tenant_id>", self.tenant.id)
        for part in endpoint.path_names:
            path = path.replace(f"<{part}>", IDS.get(part, "00000000-0000-0000-0000-000000000000"))
        # A stream goes on for as long as somebody listens.
        path += "?follow=false" if endpoint.media == "text/event-stream" else ""
        body = {"surplus": 1} if endpoint.body is not None else None
        if name(endpoint) in CHANGES_FACTORS:
            # What was shown before no longer counts afterwards, so this is nobody whom another test still needs.
            with closing(member(self._service, self.tenant, role, mfa=mfa)) as somebody:
                return somebody.request(endpoint.method, path, json=body)
        return self.people[role, mfa].request(endpoint.method, path, json=body)


@pytest.fixture(scope="module")
def team(service: Service) -> Iterator[Team]:
    with new_tenant(service) as tenant:
        made = Team(service, tenant)
        yield made
        for person in made.people.values():
            person.close()


def answer_code(answer: httpx.Response) -> str:
    """The code of a refusal; `admitted` where the caller may call the route, whatever its outcome."""
    code = "" if answer.is_success else answer.json()["data"]["code"]
    return code if code in REFUSALS else "admitted"


def due(role: str, mfa: bool, roles: Collection[str], action: str | None) -> str:
    if role not in roles:
        return "wrong_role"
    return "mfa_required" if action is not None and not mfa else "admitted"


def test_every_route_that_a_person_may_call_is_an_act_of_people() -> None:
    assert {name(endpoint) for endpoint in FOR_PEOPLE} == set(EXPECTED)


@pytest.mark.parametrize("endpoint", [one for one in FOR_PEOPLE if name(one) != LAST], ids=name)
def test_each_role_may_do_what_it_should_and_no_more(team: Team, endpoint: Endpoint) -> None:
    roles, action = EXPECTED[name(endpoint)]
    cases = [(role, mfa) for role in ROLES for mfa in (False, True)]

    found = {case: team.call(endpoint, case[0], mfa=case[1]) for case in cases}

    assert {case: answer_code(answer) for case, answer in found.items()} == {
        case: due(*case, roles, action) for case in cases
    }
    assert {answer.status_code for answer in found.values() if answer_code(answer) != "admitted"} <= {403}
    wanting = [answer.json()["data"] for answer in found.values() if answer_code(answer) == "mfa_required"]
    assert all((one["action"], one["maxAgeSeconds"], one["methods"]) == (action, 300, []) for one in wanting)


@pytest.mark.parametrize("endpoint", [one for one in TABLE.values() if "session" not in one.who.kinds], ids=name)
def test_routes_closed_to_people_are_closed_to_owners(team: Team, endpoint: Endpoint) -> None:
    answer = team.call(endpoint, "owner", mfa=True)

    if "public" in endpoint.who.kinds:
        assert answer.headers.get("content-type") != "application/json" or answer_code(answer) == "admitted"
    else:
        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "wrong_kind")


def test_a_missing_factor_is_said_with_what_one_has(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with closing(sign_in(service, as_owner.wallet, tenant=tenant.id)) as later:
        answer = later.post("/agents", json={"id": "one", "name": "One"})

    assert answer.json()["data"] == {
        "code": "mfa_required",
        "action": "tenantAdmin",
        "methods": ["recovery", "totp"],
        "maxAgeSeconds": 300,
    }


# ---- a role that changes while its session lives


def change_role(service: Service, tenant: Tenant, person: Person, role: str) -> None:
    with platform_client(service) as platform:
        platform.ok(
            "POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": role, "force": True}
        )


@pytest.mark.parametrize("role", ["viewer", "billing", "member", "developer"])
def test_a_lower_role_takes_effect_at_once(service: Service, tenant: Tenant, as_owner: Person, role: str) -> None:
    rules = {"method": "PUT", "url": "/agents/one/policies", "json": []}
    tenant.ok("POST", "/agents", {"id": "one", "name": "One"})
    assert as_owner.request(**rules).status_code == 200

    change_role(service, tenant, as_owner, role)

    assert as_owner.request(**rules).json()["data"] == {"code": "wrong_role"}
    assert as_owner.ok("GET", "/auth/session")["tenant"]["role"] == role
    assert as_owner.refresh().json()["data"]["tenant"]["role"] == role


def test_a_higher_role_takes_effect_at_once(service: Service, tenant: Tenant) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as person:
        assert answer_code(person.post("/agents", json={"id": "one", "name": "One"})) == "wrong_role"

        change_role(service, tenant, person, "developer")

        assert person.post("/agents", json={"id": "one", "name": "One"}).status_code == 201


def test_a_removed_member_is_out_at_once(service: Service, tenant: Tenant, as_owner: Person) -> None:
    assert as_owner.get("/agents").status_code == 200

    with platform_client(service) as platform:
        platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{as_owner.id}", {"force": True})

    answers = [as_owner.get("/agents"), as_owner.post("/agents", json={"id": "one", "name": "One"})]
    assert [(answer.status_code, answer_code(answer)) for answer in answers] == [(401, "session_revoked")] * 2
