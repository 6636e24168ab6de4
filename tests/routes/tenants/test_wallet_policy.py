"""One linked wallet for each member: who has more, and what a tenant's admins may take."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.crowds import with_two_wallets
from tests.fixtures.linking import email_proof, identities_of, link, second_wallet, solana_proof
from tests.fixtures.people import Person, fresh_address, member, sign_in
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.outside.wallet import Wallet
from tests.routes.auth.devices import decide, new_device

ANY = str(uuid.uuid4())


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code", "")


def users(tenant: Tenant | str, *rest: str) -> str:
    tenant_id = tenant if isinstance(tenant, str) else tenant.id
    return "/".join([f"/user/me/tenants/{tenant_id}/users", *rest])


def report(owner: Person, **query: int) -> dict[str, Any]:
    found: dict[str, Any] = owner.get(users(owner.tenant, "wallet-policy/violations"), params=query).json()["data"]
    return found


def remove(owner: Person, user: str, account: str) -> httpx.Response:
    return owner.delete(users(owner.tenant, user, "wallet-policy/wallets", account))


def remediate(owner: Person, *wallets: tuple[str, str], **headers: str) -> httpx.Response:
    body = {"wallets": [{"userId": user, "accountId": account} for user, account in wallets]}
    return owner.post(users(owner.tenant, "wallet-policy/remediations"), json=body, headers=headers)


def restrict(owner: Person, *, enabled: bool = True) -> None:
    body = {"authAbuseConfig": {"wallet": {"restrictToOneThirdPartyWallet": enabled}}}
    owner.ok("PUT", f"/tenants/{owner.tenant}/config", body)


@pytest.fixture
def rich(service: Service, tenant: Tenant) -> Any:
    """A viewer of the tenant with two wallets; `second` is the second one's id."""
    with closing(member(service, tenant, "viewer")) as somebody:
        somebody.second = second_wallet(service, somebody)  # type: ignore[attr-defined]
        yield somebody


# ---- the report


def test_the_report_names_members_with_more_than_one_wallet(
    service: Service, tenant: Tenant, as_owner: Person, rich: Any
) -> None:
    with closing(member(service, tenant, "viewer")):
        before = report(as_owner)
        restrict(as_owner)
        after = report(as_owner)

    assert (before["policyEnabled"], after["policyEnabled"]) == (False, True)
    assert (after["tenantId"], after["total"], after["limit"], after["offset"]) == (tenant.id, 1, 1000, 0)
    [found] = after["violations"]
    assert (found["userId"], found["role"], found["walletCount"]) == (rich.id, "viewer", 2)
    assert found["wallets"][0]["providerAccountId"] == rich.wallet.address
    assert found["wallets"][1]["accountId"] == rich.second


def test_the_report_has_pages(service: Service, tenant: Tenant, as_owner: Person, rich: Any) -> None:
    with closing(member(service, tenant, "viewer")) as other:
        second_wallet(service, other)
        pages = [report(as_owner, limit=1, offset=offset) for offset in (0, 1, 2)]

    assert [[one["userId"] for one in page["violations"]] for page in pages] == [[other.id], [rich.id], []]
    assert [page["total"] for page in pages] == [2, 2, 2]


def test_addresses_and_tenants_of_others_are_not_in_it(
    service: Service, tenant: Tenant, other_tenant: Tenant, as_owner: Person
) -> None:
    with closing(member(service, other_tenant, "viewer")) as stranger:
        second_wallet(service, stranger)

        assert report(as_owner)["violations"] == []
        answer = stranger.get(users(tenant, "wallet-policy/violations"))
    assert answer.status_code == 403


# ---- one at a time


def test_a_wallet_is_unlinked_and_its_person_signed_out(
    service: Service, tenant: Tenant, as_owner: Person, rich: Any
) -> None:
    agent = tenant.agent()
    answer = remove(as_owner, rich.id, rich.second)

    assert answer.status_code == 200
    said = answer.json()["data"]
    assert (said["deleted"], said["accountId"], said["provider"]) == (True, rich.second, "wallet:ethereum")
    assert said["issuedBefore"] <= as_owner.ok("GET", "/audit/events?action=wallet_policy.remediated")["data"][0][
        "created_at"
    ].replace("+00:00", "Z")
    assert rich.get("/auth/session").status_code == 401
    assert rich.refresh().status_code == 401
    assert agent.get(f"/agents/{agent.id}").status_code == 200
    with closing(sign_in(service, rich.wallet)) as again:
        assert again.id == rich.id
        assert len(again.ok("GET", "/auth/identities")) == 1


