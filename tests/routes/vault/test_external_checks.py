"""Orders that a service is asked about: its signed word decides, and nothing else ever allows one.

The service is the program of docs/external-check.md, and one that answers in every wrong way.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.pages import programs_of
from tests.fixtures.people import Person
from tests.fixtures.server import START_SECONDS, free_ports
from tests.outside.hostile_check import Checker, checking
from tests.outside.processes import die_with
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import transfer, with_signer

WRONG = [
    "first",
    "another-key",
    "another-question",
    "unsigned",
    "hex",
    "redirect",
    "failing",
    "created",
    "large",
    "encoded",
    "silent",
    "dripping",
    "cut",
]


@pytest.fixture
def checker() -> Iterator[Checker]:
    with checking() as one:
        yield one


def check(checker: Checker, how: str, **more: Any) -> dict[str, Any]:
    # As long as a rule may wait: how busy this machine is says nothing of the answer.
    waits: dict[str, Any] = {"timeoutSeconds": 8, **more}
    return rule("external-check", url=f"{checker.url}/{how}", publicKeys=[checker.key], **waits)


@contextmanager
def pages_service(folder: Path) -> Iterator[tuple[str, str]]:
    """The program of the page, as it stands there: its address and its key."""
    [(language, program)] = programs_of("docs/external-check.md")
    assert language == "python"
    (folder / "check.py").write_text(program)
    (folder / "known.txt").write_text(f"{ADDRESS}\n")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "key.pem"], cwd=folder, check=True)
    [port] = free_ports(1)
    with subprocess.Popen(
        [sys.executable, "check.py", str(port)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{port}/orders", process.stdout.readline().strip()
        finally:
            process.kill()


def test_the_pages_service_allows_whom_it_knows_and_asks_about_the_rest(tenant: Tenant, tmp_path: Path) -> None:
    with pages_service(tmp_path) as (url, key):
        agent = tenant.agent(rule("external-check", url=url, publicKeys=[key], timeoutSeconds=8))
        # It listens a moment after it told its key.
        known = eventually(lambda: agent.sign(value=3).status_code, 200, START_SECONDS)
        unknown = agent.sign(OTHER_ADDRESS, value=3)

    assert known == 200
    assert unknown.status_code == 202
    [result] = unknown.json()["data"]["results"]
    assert result["reason"] == "the external check asks for a person: it pays somebody who is not on our list"
    approved = tenant.post(f"/approvals/{unknown.json()['data']['approvalId']}/approve", json={})
    assert approved.status_code == 200, approved.text


@pytest.mark.parametrize(("decision", "status"), [("allow", 200), ("ask", 202), ("refuse", 403)])
def test_its_word_decides(decision: str, status: int, tenant: Tenant, checker: Checker) -> None:
    agent = tenant.agent(check(checker, decision, onFailure="refuse"))

    answer = agent.sign(value=7)

    assert answer.status_code == status, answer.text
    [asked] = checker.asked
    assert (asked["tenantId"], asked["agentId"], asked["kind"]) == (tenant.id, agent.id, "evm")
    assert [(one["recipient"], one["amount"]) for one in asked["effects"] if one["kind"] == "transfer"] == [
        (ADDRESS, "7")
    ]


@pytest.mark.parametrize("how", WRONG)
def test_an_answer_that_does_not_count_signs_nothing(how: str, tenant: Tenant, checker: Checker) -> None:
    asking = tenant.agent(check(checker, how, timeoutSeconds=1))
    refusing = tenant.agent(check(checker, how, timeoutSeconds=1, onFailure="refuse"))
    if how == "first":
        # Its first answer is for its own question, and signs that order; it serves no other.
        assert asking.sign(value=1).status_code == 200

    statuses = [agent.sign(value=2).status_code for agent in (asking, refusing)]

    assert statuses == [202, 403]
    # The redirect was not followed.
    assert len(checker.asked) == (3 if how == "first" else 2)


def test_a_service_that_is_not_there_signs_nothing(tenant: Tenant, checker: Checker) -> None:
    [port] = free_ports(1)
    away: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/", "publicKeys": [checker.key]}
    agents = [tenant.agent(rule("external-check", **away, onFailure=failing)) for failing in ("ask", "refuse")]

    assert [agent.sign().status_code for agent in agents] == [202, 403]


def test_an_order_that_another_rule_refuses_is_told_to_nobody(tenant: Tenant, checker: Checker) -> None:
    agent = tenant.agent(check(checker, "allow"), rule("approved-addresses", addresses=[OTHER_ADDRESS]))

    assert (agent.sign().status_code, checker.asked) == (403, [])


def test_a_dry_run_asks_nobody_and_says_so(tenant: Tenant, checker: Checker) -> None:
    agent = tenant.agent(check(checker, "allow", onFailure="refuse"))

    dry = agent.post(f"/vault/{agent.id}/simulate", json={"kind": "evm", "request": {"to": ADDRESS, "value": "1"}})

    assert dry.status_code == 200, dry.text
    assert (dry.json()["data"]["decision"], checker.asked) == ("queue", [])


def test_the_same_order_under_its_key_is_asked_about_once(tenant: Tenant, checker: Checker) -> None:
    agent = tenant.agent(check(checker, "allow"))

    first, again = agent.sign(key="asked-about-once"), agent.sign(key="asked-about-once")

    assert (first.status_code, first.json()["data"]) == (200, again.json()["data"])
    assert len(checker.asked) == 1


def test_every_order_at_once_has_its_own_answer(tenant: Tenant, checker: Checker) -> None:
    agent = tenant.agent(check(checker, "allow"))

    with ThreadPoolExecutor(16) as pool:
        statuses = [one.status_code for one in pool.map(lambda value: agent.sign(value=value), range(1, 33))]

    assert statuses == [200] * 32
    assert len({asked["transactionId"] for asked in checker.asked}) == len(checker.asked) == 32


def test_an_agent_whose_service_is_slow_holds_up_no_other(tenant: Tenant, checker: Checker) -> None:
    slow = tenant.agent(check(checker, "silent", timeoutSeconds=8))
    quick = tenant.agent(check(checker, "allow"))

    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(slow.sign, value=value) for value in range(1, 41)]
        # Thirty-two are asked about; the others are a person's at once.
        eventually(lambda: sum(one.done() for one in waiting) >= 8, seconds=START_SECONDS)
        assert quick.sign().status_code == 200
        checker.over.set()

    assert len(checker.asked) >= 33


def test_every_kind_of_order_is_asked_about(as_owner: Person, tenant: Tenant, checker: Checker) -> None:
    payer = with_signer(as_owner, tenant.agent(check(checker, "allow")), "transfer")
    bitcoins = tenant.agent(check(checker, "allow"), LISTED)
    watched = with_signer(as_owner, bitcoins, "sign_transaction")

    answers = [
        transfer(payer),
        sign_psbt(watched, payment(watched, 10_000)),
        payer.post(f"/vault/{payer.id}/sign-message", json={"chainFamily": "evm", "message": "hello"}),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 202], [answer.text for answer in answers]
    assert [asked["kind"] for asked in checker.asked] == ["evm", "bitcoin", "message"]
    assert [bool(asked["effects"]) for asked in checker.asked] == [True, True, False]


def test_all_services_of_an_agent_must_allow(tenant: Tenant, checker: Checker) -> None:
    agents = [tenant.agent(*(check(checker, how) for how in ways)) for ways in (("allow", "ask"), ("refuse", "allow"))]

    assert [agent.sign().status_code for agent in agents] == [202, 403]


def queue_with(agent: Agent) -> str:
    waiting = agent.sign()
    assert waiting.status_code == 202, waiting.text
    return str(waiting.json()["data"]["approvalId"])


def test_an_order_that_a_person_approves_is_not_asked_about_again(tenant: Tenant, checker: Checker) -> None:
    item = queue_with(tenant.agent(check(checker, "ask", onFailure="refuse")))

    tenant.ok("POST", f"/approvals/{item}/approve", {})

    assert len(checker.asked) == 1
