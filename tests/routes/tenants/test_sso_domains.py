"""E-mail domains: added, proven by a record, looked at daily, lost, taken over, removed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from custody.chains.chains_file import load
from custody.chains.rpc import Rpc
from custody.kit.db import close_pool, open_pool
from custody.kit.dns_records import DnsRecords
from custody.ports import Ports
from custody.protocol.client import SignerClient
from custody.protocol.workers import Workers
from custody.sign_on import domains as use_cases
from tests.fixtures.callers import Client, Tenant, new_tenant
from tests.fixtures.forgery import rewrite_domain
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.dns_server import DnsServer
from tests.routes.tenants.domains import add, audit_rows, fresh_domain, list_entry, path, publish, verify_domain


@pytest.fixture
def as_other_owner(service: Service, other_tenant: Tenant) -> Iterator[Person]:
    """The owner of another tenant, with a second factor shown just now."""
    with closing(member(service, other_tenant, "owner", mfa=True)) as somebody:
        yield somebody


@pytest.fixture
async def ports(service: Service, database: Database, dns_server: DnsServer) -> AsyncIterator[Ports]:
    """Ports of a scheduler, with little patience for name servers."""
    pool, rpc = await open_pool(database.urls["scheduler"], size=4, least=1), Rpc()
    identity = SignerClient(str(service.home / "run-identity" / "identity.sock"), "scheduler")
    workers = Workers(SignerClient(str(service.socket), "scheduler"), identity)
    dns = DnsRecords((dns_server.host, dns_server.port), 0.5)
    yield Ports(pool=pool, workers=workers, chains=load({}), rpc=rpc, dns=dns)
    await workers.close()
    await rpc.close()
    await close_pool(pool)


def report(service: Service, tenant: str, domain: str, *found: str, process: str = "scheduler") -> Any:
    """Report a domain's records as a scheduler, or as somebody who claims to be one, and return the answer."""
    with greet(service, process) as wire:
        return wire.ask("DomainSeen", {"tenant": tenant, "domain": domain, "found": list(found)})


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code")


def test_a_domain_is_added_with_the_record_to_publish(as_owner: Person) -> None:
    domain = fresh_domain()

    answer = as_owner.post(f"/tenants/{as_owner.tenant}/sso-domains", json={"domain": domain.upper()})

    made = answer.json()["data"]
    token = made["verificationToken"]
    assert answer.status_code == 201
    assert token.startswith("custody-sso-")
    assert len(token) == len("custody-sso-") + 43
    assert {name: value for name, value in made.items() if name != "createdAt"} == {
        "domain": domain,
        "ssoRequired": False,
        "counts": False,
        "notCounting": "not_required",
        "status": "pending",
        "verificationToken": token,
        "record": {"name": f"_service-sso.{domain}", "type": "TXT", "value": token},
        "verifiedAt": None,
        "lastCheckedAt": None,
        "missingSince": None,
    }
    assert list_entry(as_owner, domain) == made
    assert audit_rows(as_owner, "sso.domain_added")[0]["resource_id"] == domain


def test_the_same_domain_again_changes_what_it_demands(as_owner: Person) -> None:
    made = add(as_owner)

    again = as_owner.post(
        f"/tenants/{as_owner.tenant}/sso-domains", json={"domain": made["domain"], "ssoRequired": True}
    )

    assert again.status_code == 200
    assert again.json()["data"] == {**made, "ssoRequired": True, "notCounting": "domain_pending"}
    assert audit_rows(as_owner, "sso.domain_changed")[0]["metadata"] == {"ssoRequired": True, "sessionsEnded": 0}