def test_a_solana_wallet_is_one_too(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with closing(member(service, tenant, "viewer")) as somebody:
        account = link(somebody, wallet=solana_proof(service, somebody)).json()["data"]["id"]
        assert report(as_owner)["violations"][0]["wallets"][1]["provider"] == "wallet:solana"
        answer = remove(as_owner, somebody.id, account)

    assert answer.json()["data"]["provider"] == "wallet:solana"


# ---- I17: what stays


def test_some_accounts_may_not_be_unlinked(
    service: Service, tenant: Tenant, other_tenant: Tenant, as_owner: Person, as_platform: Client, mailbox: Mailbox
) -> None:
    with ExitStack() as open_:
        lone = open_.enter_context(closing(member(service, tenant, "viewer")))
        stranger = open_.enter_context(closing(sign_in(service)))
        busy = open_.enter_context(closing(member(service, tenant, "viewer")))
        as_platform.ok("POST", f"/platform/tenants/{other_tenant.id}/members", {"userId": busy.id, "role": "member"})
        reader = open_.enter_context(closing(member(service, tenant, "viewer")))
        link(reader, email=email_proof(reader, mailbox, fresh_address()))
        wanted = {
            "the last way in": (lone.id, identities_of(lone)["wallet:ethereum"]["id"], 409, "last_login_method"),
            "no member": (stranger.id, second_wallet(service, stranger), 404, "member_absent"),
            "nobody": (ANY, ANY, 404, "member_absent"),
            "an absent account": (lone.id, ANY, 404, "identity_absent"),
            "another's account": (lone.id, second_wallet(service, busy), 404, "identity_absent"),
            "an address": (reader.id, identities_of(reader)["email"]["id"], 409, "not_wallet"),
            "a member elsewhere": (busy.id, second_wallet(service, busy), 409, "member_elsewhere"),
            "oneself": (as_owner.id, second_wallet(service, as_owner), 409, "own_account"),
        }
        alone = {name: remove(as_owner, user, account) for name, (user, account, *_) in wanted.items()}
        together = remediate(as_owner, *[(user, account) for user, account, *_ in wanted.values()]).json()["data"]

        assert {name: outcome(answer) for name, answer in alone.items()} == {
            name: (status, code) for name, (_, _, status, code) in wanted.items()
        }
        assert (together["succeeded"], together["failed"]) == (0, len(wanted))
        assert [(one["status"], one["code"]) for one in together["results"]] == [
            (status, code) for _, _, status, code in wanted.values()
        ]
        assert all(one["error"] and "deleted" not in one for one in together["results"])
        for person in (lone, stranger, busy, reader, as_owner):
            assert person.get("/auth/session").status_code == 200


def test_an_owner_only_by_an_owner(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with (
        closing(member(service, tenant, "admin", mfa=True)) as admin,
        closing(member(service, tenant, "owner")) as other,
    ):
        account = second_wallet(service, other)

        assert outcome(remove(admin, other.id, account)) == (403, "owner_only")
        assert remove(as_owner, other.id, account).status_code == 200


@pytest.mark.parametrize("role", ["developer", "billing", "viewer", "member"])
def test_others_than_admins_may_not(service: Service, tenant: Tenant, rich: Any, role: str) -> None:
    with closing(member(service, tenant, role, mfa=True)) as somebody:
        answers = [
            somebody.get(users(tenant, "wallet-policy/violations")),
            remove(somebody, rich.id, rich.second),
            remediate(somebody, (rich.id, rich.second)),
        ]

    assert {outcome(answer) for answer in answers} == {(403, "wrong_role")}


def test_an_admin_needs_a_recent_factor(service: Service, tenant: Tenant, rich: Any) -> None:
    with closing(member(service, tenant, "admin")) as admin:
        answers = [admin.get(users(tenant, "wallet-policy/violations")), remove(admin, rich.id, rich.second)]

    assert {outcome(answer) for answer in answers} == {(403, "mfa_required")}


def test_another_tenants_path_is_absent(other_tenant: Tenant, as_owner: Person, rich: Any) -> None:
    answer = as_owner.delete(users(other_tenant, rich.id, "wallet-policy/wallets", rich.second))

    assert outcome(answer) == (404, "no_such_tenant")


# ---- several


def test_one_that_is_refused_holds_up_no_other(service: Service, as_owner: Person, rich: Any) -> None:
    first = linked_first(rich)
    answer = remediate(as_owner, (rich.id, ANY), (rich.id, rich.second), (rich.id, rich.second), (rich.id, first))

    said = answer.json()["data"]
    assert answer.status_code == 200
    assert [one["ok"] for one in said["results"]] == [False, True, False, False]
    assert [one.get("code") for one in said["results"]] == [
        "identity_absent",
        None,
        "identity_absent",
        "last_login_method",
    ]
    assert (said["succeeded"], said["failed"]) == (1, 3)


def linked_first(person: Person) -> str:
    return str(person.ok("GET", "/auth/identities")[-1]["id"])


@pytest.mark.parametrize("count", [0, 51])
def test_one_to_fifty_are_taken(as_owner: Person, count: int) -> None:
    assert remediate(as_owner, *[(ANY, ANY)] * count).status_code == 400


def test_the_same_key_again_gives_the_same_answer(as_owner: Person, rich: Any) -> None:
    key = {"Idempotency-Key": f"remediation-{uuid.uuid4()}"}
    first = remediate(as_owner, (rich.id, rich.second), **key)
    again = remediate(as_owner, (rich.id, rich.second), **key)

    assert first.json()["data"]["succeeded"] == 1
    assert again.json()["data"] == first.json()["data"]
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_fifty_are_remediated_by_one_request(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, as_owner: Person
) -> None:
    wallets = await with_two_wallets(service, owner, tenant.id, 50)

    assert remediate(as_owner, *wallets).json()["data"]["succeeded"] == 50


# ---- I18: at once


def test_of_two_admins_at_once_one_unlinks(service: Service, tenant: Tenant, as_owner: Person, rich: Any) -> None:
    with closing(member(service, tenant, "admin", mfa=True)) as admin, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: remove(one, rich.id, rich.second), (as_owner, admin)))

    assert sorted(outcome(answer) for answer in answers) == [(200, ""), (404, "identity_absent")]


