"""`custody api`: one request in the API's own words."""

import asyncio
import re

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.server import free_ports
from tests.fixtures.tenant_commands import Desk
from tests.outside import odd_api
from tests.outside.odd_api import OddApi


def test_fields_are_the_body_and_the_query(desk: Desk, tenant: Tenant) -> None:
    made = desk.ok("api", "POST", "/agents", "-f", "id=buyer", "-f", "name=Buys paper")
    listed = desk.ok("api", "GET", "agents", "-F", "limit=1")
    changed = desk.ok("api", "PATCH", "/agents/buyer", "-f", "name=a=b")

    assert made["id"] == "buyer"
    assert [one["id"] for one in listed] == ["buyer"]
    assert changed["name"] == "a=b"


def test_a_whole_body_comes_from_a_file_or_standard_input(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")
    rules = '[{"type": "spending-limit", "enabled": true, "config": {"maxPerDay": "5"}}]'
    (desk.home / "rules.json").write_text(rules)

    put = desk.ok("api", "PUT", "/agents/buyer/policies", "--input", "rules.json")
    again = desk.ok("api", "PUT", "/agents/buyer/policies", "--input", "-", said=rules)

    assert put[0]["config"] == again[0]["config"] == {"maxPerDay": "5"}


def test_the_tenant_is_put_into_the_path(desk: Desk, tenant: Tenant) -> None:
    assert desk.ok("api", "GET", "/tenants/{tenant}")["id"] == tenant.id


def test_the_same_key_happens_once(desk: Desk) -> None:
    words = ("api", "POST", "/agents", "-f", "id=one", "-f", "name=One", "--key", "once-and-no-more")
    once = [desk.ok(*words) for _ in range(2)]

    assert once[0] == once[1]


def test_texts_are_what_was_sent_in_a_pipe(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="odd")
    tenant.ok("PATCH", "/agents/odd", {"name": "a\u202eb \U0001f468\u200d\U0001f469"})

    assert desk.ok("api", "GET", "/agents/odd")["name"] == "a\u202eb \U0001f468\u200d\U0001f469"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("GET", "/agents", "-f", "limit"), "'limit' is no field: write NAME=VALUE"),
        (("POST", "/agents", "-f", "id=1", "-F", "id=2"), "there twice"),
        (("POST", "/agents", "-F", "id=one"), "no JSON: text goes to -f"),
        (("POST", "/agents", "--input", "-", "-f", "id=1"), "omit the fields"),
        (("GET", "/agents", "--input", "-"), "a GET has no body"),
        (("POST", "/agents", "--input", "-"), "is no JSON"),
        (("FETCH", "/agents"), "'FETCH' is not one of"),
    ],
)
def test_words_that_make_no_request_send_none(desk: Desk, words: tuple[str, ...], complaint: str) -> None:
    ended = desk.run("api", *words)

    assert (ended.status, ended.said) == (2, "")
    assert complaint in " ".join(ended.complained.split())


def test_a_refusal_is_the_services_sentence_and_code(desk: Desk) -> None:
    ended, told = desk.run("api", "GET", "/agents/nobody"), desk.run("api", "GET", "/agents/nobody", "--json")

    assert (ended.status, ended.said) == (1, "")
    assert ended.complained.startswith("custody: ")
    assert told.failure["code"] == "agent_absent"


def test_a_service_that_is_away_has_a_status_of_its_own(desk: Desk) -> None:
    [nobodys] = free_ports(1)
    desk.environment["SERVICE_URL"] = f"http://127.0.0.1:{nobodys}"
    ended = desk.run("api", "GET", "/agents")

    assert ended.status == 4
    assert "cannot be reached" in ended.complained


async def test_a_request_whose_answer_is_lost_names_the_key_under_which_it_happens_once(
    odd_desk: Desk, odd: OddApi, tenant: Tenant
) -> None:
    words = ("api", "POST", "/policy-sets", "-f", "name=Twice", "-F", "policies=[]")
    odd.does(odd_api.loses, "/policy-sets", "POST")
    lost = await asyncio.to_thread(odd_desk.run, *words, "--json")
    odd.well()
    key = re.search(r"--key (\S+),", lost.failure["error"])
    assert key is not None
    made = await asyncio.to_thread(odd_desk.ok, *words, "--key", key[1])
    there = await asyncio.to_thread(odd_desk.ok, "policy-sets", "list")

    assert (lost.status, lost.failure["code"]) == (4, "away")
    assert [one["id"] for one in there] == [made["id"]]