@pytest.mark.parametrize(
    ("domain", "wrong"),
    [
        ("x", "bad_domain"),
        ("localhost", "bad_domain"),
        ("a@example.com", "bad_domain"),
        ("192.0.2.7", "bad_domain"),
        ("a..b", "bad_domain"),
        ("*.x.com", "bad_domain"),
        ("x.com.", "bad_domain"),
        ("_x.com", "bad_domain"),
        ("co.uk", "bad_domain"),
        ("gmail.com", "bad_domain"),
        ("bücher.example", "bad_domain"),
        ("x" * 250 + ".com", "bad_body"),
        ("", "bad_body"),
        ("x.com\n", "bad_domain"),
    ],
)
def test_a_text_that_is_no_domain_is_refused(as_owner: Person, domain: str, wrong: str) -> None:
    answer = as_owner.post(f"/tenants/{as_owner.tenant}/sso-domains", json={"domain": domain})

    assert code(answer) == (400, wrong)
    assert answer.json()["data"]["fields"] == ["domain"]
    assert as_owner.ok("GET", f"/tenants/{as_owner.tenant}/sso-domains") == []


def test_a_tenant_has_twenty(as_owner: Person) -> None:
    made = [add(as_owner) for _ in range(20)]

    refused = as_owner.post(f"/tenants/{as_owner.tenant}/sso-domains", json={"domain": fresh_domain()})

    assert code(refused) == (409, "too_many_sso_domains")
    as_owner.ok("DELETE", path(as_owner, made[0]))
    add(as_owner)


def test_a_record_verifies_a_domain(as_owner: Person, dns_server: DnsServer) -> None:
    made = add(as_owner)
    token = made["record"]["value"].encode()
    dns_server.txt(made["record"]["name"], "something else", (token[:9], token[9:]))

    answer = as_owner.ok("POST", path(as_owner, made, "verify"))

    assert (answer["status"], answer["missingSince"]) == ("verified", None)
    assert answer["verifiedAt"] == answer["lastCheckedAt"]
    assert list_entry(as_owner, made["domain"]) == answer
    assert audit_rows(as_owner, "sso.domain_verified")[0]["metadata"] == {"ssoRequired": False, "sessionsEnded": 0}
    again = as_owner.ok("POST", path(as_owner, made, "verify"))
    assert again["verifiedAt"] == answer["verifiedAt"]
    assert len(audit_rows(as_owner, "sso.domain_verified")) == 1


@pytest.mark.parametrize("how", ["absent", "no records", "other case", "quoted", "blank", "cut", "longer", "old token"])
def test_another_record_does_not_verify(as_owner: Person, dns_server: DnsServer, how: str) -> None:
    made = add(as_owner)
    name, token = made["record"]["name"], made["record"]["value"]
    texts = {
        "no records": [],
        "other case": [token.upper()],
        "quoted": [f'"{token}"'],
        "blank": [f"{token} "],
        "cut": [token[:-1]],
        "longer": [token * 6],
        "old token": [token],
    }
    if how in texts:
        dns_server.txt(name, *texts[how])
    if how == "old token":
        as_owner.ok("DELETE", path(as_owner, made))
        token = add(as_owner, made["domain"])["record"]["value"]

    answer = as_owner.post(path(as_owner, made, "verify"))

    said = answer.json()["data"]
    assert code(answer) == (409, "dns_record_missing")
    assert (said["name"], said["expected"]) == (name, token)
    assert said["found"] == [text[:255] for text in texts.get(how, [])]
    assert list_entry(as_owner, made["domain"])["status"] == "pending"


def test_a_name_server_that_fails_gives_no_answer(as_owner: Person, dns_server: DnsServer) -> None:
    made = add(as_owner)
    dns_server.fails(made["record"]["name"], "SERVFAIL")

    assert code(as_owner.post(path(as_owner, made, "verify"))) == (502, "dns_unavailable")

    dns_server.silent(made["record"]["name"])

    assert code(as_owner.post(path(as_owner, made, "verify"))) == (502, "dns_unavailable")


def test_an_alias_and_twenty_one_values_are_refused(as_owner: Person, dns_server: DnsServer) -> None:
    made, elsewhere = add(as_owner), fresh_domain()
    dns_server.alias(made["record"]["name"], elsewhere)
    dns_server.txt(elsewhere, made["record"]["value"])

    assert code(as_owner.post(path(as_owner, made, "verify"))) == (409, "dns_alias")

    dns_server.txt(made["record"]["name"], made["record"]["value"], *(f"value-{number}" for number in range(20)))

    assert code(as_owner.post(path(as_owner, made, "verify"))) == (409, "dns_too_many_values")