def test_of_both_wallets_at_once_one_stays(service: Service, tenant: Tenant, as_owner: Person, rich: Any) -> None:
    accounts = (rich.second, linked_first(rich))
    with closing(member(service, tenant, "admin", mfa=True)) as admin, ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(lambda pair: remove(pair[0], rich.id, pair[1]), zip((as_owner, admin), accounts, strict=True))
        )

    assert sorted(outcome(answer) for answer in answers) == [(200, ""), (409, "last_login_method")]


def test_while_the_person_signs_in_no_session_outlives_it(service: Service, tenant: Tenant, as_owner: Person) -> None:
    """Whichever comes first, a person who signs in with the wallet afterwards is somebody else."""
    for _ in range(4):
        wallet = Wallet()
        with closing(member(service, tenant, "viewer")) as somebody:
            account = second_wallet(service, somebody, wallet)
            with ThreadPoolExecutor(2) as pool:
                signing = pool.submit(sign_in, service, wallet)
                removing = pool.submit(remove, as_owner, somebody.id, account)
                with closing(signing.result()) as signed_in:
                    assert removing.result().status_code == 200
                    alive = signed_in.get("/auth/session").status_code == 200
                    assert alive == (signed_in.id != somebody.id)


# ---- I19: what is told


async def test_webhook_and_audit_carry_no_address(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, as_owner: Person, rich: Any
) -> None:
    addresses = [one["providerAccountId"] for one in rich.ok("GET", "/auth/identities")]
    remediate(as_owner, (rich.id, rich.second), (rich.id, ANY))

    rows = as_owner.ok("GET", "/audit/events?actionPrefix=wallet_policy.")["data"]
    assert [(row["action"], row["resource_id"], row["metadata"].get("reason")) for row in reversed(rows)] == [
        ("wallet_policy.remediation_authorized", rich.id, None),
        ("wallet_policy.remediated", rich.id, None),
        ("wallet_policy.remediation_authorized", rich.id, None),
        ("wallet_policy.refused", rich.id, "identity_absent"),
    ]
    said = await owner.fetch(
        "SELECT event, data FROM outbox WHERE tenant_id = $1 UNION ALL SELECT event, data FROM events "
        "WHERE tenant_id = $1",
        tenant.id,
    )
    [told] = [row["data"] for row in said if row["event"] == "user.unlinked_account"]
    assert json.loads(told) == {
        "userId": rich.id,
        "provider": "wallet:ethereum",
        "accountId": rich.second,
        "redacted": True,
    }
    for address in addresses:
        assert address.lower() not in (str(rows) + str(said)).lower()


def test_a_device_that_was_approved_is_turned_away(
    service: Service, tenant: Tenant, as_owner: Person, rich: Any
) -> None:
    with Client(base_url=service.url, timeout=30) as nobody:
        device = new_device(nobody, tenant.id)
        assert decide(rich, device).status_code == 200
        remove(as_owner, rich.id, rich.second)

        assert device.poll().status_code == 400


def test_mail_is_not_wallet_that_counts(service: Service, tenant: Tenant, as_owner: Person, mailbox: Mailbox) -> None:
    with closing(member(service, tenant, "viewer")) as somebody:
        link(somebody, email=email_proof(somebody, mailbox, fresh_address()))

        assert report(as_owner)["total"] == 0
