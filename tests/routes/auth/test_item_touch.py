"""A touch for one item: it approves that item as it was read, within a minute, and does nothing else."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import jwt
import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator
from tests.routes.auth.factors import refusal

NEW, ADD = "/auth/passkeys/register/options", "/auth/passkeys/register/verify"
SHOW, STEP_UP = "/auth/mfa/passkey/options", "/auth/mfa/passkey/step-up"
ASK, TOUCH = "/auth/mfa/passkey/item/options", "/auth/mfa/passkey/item"


@pytest.fixture
def decider(service: Service, tenant: Tenant, device: Authenticator) -> Iterator[Person]:
    """An admin with a passkey on the device, whose session has shown no factor."""
    with closing(member(service, tenant, "admin")) as person:
        person.ok("POST", ADD, {"credential": device.create(person.ok("POST", NEW, {}))})
        yield person


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def queue_order(tenant: Tenant, agent: Agent, value: int = 5) -> dict[str, str]:
    """An order that waits, as a touch names it."""
    approval = agent.sign(value=value).json()["data"]["approvalId"]
    return {"approvalId": approval, "digest": tenant.ok("GET", f"/approvals/{approval}")["digest"]}


def touch(person: Person, device: Authenticator, item: dict[str, str]) -> dict[str, Any]:
    shown = device.get(person.ok("POST", ASK, item))
    answer: dict[str, Any] = person.ok("POST", TOUCH, {**item, "credential": shown})
    return answer


def approve(service: Service, token: str, item: dict[str, str], **body: Any) -> tuple[int, str]:
    with Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}) as client:
        answer = client.post(f"/approvals/{item['approvalId']}/approve", json=body or {"digest": item["digest"]})
    return answer.status_code, answer.json()["data"].get("code", answer.json()["data"].get("status"))


def test_a_touch_approves_its_item_and_leaves_the_session_as_it_is(
    service: Service, tenant: Tenant, cautious: Agent, decider: Person, device: Authenticator
) -> None:
    item, other = queue_order(tenant, cautious, 1), queue_order(tenant, cautious, 2)
    assert approve(service, decider.session["token"], item) == (403, "mfa_required")

    found = touch(decider, device, item)

    assert found["expiresIn"] == 60
    assert approve(service, found["token"], other) == (401, "bad_proof")
    assert approve(service, found["token"], item, digest=other["digest"])[0] in (401, 409)
    assert approve(service, found["token"], item) == (200, "approved")
    # The session shows no factor, and neither is any other item approved by it.
    assert decider.ok("GET", "/auth/session")["mfa"]["verifiedAt"] is None
    assert approve(service, decider.session["token"], other) == (403, "mfa_required")
    assert approve(service, found["token"], item) == (409, "approval_resolved")


def test_its_token_does_nothing_else(
    service: Service, tenant: Tenant, cautious: Agent, decider: Person, device: Authenticator
) -> None:
    item = queue_order(tenant, cautious)
    found = touch(decider, device, item)

    with Client(base_url=service.url, headers={"Authorization": f"Bearer {found['token']}"}) as client:
        refused = [
            client.get("/approvals"),
            client.get(f"/approvals/{item['approvalId']}"),
            client.get("/auth/session"),
            client.post(f"/approvals/{item['approvalId']}/deny", json={}),
            client.put(f"/agents/{cautious.id}/policies", json=[]),
            client.post("/auth/passkeys/register/options", json={}),
            client.post(ASK, json=item),
            client.post("/auth/logout", json={}),
        ]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in refused} == {(401, "bad_credential")}
    claims = jwt.decode(found["token"], options={"verify_signature": False})
    assert (claims["approval"], claims["digest"]) == (item["approvalId"], item["digest"])
    assert claims["exp"] - claims["iat"] == 60


def test_a_challenge_is_for_its_item_alone(
    tenant: Tenant, cautious: Agent, decider: Person, device: Authenticator
) -> None:
    first, second = queue_order(tenant, cautious, 1), queue_order(tenant, cautious, 2)
    shown = device.get(decider.ok("POST", ASK, first))

    assert refusal(decider.post(TOUCH, json={**second, "credential": shown})) == (401, "challenge_invalid")
    shown = device.get(decider.ok("POST", ASK, first))
    swapped = {**first, "digest": second["digest"], "credential": shown}
    assert refusal(decider.post(TOUCH, json=swapped)) == (401, "challenge_invalid")
    # Neither does it step up, nor what steps up touch an item.
    assert refusal(decider.post(STEP_UP, json={"credential": device.get(decider.ok("POST", ASK, first))})) == (
        401,
        "challenge_invalid",
    )
    plain = device.get(decider.ok("POST", SHOW, {}))
    assert refusal(decider.post(TOUCH, json={**first, "credential": plain})) == (401, "challenge_invalid")


def test_a_touch_works_once_and_asks_who_touches(
    tenant: Tenant, cautious: Agent, decider: Person, device: Authenticator
) -> None:
    item = queue_order(tenant, cautious)
    shown = device.get(decider.ok("POST", ASK, item))
    decider.ok("POST", TOUCH, {**item, "credential": shown})
    assert refusal(decider.post(TOUCH, json={**item, "credential": shown})) == (401, "challenge_invalid")

    unverified = device.get(decider.ok("POST", ASK, item), user_verified=False)
    assert refusal(decider.post(TOUCH, json={**item, "credential": unverified})) == (401, "user_unverified")


def test_a_person_without_a_passkey_cannot_touch(service: Service, tenant: Tenant, cautious: Agent) -> None:
    item = queue_order(tenant, cautious)
    with closing(member(service, tenant, "admin")) as person:
        assert refusal(person.post(ASK, json=item)) == (404, "factor_absent")


def test_an_order_that_changed_since_is_not_approved_by_the_touch(
    service: Service, tenant: Tenant, cautious: Agent, decider: Person, device: Authenticator
) -> None:
    item = queue_order(tenant, cautious)
    found = touch(decider, device, {**item, "digest": "0" * 64})

    # Without a digest in the body the token's own still counts.
    with Client(base_url=service.url, headers={"Authorization": f"Bearer {found['token']}"}) as client:
        answer = client.post(f"/approvals/{item['approvalId']}/approve", json={})
    assert (answer.status_code, answer.json()["data"]["code"]) == (401, "bad_proof")
    assert tenant.ok("GET", f"/approvals/{item['approvalId']}")["status"] == "pending"


async def test_a_touch_counts_no_more_once_the_factors_change(
    service: Service,
    tenant: Tenant,
    cautious: Agent,
    decider: Person,
    device: Authenticator,
    owner: asyncpg.Connection,
) -> None:
    item = queue_order(tenant, cautious)
    found = touch(decider, device, item)
    changed = "UPDATE users SET factors_changed_at = now() + interval '1 minute' WHERE id = $1"
    await owner.execute(changed, decider.id)

    assert approve(service, found["token"], item) == (403, "mfa_required")


@pytest.mark.parametrize("role", ["developer", "viewer"])
def test_a_person_who_does_not_decide_touches_nothing(
    service: Service, tenant: Tenant, cautious: Agent, device: Authenticator, role: str
) -> None:
    item = queue_order(tenant, cautious)
    with closing(member(service, tenant, role)) as person:
        person.ok("POST", ADD, {"credential": device.create(person.ok("POST", NEW, {}))})
        assert refusal(person.post(ASK, json=item)) == (403, "wrong_role")