def test_only_own_domains_are_asked_for(as_owner: Person, as_other_owner: Person, dns_server: DnsServer) -> None:
    theirs = add(as_other_owner)

    refused = as_owner.post(path(as_owner, theirs, "verify"))

    assert code(refused) == (404, "sso_domain_absent")
    assert code(as_owner.delete(path(as_owner, theirs))) == (404, "sso_domain_absent")
    assert dns_server.questions_for(theirs["record"]["name"]) == []


def test_a_removed_domain_is_free(as_owner: Person, as_other_owner: Person, dns_server: DnsServer) -> None:
    made = verify_domain(as_owner, dns_server)

    assert as_owner.ok("DELETE", path(as_owner, made)) == {"deleted": made["domain"]}

    assert audit_rows(as_owner, "sso.domain_removed")[0]["resource_id"] == made["domain"]
    assert verify_domain(as_other_owner, dns_server, made["domain"])["status"] == "verified"


def test_a_domain_is_taken_while_the_owners_record_is_there(
    as_owner: Person, as_other_owner: Person, dns_server: DnsServer
) -> None:
    theirs = verify_domain(as_other_owner, dns_server)
    ours = add(as_owner, theirs["domain"])
    publish(dns_server, ours, theirs)

    assert code(as_owner.post(path(as_owner, ours, "verify"))) == (409, "domain_taken")
    assert list_entry(as_other_owner, theirs["domain"])["status"] == "verified"

    publish(dns_server, ours)

    assert as_owner.ok("POST", path(as_owner, ours, "verify"))["status"] == "verified"
    lost = list_entry(as_other_owner, theirs["domain"])
    assert (lost["status"], lost["verifiedAt"], lost["verificationToken"]) == (
        "pending",
        None,
        theirs["verificationToken"],
    )
    (row,) = audit_rows(as_other_owner, "sso.domain_lost")
    assert (row["resource_id"], row["metadata"]) == (theirs["domain"], {"reason": "verified_by_another_tenant"})
    # Nothing of who took it.
    assert (row["actor_type"], row["actor_id"], row["ip_address"], row["user_agent"]) == ("system", "dns", None, None)
    assert len(audit_rows(as_owner, "sso.domain_verified")) == 1


