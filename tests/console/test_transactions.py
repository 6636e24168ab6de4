"""Transactions of one agent or of all: page by page, filtered, and what became of each."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from console.orders.merged import Merged
from console.screens.transactions import PAGE
from console.widgets.listing import Listing
from tests.console.orders import earlier
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.server import Service
from tests.outside.odd_api import changing, odd_api
from words.orders.outcome_lines import outcome_lines, state
from words.shapes import Transaction, TransactionPage
from words.texts.moments import clock, moment

pytestmark = pytest.mark.long

FEES = {"gasLimit": "100000", "maxFeePerGas": "2000000000", "maxPriorityFeePerGas": "1000000000"}


def agent_named(tenant: Tenant, name: str, *rules: dict[str, object]) -> Agent:
    made = tenant.ok("POST", "/agents", {"id": name.lower(), "name": name})
    tenant.ok("PUT", f"/agents/{made['id']}/policies", [rule("auto-approve-threshold", threshold="100"), *rules])
    return tenant.as_agent(made)


async def go_there(console: Driven) -> None:
    """Go to the transactions."""
    await console.until(lambda: console.app.current_mode == "approvals", "the queue")
    await console.press("3")
    await console.sees("newest first")


def rows_of(console: Driven) -> Sequence[Transaction]:
    rows: Sequence[Transaction] = console.one(Listing, "#transactions").rows
    return rows


async def test_the_transactions_of_all_agents_stand_in_one_list(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    alice, bob = agent_named(tenant, "Alice"), agent_named(tenant, "Bob", rule("rate-limit", maxTxPerHour=1))
    for agent, value in ((alice, 1), (bob, 2), (bob, 3), (alice, 500)):
        agent.sign(to=OTHER_ADDRESS, value=value, **FEES)
    made = tenant.ok("GET", "/vault/alice/transactions")["transactions"]
    newest = moment(made[0]["createdAt"])
    assert newest
    now = newest + timedelta(minutes=5)

    async with driving(service.url, folder, key=tenant.key, now=lambda: now) as console:
        await go_there(console)
        await console.sees("4 transactions of all agents", "It waits for a person.", "signed: sends it", "Details")

        assert [row.agent_id for row in rows_of(console)] == ["alice", "bob", "bob", "alice"]
        assert [row.status for row in rows_of(console)] == ["pending_approval", "rejected", "signed", "signed"]
        random = [text for one in made for text in (one["id"], clock(moment(one["createdAt"])).removesuffix(" UTC"))]
        assert await console.picture(*random) == pictures


async def test_further_pages_load_while_scrolling(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = agent_named(tenant, "Alice")
    for value in range(PAGE + 5):
        agent.sign(value=value % 50)

    async with driving(service.url, folder, key=tenant.key, size=(140, 24)) as console:
        await go_there(console)
        await console.until(lambda: len(rows_of(console)) == PAGE, "the first page")
        await console.press("end")

        await console.until(lambda: len(rows_of(console)) == PAGE + 5, "the rest")


async def test_one_of_the_agents_is_chosen(service: Service, tenant: Tenant, folder: Path) -> None:
    # What is typed is looked for in addresses too, and none has this character.
    alice, bob = agent_named(tenant, "Alice"), agent_named(tenant, "B_ob")
    alice.sign(value=1)
    bob.sign(value=2)

    async with driving(service.url, folder, key=tenant.key) as console:
        await go_there(console)
        await console.sees("2 transactions")
        await console.press("c")
        await console.sees("Whose transactions?", "2 agents")
        await console.press("slash")
        await console.write("b_ob")
        await console.press("enter", "enter")
        await console.sees("1 transaction of B_ob (b_ob)")

        assert [row.agent_id for row in rows_of(console)] == ["b_ob"]


async def test_a_filter_asks_the_service(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = agent_named(tenant, "Alice")
    agent.sign(value=1)
    agent.sign(to=OTHER_ADDRESS, value=2)
    agent.sign(value=500)

    async with driving(service.url, folder, key=tenant.key) as console:
        await go_there(console)
        await console.sees("3 transactions")
        await console.press("slash")
        console.one(Input).value = f"status:waiting to:{ADDRESS}"
        await console.press("enter")
        await console.sees("1 transaction of")

        assert [row.value for row in rows_of(console)] == ["500"]


BAD_FILTERS = (
    ("status:lost", "status: lost is not one of waiting"),
    ("colour:red", "colour:red is not a filter here"),
    # This one only the service can judge.
    ("chain:many", "chainId"),
)


async def test_a_filter_that_cannot_be_is_said_and_stays(service: Service, tenant: Tenant, folder: Path) -> None:
    agent_named(tenant, "Alice").sign(value=1)

    async with driving(service.url, folder, key=tenant.key) as console:
        await go_there(console)
        await console.sees("1 transaction of")
        await console.press("slash")
        for line, sentence in BAD_FILTERS:
            console.one(Input).value = line
            await console.press("enter")
            await console.sees(sentence, line)
            await console.press("slash")


async def test_new_transactions_come_in_by_themselves_on_reload(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = agent_named(tenant, "Alice")
    agent.sign(value=1)

    async with driving(service.url, folder, key=tenant.key) as console:
        await go_there(console)
        await console.sees("1 transaction of")
        agent.sign(value=2)
        await console.press("r")

        await console.sees("2 transactions of")


async def test_the_details_pane_follows_the_state_of_the_transaction(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent_named(tenant, "Alice").sign(value=1)

    async with odd_api(service.url) as odd, driving(odd.url, folder, key=tenant.key, every=0.2) as console:
        await go_there(console)
        await console.sees("It was signed", "Details")
        odd.does(changing(rb'"status":"signed"', b'"status":"confirmed"'), "/vault/alice/transactions")

        await console.sees("It was confirmed by the chain.", "Details")


def test_the_outcome_is_shown_with_its_times() -> None:
    done = earlier(
        1,
        tx_hash="0x" + "ab" * 32,
        signed_at="2026-02-01T12:00:01Z",
        broadcast_at="2026-02-01T12:00:02Z",
        confirmed_at="2026-02-01T12:00:30Z",
        replaces_tx_id="e-0",
    )

    assert [one.text for one in outcome_lines(done)] == [
        "It was confirmed by the chain.",
        "hash on the chain",
        f"  0x{'ab' * 32}",
        "replaces the transaction",
        "  e-0",
        "signed       2026-02-01 12:00:01 UTC",
        "sent         2026-02-01 12:00:02 UTC",
        "confirmed    2026-02-01 12:00:30 UTC",
    ]


def test_a_payment_says_by_which_transaction_it_was_taken() -> None:
    lines = outcome_lines(earlier(1, settled_by="0x" + "cd" * 32))

    assert [one.text for one in lines][1:3] == ["taken by whom it pays in", f"  0x{'cd' * 32}"]


def test_a_failed_transaction_says_why() -> None:
    lines = outcome_lines(earlier(1, status="failed", status_detail="execution_reverted"))

    assert [one.text for one in lines] == [
        "It failed on the chain.",
        "  because: execution_reverted",
    ]
    assert lines[0].tone == "bad"


@pytest.mark.parametrize(
    ("detail", "word", "sentence"),
    [
        ("denied", "denied", "It was denied by a person: it was not signed."),
        ("approval_expired", "expired", "It was expired: not decided in time, so it was not signed."),
        (None, "refused", "It was refused by a rule: it was not signed."),
    ],
    ids=["by-a-person", "by-nobody", "by-a-rule"],
)
def test_the_source_of_a_refusal_is_told_apart(detail: str | None, word: str, sentence: str) -> None:
    row = earlier(1, status="rejected", status_detail=detail)

    assert state(row.status, row.status_detail) == (word, "quiet")
    assert [line.text for line in outcome_lines(row)] == [sentence]


def test_an_order_that_a_person_denied_says_why() -> None:
    lines = outcome_lines(earlier(1, status="rejected", status_detail="denied", reason="no\ninvoice"))

    assert [one.text for one in lines] == [
        "It was denied by a person: it was not signed.",
        '  because: "no invoice"',
    ]


def page_of(rows: Sequence[Transaction], offset: int, size: int) -> TransactionPage:
    return TransactionPage(list(rows[offset : offset + size]), len(rows))


LISTS = st.lists(st.lists(st.integers(1, 28), max_size=12, unique=True), min_size=1, max_size=4)


@given(LISTS, st.integers(1, 5))
def test_the_one_list_has_no_hole_however_far_it_is_loaded(numbers: list[list[int]], size: int) -> None:
    of = {
        f"a{place}": [earlier(number, reference_id=str(place)) for number in sorted(found, reverse=True)]
        for place, found in enumerate(numbers)
    }
    # Ids are unique over agents.
    of = {agent: [_of(row, agent) for row in rows] for agent, rows in of.items()}
    every = sorted((row for rows in of.values() for row in rows), key=lambda row: row.created_at, reverse=True)
    merged = Merged(list(of))
    for agent, rows in of.items():
        merged.take(agent, page_of(rows, 0, size), 0)

    while True:
        shown = merged.rows()
        assert [row.created_at for row in shown] == [row.created_at for row in every[: len(shown)]]
        if not (wanted := merged.next()):
            break
        for agent, offset in wanted:
            merged.take(agent, page_of(of[agent], offset, size), offset)

    assert {row.id for row in merged.rows()} == {row.id for row in every}


def test_a_newest_page_without_overlap_restarts_the_list() -> None:
    merged = Merged(["a"])
    merged.take("a", TransactionPage([earlier(2), earlier(1)], 3), 0)
    merged.take("a", TransactionPage([earlier(9), earlier(8)], 9), 0)

    assert [row.id for row in merged.rows()] == ["e-9", "e-8"]


def _of(row: Transaction, agent: str) -> Transaction:
    changed = {name: getattr(row, name) for name in row.__struct_fields__}
    return Transaction(**changed | {"id": f"{agent}-{row.id}", "agent_id": agent})
