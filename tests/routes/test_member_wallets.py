"""Wallets of people in a tenant of many: theirs alone to sign with, under its rules and its choice of factors."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Tenant, new_tenant, platform_client, rule
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.hostile_check import checking
from tests.routes.auth.factors import refusal
from tests.routes.auth.hosted import Application, newcomer, put_client
from tests.routes.orders import message, note
from tests.rules.chains.published_types import document

WALLET = "/user/me/wallet"
ORDER = {"to": ADDRESS, "value": "1", "broadcast": False}


@pytest.fixture
def shop(service: Service, tenant: Tenant, as_owner: Person) -> Application:
    """An application whose people register, in a tenant that asks no factor of them."""
    put_client(as_owner, allowRegistration=True)
    lets(as_owner, userWallets=False)
    return Application(service, tenant.id)


@pytest.fixture
def user(service: Service, shop: Application) -> Iterator[Person]:
    """A user of the application, as it holds them."""
    with closing(newcomer(service, shop.tenant)) as person, closing(shop.person(person)) as held:
        yield held


def lets(owner: Person, **required: bool) -> None:
    """Say which actions need a second factor in the tenant."""
    owner.ok("PUT", f"/tenants/{owner.tenant}/config", {"authAbuseConfig": {"mfa": {"requireFor": required}}})


def wallet_of(person: Person) -> dict[str, Any]:
    made: dict[str, Any] = person.ok("POST", WALLET, {})
    return made


def pays(person: Person, value: int = 1) -> httpx.Response:
    return person.post(f"{WALLET}/sign", json=ORDER | {"value": str(value)})


def test_a_user_of_an_application_has_a_wallet_and_signs_with_it(user: Person, tenant: Tenant) -> None:
    made = wallet_of(user)
    answers = [
        pays(user),
        user.post(f"{WALLET}/sign-message", json=message()),
        user.post(f"{WALLET}/sign-typed-data", json=note()),
    ]

    assert made["agentId"] == f"user-wallet-{user.id}-0"
    assert wallet_of(user) == made
    assert user.ok("GET", "/user/me/wallets") == [made]
    assert [one.status_code for one in answers] == [200, 200, 200], [one.text for one in answers]
    assert [one["id"] for one in tenant.ok("GET", "/agents")] == [made["agentId"]]


def test_a_wallet_that_was_not_made_signs_nothing(user: Person) -> None:
    assert refusal(pays(user)) == (404, "user_wallet_absent")


def test_a_person_has_one_wallet_in_a_tenant_of_many(user: Person) -> None:
    assert refusal(user.post(WALLET, json={"walletIndex": 1})) == (403, "personal_session_required")


def test_a_wallet_keeps_to_the_tenants_rules(user: Person, tenant: Tenant) -> None:
    made = wallet_of(user)
    policies = [rule("spending-limit", maxPerDay="9"), rule("auto-approve-threshold", threshold="5")]
    tenant.ok("PUT", "/policy-sets/tenant", {"name": "Everybody", "policies": policies})

    small, large, queued = pays(user, 1), pays(user, 20), pays(user, 6)
    [waiting] = tenant.ok("GET", "/approvals?status=pending")
    approved = tenant.post(f"/vault/{made['agentId']}/approve/{queued.json()['data']['txId']}", json={})

    assert [one.status_code for one in (small, large, queued)] == [200, 403, 202]
    assert waiting["agentId"] == made["agentId"]
    assert approved.status_code == 200, approved.text


def test_a_wallet_is_asked_about_where_the_tenants_rules_ask_a_service(user: Person, tenant: Tenant) -> None:
    wallet_of(user)
    with checking() as service:
        policies = [
            rule("external-check", url=f"{service.url}/{how}", publicKeys=[service.key], timeoutSeconds=8)
            for how in ("allow", "ask", "refuse")
        ]
        answers = []
        for policy in policies:
            tenant.ok("PUT", "/policy-sets/tenant", {"name": "Everybody", "policies": [policy]})
            answers.append(pays(user).status_code)

    assert answers == [200, 202, 403]


def test_an_order_that_waits_is_told_again_under_its_key(user: Person, tenant: Tenant) -> None:
    made = wallet_of(user)
    policies = [rule("auto-approve-threshold", threshold="0")]
    tenant.ok("PUT", "/policy-sets/tenant", {"name": "Everybody", "policies": policies})
    key = {"Idempotency-Key": "the users own payment"}

    queued = [
        user.post(f"{WALLET}/sign-message", json=message()),
        user.post(f"{WALLET}/sign-typed-data", json=document("SafeOp", {})),
        user.post(f"{WALLET}/sign", json=ORDER, headers=key),
    ]
    assert [one.status_code for one in queued] == [202, 202, 202], [one.text for one in queued]
    tx = queued[2].json()["data"]["txId"]
    tenant.ok("POST", f"/vault/{made['agentId']}/approve/{tx}", {})
    told = user.post(f"{WALLET}/sign", json=ORDER, headers=key)

    assert (told.status_code, told.json()["data"]["txId"]) == (200, tx), told.text


def test_a_tenant_says_whether_its_users_show_a_factor(service: Service, user: Person, as_owner: Person) -> None:
    wallet_of(user)
    lets(as_owner)
    refused = [pays(user), user.post(WALLET, json={}), user.get("/user/me/wallets")]
    lets(as_owner, userWallets=False)

    assert [refusal(one) for one in refused] == [(403, "mfa_required")] * 3
    assert pays(user).status_code == 200


def test_a_factor_that_was_shown_at_our_page_is_enough(service: Service, shop: Application, as_owner: Person) -> None:
    lets(as_owner)
    with closing(member(service, shop.tenant, "member", mfa=True)) as person, closing(shop.person(person)) as held:
        wallet_of(held)

        assert pays(held).status_code == 200


def test_a_persons_wallet_signs_for_nobody_else(
    service: Service, user: Person, tenant: Tenant, as_owner: Person
) -> None:
    agent = wallet_of(user)["agentId"]
    as_owner.step_up()
    paid = pays(user).json()["data"]["txId"]
    intent = {"intentType": "transfer", "agentId": agent, "payload": ORDER | {"chainId": EVM_CHAIN}}
    asks = [
        as_owner.post(f"/vault/{agent}/sign", json=ORDER),
        as_owner.post(f"/vault/{agent}/sign-message", json=message()),
        as_owner.post(f"/vault/{agent}/transactions/{paid}/replace", json={}),
        as_owner.post(f"/vault/{agent}/import/init", json={"chain": "evm"}),
        as_owner.post(f"/agents/{agent}/token", json={}),
        tenant.post(f"/agents/{agent}/token", json={}),
        as_owner.post("/intents", json=intent),
        tenant.post("/intents", json=intent),
    ]

    assert [refusal(one) for one in asks] == [(403, "wallet_of_person")] * len(asks)
    assert pays(user).status_code == 200


def test_the_person_themselves_has_no_token_for_their_wallet(tenant: Tenant, as_owner: Person) -> None:
    agent = wallet_of(as_owner)["agentId"]

    assert refusal(as_owner.post(f"/agents/{agent}/token", json={})) == (403, "wallet_of_person")
    assert as_owner.post(f"/vault/{agent}/sign", json=ORDER).status_code == 200


@pytest.mark.parametrize("role", ["owner", "admin", "developer", "billing", "viewer", "member"])
def test_people_of_any_role_sign_with_their_own_wallet_alone(
    role: str, service: Service, user: Person, tenant: Tenant
) -> None:
    theirs = wallet_of(user)["agentId"]
    with closing(member(service, tenant, role, mfa=True)) as person:
        own = wallet_of(person)["agentId"]
        signed = person.ok("POST", f"{WALLET}/sign-message", message())
        on_theirs = person.post(f"/vault/{theirs}/sign-message", json=message())

        assert person.ok("GET", "/user/me/wallets")[0]["agentId"] == own != theirs
        assert signed["signature"]
        assert on_theirs.status_code == 403


def test_a_member_reads_nothing_of_their_wallet_but_what_they_are_answered(user: Person) -> None:
    agent, tx = wallet_of(user)["agentId"], pays(user).json()["data"]["txId"]
    paths = ["", "/policies", "/signers", "/balance", "/account", "/apis", "/key-quorums", "/policies/votes"]
    vault = ["history", "transactions", "pending", f"transactions/{tx}", f"transactions/{tx}/receipt"]
    asks = [user.get(f"/agents/{agent}{path}") for path in paths] + [user.get(f"/vault/{agent}/{at}") for at in vault]

    assert {one.status_code for one in asks} == {403}, [(one.url, one.status_code) for one in asks]


def test_a_wallet_is_found_under_no_other_index_or_name(user: Person, service: Service, shop: Application) -> None:
    wallet_of(user)
    with closing(newcomer(service, shop.tenant)) as other:
        asks = [
            user.post(f"{WALLET}/sign?walletIndex=1", json=ORDER),
            other.post(f"{WALLET}/sign", json=ORDER),
            other.post(f"{WALLET}/sign", json=ORDER | {"agentId": f"user-wallet-{user.id}-0"}),
        ]

    assert [one.status_code for one in asks] == [404, 404, 400]


def test_another_user_reaches_only_their_own_wallet(service: Service, shop: Application, user: Person) -> None:
    made = wallet_of(user)
    with closing(newcomer(service, shop.tenant)) as other:
        own = wallet_of(other)
        asks = [other.post(f"/vault/{made['agentId']}/sign", json=ORDER), other.get(f"/agents/{made['agentId']}")]
        other.ok("POST", f"{WALLET}/sign", ORDER)

    assert own["agentId"] != made["agentId"]
    assert own["walletAddresses"]["evm"] != made["walletAddresses"]["evm"]
    assert [one.status_code for one in asks] == [403, 403]


def test_a_removed_user_signs_nothing_more(user: Person, as_owner: Person) -> None:
    wallet_of(user)
    as_owner.ok("DELETE", f"/tenants/{as_owner.tenant}/members/{user.id}")

    assert pays(user).status_code == 401


def test_a_person_has_another_wallet_in_every_tenant(service: Service, user: Person, shop: Application) -> None:
    made = wallet_of(user)
    with new_tenant(service) as elsewhere, closing(sign_in(service)) as person:
        person.enrol_totp()
        at_home = wallet_of(person)
        with platform_client(service) as platform:
            path = f"/platform/tenants/{elsewhere.id}/members"
            platform.ok("POST", path, {"userId": person.id, "role": "member"})
        person.switch(elsewhere.id)
        absent = pays(person)
        found = [wallet_of(person), person.ok("GET", "/user/me/wallets")[0]]
        with closing(newcomer(service, shop.tenant, person.wallet)) as at_the_shop:
            there = wallet_of(at_the_shop)

    assert refusal(absent) == (404, "user_wallet_absent")
    assert found[0] == found[1]
    assert {one["agentId"] for one in (there, *found, at_home)} == {there["agentId"]}
    assert len({one["walletAddresses"]["evm"] for one in (made, there, *found, at_home)}) == 4


def test_the_applications_session_stays_in_its_tenant(user: Person) -> None:
    answer = user.post("/auth/session/tenant", json={"tenantId": f"personal-{user.id}"})

    assert refusal(answer) == (403, "session_bound")


def test_a_session_that_ended_signs_nothing_more_and_is_not_refreshed(user: Person) -> None:
    wallet_of(user)
    user.ok("POST", "/auth/logout")

    assert pays(user).status_code == 401
    assert user.refresh().status_code == 401


def test_a_repeated_request_is_signed_once(user: Person) -> None:
    wallet_of(user)
    key = {"Idempotency-Key": "once-and-for-all"}
    first, again = (user.post(f"{WALLET}/sign", json=ORDER, headers=key) for _ in range(2))

    assert (first.status_code, again.json()["data"]) == (200, first.json()["data"])


def test_a_key_of_one_user_tells_another_nothing(user: Person, service: Service, shop: Application) -> None:
    wallet_of(user)
    key = {"Idempotency-Key": "the same of both"}
    with closing(newcomer(service, shop.tenant)) as other:
        wallet_of(other)
        first, second = (one.ok("POST", f"{WALLET}/sign-message", message(), **key) for one in (user, other))

    assert first["signature"] != second["signature"]
