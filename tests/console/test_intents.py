"""Intents in the console: what waits, as a difference or as what it does, and a person's word on it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.entering import confirm
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.people import Person, member
from tests.fixtures.server import EVM_CHAIN, Service
from tests.routes.intents.makers import act, propose, state, transfer
from tests.routes.intents.test_send_calls import call, listing, may_send, pay, send
from tests.routes.vault.transfers import APPROVE
from words.texts.moments import moment

pytestmark = pytest.mark.long


@pytest.fixture
def admin(service: Service, tenant: Tenant) -> Iterator[Person]:
    """The person who decides at the console."""
    with closing(member(service, tenant, "admin", mfa=True)) as person:
        yield person


@pytest.fixture
def payer(tenant: Tenant) -> Agent:
    limits = rule("spending-limit", maxPerDay="1000000000000000000"), rule("rate-limit", maxTxPerHour=5)
    return tenant.agent(*limits, agent_id="payer")


@asynccontextmanager
async def at_intents(service: Service, folder: Path, who: Person | Tenant, **settings: Any) -> AsyncIterator[Driven]:
    key = who.key if isinstance(who, Tenant) else None
    if isinstance(who, Person):
        keep_session(folder, service.url, who)
    async with driving(service.url, folder, key=key, every=0.2, **settings) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("n")
        await console.sees("One proposes, another authorises")
        yield console


def random_of(intent: dict[str, Any]) -> list[str]:
    """List the parts of an intent that differ from run to run."""
    return [intent["id"], intent["digest"], intent["createdAt"][:19].replace("T", " ")]


@pytest.fixture
def looser(as_owner: Person, payer: Agent) -> dict[str, Any]:
    """A proposal to raise one limit of the payer and to drop the other."""
    now = as_owner.ok("GET", f"/agents/{payer.id}/policies")
    limit = {**now[0], "config": {**now[0]["config"], "maxPerDay": "5000000000000000000"}}
    body = {"intentType": "policy_update", "agentId": payer.id, "payload": {"policies": [limit]}}
    return propose(as_owner, body)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_change_of_rules_is_shown_as_a_difference(
    service: Service,
    admin: Person,
    looser: dict[str, Any],
    folder: Path,
    pictures: SnapshotAssertion,
    size: tuple[int, int],
) -> None:
    made = moment(looser["createdAt"])
    assert made is not None
    async with at_intents(service, folder, admin, size=size, now=lambda: made + timedelta(minutes=90)) as console:
        await console.sees("Goes", "Rate limit")

        shown = await console.picture(admin.wallet.address, admin.tenant, *random_of(looser))
        assert shown == pictures


async def test_one_authorises_and_executes(
    service: Service, tenant: Tenant, admin: Person, payer: Agent, folder: Path
) -> None:
    intent = propose(tenant, transfer(payer, 250_000_000_000_000_000))
    async with at_intents(service, folder, admin) as console:
        await console.sees("Payment", "waits", "0.25", ADDRESS)
        await console.press("a")
        await console.sees("Authorise this?", "Nothing happens yet")
        await confirm(console, "Payment: authorised.")
        assert state(tenant, intent) == "authorized"

        await console.sees("e Execute")
        await console.press("e")
        await console.sees("Execute this now?")
        await confirm(console, "Payment: executed.")
        assert state(tenant, intent) == "executed"
        await console.sees("No intent waits")
        await console.press("v")
        await console.sees("What came of it", "signed")


async def test_ones_own_proposal_is_for_somebody_else(
    service: Service, admin: Person, payer: Agent, folder: Path
) -> None:
    intent = propose(admin, transfer(payer))
    async with at_intents(service, folder, admin) as console:
        await console.sees("You proposed this: somebody else must authorise it.", "x Cancel it")
        assert "a Authorise" not in console.flat

        await console.press("x")
        await console.sees("Cancel this?")
        await confirm(console, "Payment: canceled.")
    assert state(admin, intent) == "canceled"


async def test_a_rejection_carries_its_reason(
    service: Service, tenant: Tenant, admin: Person, payer: Agent, folder: Path
) -> None:
    intent = propose(tenant, transfer(payer))
    async with at_intents(service, folder, admin) as console:
        await console.sees("d Reject")
        await console.press("d")
        await console.sees("Reject this?")
        await console.press("tab")
        await console.write("not this month")
        await confirm(console, "Payment: rejected.")
    assert tenant.ok("GET", f"/intents/{intent['id']}")["reason"] == "not this month"


async def test_a_batch_shows_each_call_and_that_it_is_not_atomic(
    service: Service, tenant: Tenant, as_owner: Person, admin: Person, folder: Path
) -> None:
    agent = may_send(as_owner, tenant.agent(listing(APPROVE), agent_id="payer"))
    assert send(agent, pay(7), call(APPROVE, ADDRESS, 5)).status_code == 202
    async with at_intents(service, folder, admin) as console:
        await console.sees("Batch of calls", "agent payer")
        await console.press("tab", "end")
        await console.sees("not atomic on the chain", "Call 2", "function 0x095ea7b3")


async def test_a_failed_one_says_why(
    service: Service, tenant: Tenant, as_owner: Person, admin: Person, payer: Agent, folder: Path
) -> None:
    body = {"intentType": "wallet_update", "agentId": payer.id, "payload": {"name": "Treasury"}}
    intent = propose(as_owner, body)
    act(admin, intent, "authorize")
    tenant.ok("PATCH", f"/agents/{payer.id}", {"name": "Called otherwise"})
    async with at_intents(service, folder, admin) as console:
        await console.sees("Names of the agent", "authorised")
        await console.press("e")
        await console.sees("Execute this now?")
        await confirm(console, "Names of the agent: failed: the pane says why.")
        await console.press("v")
        await console.sees("what it was authorised against has changed since")


async def test_hostile_words_are_only_shown(service: Service, tenant: Tenant, admin: Person, folder: Path) -> None:
    hostile = "[red]\u202eevil\u001b[2J"
    body = {
        "intentType": "rpc",
        "createdByDisplayName": "[bold]the owner\u202e",
        "payload": {"method": "eth_call", "params": [hostile], "chainId": EVM_CHAIN},
    }
    propose(tenant, body)
    async with at_intents(service, folder, admin) as console:
        await console.sees("Question to a node", "[red]<U+202E>evil\\x1b[2J", "[bold]the owner<U+202E>")


async def test_a_tenant_key_and_a_read_only_console_decide_nothing(
    service: Service, tenant: Tenant, admin: Person, payer: Agent, folder: Path
) -> None:
    intent = propose(tenant, transfer(payer))
    async with at_intents(service, folder, tenant) as console:
        await console.sees("Payment")
        assert "a Authorise" not in console.flat
    async with at_intents(service, folder, admin, read_only=True) as console:
        await console.sees("Payment")
        await console.press("a")
        await console.pilot.pause(0.05)
        assert "Authorise this?" not in console.text
    assert state(tenant, intent) == "pending"
