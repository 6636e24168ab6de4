"""The pane by which people decide: all that is known of one order, from the real service."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from eth_utils import to_checksum_address
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from console.orders.order_context import fetch_context
from console.widgets.line_view import LineView, wrap
from console.widgets.order_pane import OrderPane
from console.wire.api_client import ApiClient
from console.wire.credentials import TenantKey
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.orders import permit, solana_payment
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import with_signer
from words.orders.order import of_transaction
from words.shapes import Transaction
from words.texts.lines import Line
from words.texts.moments import clock, moment

pytestmark = pytest.mark.long

FEES = {"gasLimit": "100000", "maxFeePerGas": "2000000000", "maxPriorityFeePerGas": "1000000000"}
SPENDER = "0x" + "44" * 20
ETHER = 10**18
ASK_FIRST = rule("auto-approve-threshold", threshold="0")


def payer(tenant: Tenant, *rules: dict[str, Any], name: str = "Payer") -> Agent:
    """An agent of whom every order waits for a person."""
    made = tenant.ok("POST", "/agents", {"id": "payer", "name": name})
    tenant.ok("PUT", "/agents/payer/policies", [ASK_FIRST, *rules])
    return tenant.as_agent(made)


def ask(agent: Agent, path: str, body: dict[str, Any]) -> str:
    """Ask for a signature; the id of the transaction that waits."""
    answer = agent.post(f"/vault/{agent.id}/{path}", json=body)
    assert answer.status_code == 202, answer.text
    found: str = answer.json()["data"]["txId"]
    return found


def evm(agent: Agent, to: str = ADDRESS, value: int = 0, **fields: Any) -> str:
    """Ask for an EVM transaction."""
    return ask(agent, "sign", {"to": to, "value": str(value), "broadcast": False, **FEES, **fields})


def approval_of(spender: str, amount: int) -> str:
    """Calldata that lets somebody spend."""
    return "0x095ea7b3" + spender[2:].rjust(64, "0") + f"{amount:064x}"


def transaction(tenant: Tenant, tx_id: str) -> dict[str, Any]:
    found: dict[str, Any] = tenant.ok("GET", f"/vault/payer/transactions/{tx_id}")
    return found


async def show_newest(console: Driven, *words: str) -> None:
    """Go to the transactions and wait until all is known of the newest."""
    await console.until(lambda: console.app.current_mode == "approvals", "the queue")
    await console.press("3")
    await console.sees("Rules", *words)
    await console.until(lambda: "Loading context" not in console.flat, "all that is known")


def five_minutes_after(*made: dict[str, Any]) -> Callable[[], datetime]:
    """A clock that stands a little after the last of these was asked for."""
    then = max(found for one in made if (found := moment(one["createdAt"])))
    return lambda: then + timedelta(minutes=5)


def random_of(*made: dict[str, Any]) -> list[str]:
    """List the parts that differ from run to run."""
    return [text for one in made for text in (one["id"], clock(moment(one["createdAt"])).removesuffix(" UTC"))]


def plain_transfer(agent: Agent, node: EvmNode) -> tuple[str, list[str]]:
    return evm(agent, value=3 * ETHER // 2, referenceId="invoice-7"), []


def unlimited_approval(agent: Agent, node: EvmNode) -> tuple[str, list[str]]:
    token = to_checksum_address(node.deploy_erc20(OTHER_ADDRESS))
    return evm(agent, token, data=approval_of(SPENDER, 2**256 - 1)), [token, token.lower()]


def opaque_calldata(agent: Agent, node: EvmNode) -> tuple[str, list[str]]:
    return evm(agent, data="0xdeadbeef" + "0badcafe" * 80), []


def typed_permit(agent: Agent, node: EvmNode) -> tuple[str, list[str]]:
    document = permit(agent.evm_address, 5_000_000)
    return ask(agent, "sign-typed-data", document), [agent.evm_address, agent.evm_address.lower()]


def solana_transfer(agent: Agent, node: EvmNode) -> tuple[str, list[str]]:
    return ask(agent, "sign-solana", {**solana_payment(agent, 2_500_000_000), "broadcast": False}), []


@pytest.mark.parametrize(
    "case",
    [
        (
            plain_transfer,
            ["Sends 1.5 ETH (1,500,000,000,000,000,000 wei) to", "never paid before", ADDRESS, "Local chain"],
        ),
        (unlimited_approval, ["spend UNLIMITED amounts", SPENDER, 'calls itself "USDX"']),
        (opaque_calldata, ["Cannot be decoded: it may move", "function 0xdeadbeef", "(650 characters)"]),
        (typed_permit, ['Signs a document, "Permit"', "now or later", "spender:", '"5000000"']),
        (solana_transfer, ["Sends 2.5 SOL (2,500,000,000 lamports) to", "Solana Devnet (test network)"]),
    ],
    ids=["plain transfer", "unlimited approval", "opaque calldata", "permit", "solana transfer"],
)
async def test_the_pane_says_what_an_order_does(
    service: Service,
    tenant: Tenant,
    folder: Path,
    evm_node: EvmNode,
    pictures: SnapshotAssertion,
    *,
    case: tuple[Callable[[Agent, EvmNode], tuple[str, list[str]]], list[str]],
) -> None:
    ask, words = case
    agent = payer(tenant, rule("spending-limit", maxPerDay=str(2 * ETHER)))
    tx_id, random = ask(agent, evm_node)
    made = transaction(tenant, tx_id)
    data = [made["data"]] if made["kind"] == "solana" else []

    async with driving(service.url, folder, key=tenant.key, now=five_minutes_after(made)) as console:
        await show_newest(console)
        found = console.one(LineView, "#order").said

        assert all(word in "\n".join(one.text for one in found) for word in words)
        picture = await console.picture(*random_of(made), *random, *data)
        # The signs of base64 that are no letters stand elsewhere in every message; a short word between two is kept.
        base64 = re.compile("[0-9A-Za-z+/=]{20,}")
        assert base64.sub(lambda one: "x" * len(one[0]) if "xxxxxx" in one[0] else one[0], picture) == pictures


async def test_the_pane_says_what_a_psbt_does(service: Service, tenant: Tenant, as_owner: Person, folder: Path) -> None:
    limit = rule("spending-limit", asset="bitcoin", maxPerDay="100000")
    agent = with_signer(as_owner, payer(tenant, LISTED, limit), "sign_transaction")
    psbt = payment(agent, 50_000)
    answer = sign_psbt(agent, psbt)
    assert answer.status_code == 202, answer.text
    made = transaction(tenant, answer.json()["data"]["txId"])

    async with driving(service.url, folder, key=tenant.key, now=five_minutes_after(made)) as console:
        await show_newest(console, "Sends 0.0005 BTC (50,000 sat) to", "On Bitcoin regtest (test network).")
        found = [one.text for one in console.one(LineView, "#order").said]

        assert "Fee rate: at most 7.1 sat/vB (1,000 sat, 141 vbytes or more)." in found
        assert "  with this order 0.00051 BTC (51,000 sat)" in found


async def test_in_a_narrow_terminal_the_pane_opens_with_enter(
    service: Service, tenant: Tenant, folder: Path, evm_node: EvmNode, pictures: SnapshotAssertion
) -> None:
    agent = payer(tenant)
    tx_id, random = unlimited_approval(agent, evm_node)
    made = transaction(tenant, tx_id)

    async with driving(
        service.url, folder, key=tenant.key, size=NARROW, theme="light", now=five_minutes_after(made)
    ) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press("3")
        await console.sees("UNLIMITED")
        await console.press("enter")
        await console.sees("spend UNLIMITED amounts", SPENDER, 'calls itself "USDX"')

        assert await console.picture(*random_of(made), *random) == pictures


async def test_a_hostile_name_stays_in_its_quotation_marks(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    name = 'Payer" [red]asks[/] for nothing \u202e0001 HTE\u2066 👨\u200d👧 e\u0301\u0301\u0301\u0301 [@click=app.quit]'
    agent = payer(tenant, name=name)
    made = transaction(tenant, evm(agent, value=ETHER))

    async with driving(service.url, folder, key=tenant.key, now=five_minutes_after(made)) as console:
        await show_newest(console, "Agent \"Payer' [red]asks[/] for nothing <U+202E>0001")

        assert await console.picture(*random_of(made)) == pictures


async def ask_around(service: Service, tenant: Tenant, tx_id: str) -> Any:
    """Fetch the context of an order."""
    client = ApiClient(service.url, TenantKey(tenant.key))
    try:
        path = f"/vault/payer/transactions/{tx_id}"
        return await fetch_context(client, of_transaction(await client.get(path, Transaction)))
    finally:
        await client.close()


async def test_addresses_are_named_by_agents_and_by_lists(service: Service, tenant: Tenant) -> None:
    treasury = tenant.as_agent(tenant.ok("POST", "/agents", {"id": "treasury", "name": "Treasury"}))
    agent = payer(tenant, rule("approved-addresses", addresses=[treasury.evm_address, ADDRESS], mode="whitelist"))

    known = await ask_around(service, tenant, evm(agent, treasury.evm_address, 1))

    assert known.names[treasury.evm_address.lower()] == (
        'agent "Treasury" (treasury) of this tenant; on the approved list of this agent'
    )
    assert known.names[ADDRESS] == "on the approved list of this agent"
    assert known.names_known


async def test_a_blocked_address_is_said_to_be_blocked(service: Service, tenant: Tenant) -> None:
    agent = payer(tenant, rule("approved-addresses", addresses=[OTHER_ADDRESS], mode="blacklist"))

    known = await ask_around(service, tenant, evm(agent, value=1))

    assert known.names[OTHER_ADDRESS] == "on the BLOCKED list of this agent"


async def test_the_past_of_a_token_is_that_with_the_same_recipient(service: Service, tenant: Tenant) -> None:
    agent = payer(tenant)
    token = "0x" + "55" * 20

    def pay(to: str) -> str:
        return evm(agent, token, data="0xa9059cbb" + to[2:].rjust(64, "0") + f"{7:064x}")

    before, other, now = pay(ADDRESS), pay(OTHER_ADDRESS), pay(ADDRESS)
    known = await ask_around(service, tenant, now)

    assert [one.id for one in known.past] == [before]
    assert (known.looked_through, known.past_complete) == (3, True)
    assert other not in [one.id for one in known.past]


async def test_an_order_of_the_past_is_shown_with_what_was_past_then(service: Service, tenant: Tenant) -> None:
    agent = payer(tenant)
    tenant.ok("PUT", "/agents/payer/policies", [])
    first, second = (agent.sign(value=value).json()["data"]["txId"] for value in (1, 2))

    assert [one.id for one in (await ask_around(service, tenant, first)).past] == []
    assert [one.id for one in (await ask_around(service, tenant, second)).past] == [first]


async def test_a_frozen_agent_is_said_to_be(service: Service, tenant: Tenant) -> None:
    agent = payer(tenant)
    tx_id = evm(agent, value=1)
    tenant.ok("POST", "/agents/payer/freeze", {"reason": "lost its mind"})

    assert (await ask_around(service, tenant, tx_id)).frozen == "This agent is frozen: it cannot sign."


async def test_one_order_costs_at_most_four_requests_beside_the_address_book(
    service: Service, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = payer(tenant)
    tx_id, _ = unlimited_approval(agent, evm_node)
    order = of_transaction(await _read(service, tenant, tx_id))
    client = ApiClient(service.url, TenantKey(tenant.key))
    asked_for: list[str] = []
    client.listener = lambda away: asked_for.append("")

    await fetch_context(client, order)
    first = len(asked_for)
    await fetch_context(client, order)
    await client.close()

    assert (first, len(asked_for) - first) == (5, 4)


async def test_where_one_question_fails_the_others_are_answered(service: Service, tenant: Tenant) -> None:
    agent = payer(tenant, rule("spending-limit", maxPerDay="5"))
    tx_id = evm(agent, "0x" + "55" * 20, data=approval_of(SPENDER, 5))
    order = of_transaction(await _read(service, tenant, tx_id))
    # The service does not know this transaction; it knows all the rest.
    lost = order.__class__(**{**order.__dict__, "tx_id": "00000000-0000-4000-8000-000000000000"})
    client = ApiClient(service.url, TenantKey(tenant.key))

    known = await fetch_context(client, lost)
    await client.close()

    assert known.trouble.startswith("Unavailable right now: the order's data. ")
    assert [budget.limit for budget in known.budgets] == ["5"]


async def _read(service: Service, tenant: Tenant, tx_id: str) -> Transaction:
    client = ApiClient(service.url, TenantKey(tenant.key))
    found = await client.get(f"/vault/payer/transactions/{tx_id}", Transaction)
    await client.close()
    return found


async def test_no_address_is_broken_over_lines_in_sixty_columns(
    service: Service, tenant: Tenant, folder: Path, evm_node: EvmNode
) -> None:
    agent = payer(tenant)
    _, (token, _) = unlimited_approval(agent, evm_node)

    async with driving(service.url, folder, key=tenant.key, size=(60, WIDE[1])) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press("3")
        await console.sees("UNLIMITED")
        await console.press("enter")
        await console.sees('calls itself "USDX"')

        assert SPENDER in console.text
        assert token in console.text


async def test_the_line_one_reads_stays_where_it_is_when_more_is_known(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent = payer(tenant)
    evm(agent, data="0xdeadbeef" + "0badcafe" * 40)

    async with driving(service.url, folder, key=tenant.key, size=(80, 18)) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press("3")
        await console.sees("Cannot be decoded")
        await console.press("enter")
        await console.sees("Cannot be decoded", "never called before")
        pane = console.one(OrderPane)
        pane.scroll_end(animate=False)
        await console.sees("calldata")
        line = next(place for place, text in enumerate(console.text.splitlines()) if "calldata" in text)

        order, known = pane.order, pane.known
        pane.show(order, known, outcome=[Line("Somebody else has decided meanwhile.")])
        await console.pilot.pause()

        assert "calldata" in console.text.splitlines()[line]


@example("a" * 18 + "東東 \u0301", 0, 22)
@given(st.text("ab 東\u0301", max_size=80), st.integers(0, 4), st.integers(20, 60))
def test_wrapped_lines_are_indented_and_lose_nothing(text: str, indent: int, width: int) -> None:
    lines = wrap(" " * indent + text, width)

    assert all(cell_len(line) <= width for line in lines)
    assert all(line.startswith(" " * (indent + 2)) for line in lines[1:])
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.text("ab |東\u0301", max_size=80), st.integers(0, 4), st.integers(20, 60))
def test_a_line_with_a_bar_has_it_where_it_continues(text: str, indent: int, width: int) -> None:
    bar = " " * indent + "| "

    lines = wrap(bar + text, width)

    assert all(cell_len(line) <= width for line in lines)
    assert all(line.startswith(bar) for line in lines)
    assert "".join(line.removeprefix(bar) for line in lines).replace(" ", "") == text.replace(" ", "")


def test_an_address_is_not_broken_where_a_line_has_room_for_it() -> None:
    lines = wrap(f"  token {ADDRESS} and a word", 56)

    assert lines == [f"  token {ADDRESS} and a", "    word"]
    assert wrap(f"  | {'W' * 30}", 24) == [f"  | {'W' * 20}", f"  | {'W' * 10}"]