async def test_two_tenants_that_verify_at_once_leave_one(
    service: Service, as_owner: Person, as_other_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    for _ in range(5):
        ours = add(as_owner)
        theirs = add(as_other_owner, ours["domain"])
        publish(dns_server, ours, theirs)

        with ThreadPoolExecutor() as pool:
            first = pool.submit(as_owner.post, path(as_owner, ours, "verify"))
            second = pool.submit(as_other_owner.post, path(as_other_owner, theirs, "verify"))
        answers = sorted([first.result().status_code, second.result().status_code])

        assert answers == [200, 409]
        rows = "SELECT count(*) FROM sso_domains WHERE domain = $1 AND verified_at IS NOT NULL"
        assert await owner.fetchval(rows, ours["domain"]) == 1


async def test_a_tenant_that_is_made_again_inherits_no_domain(
    service: Service, as_platform: Client, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    with new_tenant(service) as first, closing(member(service, first, "owner", mfa=True)) as before:
        made = verify_domain(before, dns_server, required=True)
        as_platform.ok("DELETE", f"/platform/tenants/{first.id}")
    with new_tenant(service, first.id) as again, closing(member(service, again, "owner", mfa=True)) as stranger:
        assert stranger.ok("GET", f"/tenants/{again.id}/sso-domains") == []
        assert await owner.fetchval("SELECT count(*) FROM sso_domains WHERE domain = $1", made["domain"]) == 0
        # The record of before proves nothing: another token is asked for.
        ours = add(stranger, made["domain"])
        assert code(stranger.post(path(stranger, ours, "verify"))) == (409, "dns_record_missing")


async def test_a_record_that_is_missing_for_seven_days_is_lost_and_comes_back(
    service: Service, as_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection, ports: Ports
) -> None:
    made = verify_domain(as_owner, dns_server)
    tenant, domain, name = as_owner.tenant, made["domain"], made["record"]["name"]

    async def a_day_passes() -> dict[str, Any]:
        row = await owner.fetchrow("SELECT * FROM sso_domains WHERE domain = $1", domain)
        if row["missing_since"]:
            await rewrite_domain(service, owner, tenant, domain, missing_since=row["missing_since"] - timedelta(days=1))
        await owner.execute("UPDATE sso_domains SET look_at = now() WHERE domain = $1", domain)
        await use_cases.look(ports)
        return await asyncio.to_thread(list_entry, as_owner, domain)

    assert (await a_day_passes())["missingSince"] is None
    dns_server.forget(name)
    missing = await a_day_passes()
    assert missing["status"] == "verified"
    assert missing["missingSince"]
    dns_server.fails(name, "SERVFAIL")
    assert (await a_day_passes())["lastCheckedAt"] == missing["lastCheckedAt"]
    dns_server.forget(name)
    for _ in range(2, 7):
        assert (await a_day_passes())["status"] == "verified"
    lost = await a_day_passes()
    assert (lost["status"], lost["verifiedAt"]) == ("pending", None)
    assert lost["missingSince"]
    assert len(audit_rows(as_owner, "sso.domain_missing")) == 1
    assert audit_rows(as_owner, "sso.domain_lost")[0]["metadata"]["reason"] == "record_missing"

    publish(dns_server, made)
    back = await a_day_passes()

    assert (back["status"], back["missingSince"]) == ("verified", None)
    assert len(audit_rows(as_owner, "sso.domain_verified")) == 2


async def test_a_week_of_failures_says_nothing_and_one_good_answer_ends_an_absence(
    service: Service, as_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    made = verify_domain(as_owner, dns_server)
    tenant, domain = as_owner.tenant, made["domain"]
    long_ago = datetime.now(UTC) - timedelta(days=30)

    assert report(service, tenant, domain)["data"] == {"status": "verified"}
    await rewrite_domain(service, owner, tenant, domain, missing_since=long_ago)
    # Days on which nobody knew are no absences.
    assert report(service, tenant, domain, "something else")["data"] == {"status": "verified"}

    assert report(service, tenant, domain, made["record"]["value"])["data"] == {"status": "verified"}

    assert list_entry(as_owner, domain)["missingSince"] is None


async def test_a_lost_domain_that_is_another_tenants_now_does_not_come_back(
    service: Service, as_owner: Person, as_other_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    made = verify_domain(as_owner, dns_server)
    tenant, domain, token = as_owner.tenant, made["domain"], made["record"]["value"]
    await rewrite_domain(
        service, owner, tenant, domain, verified_at=None, missing_since=datetime.now(UTC) - timedelta(days=8)
    )
    verify_domain(as_other_owner, dns_server, domain)

    assert report(service, tenant, domain, token)["data"] == {"status": "pending"}

    assert report(service, tenant, domain, token)["code"] == "sso_domain_absent"
    assert list_entry(as_other_owner, domain)["status"] == "verified"


@pytest.mark.parametrize("case", ["never added", "never verified", "another tenant's", "missing for long", "removed"])
async def test_a_scheduler_proves_nothing_that_no_administrator_asked_for(
    service: Service,
    as_owner: Person,
    as_other_owner: Person,
    dns_server: DnsServer,
    owner: asyncpg.Connection,
    case: str,
) -> None:
    made = add(as_owner) if case == "never verified" else verify_domain(as_owner, dns_server)
    domain, tenant = made["domain"], as_owner.tenant
    if case == "never added":
        domain = fresh_domain()
    if case == "another tenant's":
        tenant = as_other_owner.tenant
    if case == "missing for long":
        since = datetime.now(UTC) - timedelta(days=38)
        await rewrite_domain(service, owner, tenant, domain, verified_at=None, missing_since=since)
    if case == "removed":
        as_owner.ok("DELETE", path(as_owner, made))
    before = await owner.fetch("SELECT * FROM sso_domains WHERE tenant_id = $1", tenant)

    answer = report(service, tenant, domain, made["record"]["value"])

    assert (answer["kind"], answer["code"]) == ("NotFound", "sso_domain_absent")
    assert await owner.fetch("SELECT * FROM sso_domains WHERE tenant_id = $1", tenant) == before


def test_the_api_does_not_speak_for_the_scheduler(service: Service, as_owner: Person, dns_server: DnsServer) -> None:
    made = verify_domain(as_owner, dns_server)

    assert report(service, as_owner.tenant, made["domain"], process="api")["code"] == "message_not_allowed"


SPOILED = {
    "verified": "UPDATE sso_domains SET verified_at = now() WHERE domain = $1",
    "demanding": "UPDATE sso_domains SET sso_required = true WHERE domain = $1",
    "another token": "UPDATE sso_domains SET token = 'custody-sso-mine' WHERE domain = $1",
    "another name": "UPDATE sso_domains SET domain = 'x' || domain WHERE domain = $1",
    "missing": "UPDATE sso_domains SET missing_since = now() WHERE domain = $1",
    "absences": "UPDATE sso_domains SET absences = 7 WHERE domain = $1",
    "no MAC": "UPDATE sso_domains SET mac = '' WHERE domain = $1",
}


@pytest.mark.parametrize("what", SPOILED)
async def test_a_row_that_was_changed_is_refused(
    as_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection, what: str
) -> None:
    made = add(as_owner)
    publish(dns_server, made)
    await owner.execute(SPOILED[what], made["domain"])
    if what == "another name":
        made = {**made, "domain": f"x{made['domain']}"}

    answer = as_owner.post(path(as_owner, made, "verify"))

    assert code(answer) == (503, "sealed_value_tampered")
    await owner.execute("DELETE FROM sso_domains WHERE tenant_id = $1", as_owner.tenant)


async def test_a_row_that_was_given_to_another_tenant_is_refused(
    as_owner: Person, as_other_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    made = verify_domain(as_owner, dns_server)
    await owner.execute(
        "UPDATE sso_domains SET tenant_id = $2 WHERE domain = $1", made["domain"], as_other_owner.tenant
    )

    assert code(as_other_owner.post(path(as_other_owner, made, "verify"))) == (503, "sealed_value_tampered")
    ours = add(as_owner, made["domain"])
    publish(dns_server, ours)
    assert code(as_owner.post(path(as_owner, ours, "verify"))) == (503, "sealed_value_tampered")
    await owner.execute("DELETE FROM sso_domains WHERE domain = $1", made["domain"])


async def test_looks_are_shared_and_one_tenant_does_not_take_them_all(
    as_owner: Person, as_other_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection, database: Database
) -> None:
    many = [verify_domain(as_owner, dns_server)["domain"] for _ in range(7)]
    one = verify_domain(as_other_owner, dns_server)["domain"]
    await owner.execute("UPDATE sso_domains SET look_at = '2000-01-01' WHERE domain = ANY ($1)", many)
    await owner.execute("UPDATE sso_domains SET look_at = '2000-01-02' WHERE domain = $1", one)
    scheduler = await asyncpg.connect(database.urls["scheduler"])
    try:
        claimed = await scheduler.fetch("SELECT * FROM claim_sso_domains(2, 5, 3600)")
        rest = await scheduler.fetch("SELECT * FROM claim_sso_domains(50, 5, 3600)")
        last = await scheduler.fetch("SELECT * FROM claim_sso_domains(50, 5, 3600)")
    finally:
        await scheduler.close()

    assert {row["tenant_id"] for row in claimed} == {as_owner.tenant, as_other_owner.tenant}
    assert [len(rows) for rows in (claimed, rest, last)] == [2, 5, 1]


async def test_two_schedulers_look_at_each_domain_once(
    as_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection, ports: Ports
) -> None:
    made = [verify_domain(as_owner, dns_server) for _ in range(4)]
    names = [one["record"]["name"] for one in made]
    before = [len(dns_server.questions_for(name)) for name in names]
    await owner.execute(
        "UPDATE sso_domains SET look_at = '2000-01-01' WHERE domain = ANY ($1)", [one["domain"] for one in made]
    )

    await asyncio.gather(use_cases.look(ports), use_cases.look(ports))
    await use_cases.look(ports)

    assert [len(dns_server.questions_for(name)) for name in names] == [count + 1 for count in before]
    assert {list_entry(as_owner, one["domain"])["status"] for one in made} == {"verified"}
