"""Trying out a typed-in order: what is said is what signing then does, and nothing is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.events import Paste
from textual.widgets import Input, TextArea

from console.rules.typed_order import BadField, amount, coin_of, field_of, question
from console.widgets.choice import Choice
from console.widgets.typed_field import TypedField
from tests.console.at_agents import at
from tests.fixtures.bitcoin import text
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, hangs_up, odd_api, passes_on
from tests.routes.vault.bitcoin import LISTED, SCOPE, payment

pytestmark = pytest.mark.long

ETHER = 10**18
# A chain without a node, so that fees are those of the table.
BASE = "8453"
DOCUMENT = (
    '{"domain": {"name": "Notes", "chainId": 31337}, "types": {"Note": [{"name": "text", "type": "string"}]}, '
    '"primaryType": "Note", "message": {"text": "hello"}}'
)
DECISIONS = {
    "sign": ("0.1", "It would be SIGNED now, without approval.", 200),
    "queue": ("0.6 ETH", "It would be QUEUED. It would be signed only after a person approves.", 202),
    "refuse": ("3000000000000000000 wei", "It would be REFUSED. No approval is possible.", 403),
}


@pytest.fixture(name="careful")
def careful_agent(tenant: Tenant) -> Agent:
    """An agent that may spend half a coin alone, and two a day."""
    return tenant.agent(
        rule("auto-approve-threshold", threshold=str(ETHER // 2), asset="evm:native"),
        rule("spending-limit", maxPerDay=str(2 * ETHER), asset="evm:native"),
        agent_id="careful",
    )


async def type_into(console: Driven, field: str, text: str) -> None:
    """Paste a text into a field, in place of what stands there."""
    line = console.one(TypedField, f"#field-{field}").query_one(Input)
    line.focus()
    await console.press("end", "ctrl+u")
    line.post_message(Paste(text))
    await console.until(lambda: line.value == text, field)


async def open_form(console: Driven) -> None:
    """The form, once it knows the service's own chain."""
    await console.sees("Rules of Agent careful", "2. Spending limit")
    await console.press("t")
    await console.sees("nothing is signed or written", "31337")


@pytest.mark.parametrize("decision", DECISIONS)
async def test_the_simulation_agrees_with_the_signature_that_follows(
    service: Service, tenant: Tenant, careful: Agent, folder: Path, pictures: SnapshotAssertion, decision: str
) -> None:
    value, sentence, status = DECISIONS[decision]
    theme = "light" if decision == "queue" else "dark"
    async with at("policies", service, folder, tenant, theme=theme) as console:
        await open_form(console)
        await type_into(console, "to", ADDRESS)
        await type_into(console, "value", value)
        await type_into(console, "chain", BASE)
        await console.press("enter")
        await console.sees(sentence, ADDRESS, "Limits")

        assert await console.picture() == pictures
    assert tenant.ok("GET", "/vault/careful/history") == []
    wei = {"sign": ETHER // 10, "queue": 6 * ETHER // 10, "refuse": 3 * ETHER}[decision]
    assert careful.sign(value=wei, chainId=8453).status_code == status


async def test_in_a_narrow_terminal_the_answer_lies_over_the_form_and_nothing_typed_is_lost(
    service: Service, tenant: Tenant, careful: Agent, folder: Path, pictures: SnapshotAssertion
) -> None:
    async with at("policies", service, folder, tenant, size=NARROW, read_only=True) as console:
        await open_form(console)
        await type_into(console, "to", ADDRESS)
        await type_into(console, "chain", BASE)
        await console.press("enter")
        await console.sees("It would be SIGNED now", "Change it (Enter)")
        assert await console.picture() == pictures
        await console.press("escape")

        await console.sees(ADDRESS, "Try (Enter)")


async def test_a_refusal_of_the_api_stands_at_its_field_and_the_input_stays(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await type_into(console, "to", "0x12")
        await type_into(console, "value", "0.5")
        await console.press("enter")
        await console.sees("request.to must be an EVM address: 0x and 40 hex digits")

        field = console.one(TypedField, "#field-to")
        assert "request.to" in str(field.query_one(".field-note").render())
        assert field.query_one(Input).has_focus
        assert (field.text, console.one(TypedField, "#field-value").text) == ("0x12", "0.5")


async def test_an_amount_is_said_back_in_both_units(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await type_into(console, "value", "0.5")
        await console.sees("= 0.5 ETH (500,000,000,000,000,000 wei)")

        await type_into(console, "value", "1,5")

        await console.sees("Write a number, in ETH, or with its unit: 0.5 ETH, 20 wei.")


async def test_typed_data_is_tried_by_a_viewer(service: Service, tenant: Tenant, careful: Agent, folder: Path) -> None:
    with closing(member(service, tenant, "viewer")) as viewer:
        async with at("policies", service, folder, viewer) as console:
            await open_form(console)
            await console.press("shift+tab", "right")
            console.one(TextArea).text = DOCUMENT
            await console.press("enter")

            await console.sees("It would be QUEUED", "Note")


async def test_a_message_is_tried_and_shown_letter_for_letter(
    service: Service, tenant: Tenant, careful: Agent, folder: Path, pictures: SnapshotAssertion
) -> None:
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await console.press("shift+tab", "right", "right")
        body = console.one(TextArea, "#body")
        body.text = f'{{"chainFamily": "evm", "message": "0x{"12" * 32}", "raw": "0x12"}}'
        await console.press("enter")
        await console.sees("! Send one of message and raw.")
        assert body.has_focus
        said = "I own this wallet, and nobody else does.\\nI pay \\u202e001."
        body.text = f'{{"chainFamily": "evm", "message": "{said}", "chainId": 8453}}'
        await console.press("enter")
        await console.sees(
            "It would be QUEUED", "| I own this wallet, and nobody else does.\\n", "| I pay <U+202E>001."
        )

        assert await console.picture() == pictures
    assert tenant.ok("GET", "/vault/careful/history") == []


async def test_a_psbt_is_tried_and_told_from_its_bytes(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = tenant.agent(LISTED, rule("spending-limit", maxPerDay="60000", asset="bitcoin"), agent_id="careful")
    psbt = payment(agent, 50_000)
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await console.press("shift+tab", "left")
        await type_into(console, "scope", SCOPE)
        await type_into(console, "psbt", text(psbt)[:-8])
        await console.press("enter")
        await console.sees("! psbtBase64: ", "ends too early")
        await type_into(console, "psbt", text(psbt))
        await console.press("enter")
        await console.sees("It would be SIGNED now", "Fee rate: at most", "On Bitcoin regtest")


async def test_a_document_that_is_no_json_stays_and_is_explained(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await console.press("shift+tab", "right", "tab")
        await console.write("no json")
        await console.press("enter")
        await console.sees("Not a JSON object", "Not sent: correct the marked field.")

        assert console.one(TextArea).text == "no json"


async def test_a_frozen_agent_is_said_to_be_frozen(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    tenant.ok("POST", "/agents/careful/freeze", {})

    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await type_into(console, "to", ADDRESS)
        await console.press("enter")

        await console.sees("no order is signed until it is unfrozen")


@pytest.mark.parametrize(
    ("text", "chain", "wei"),
    [
        ("", "1", 0),
        ("1", "1", ETHER),
        ("0.5", "1", ETHER // 2),
        ("0.5 eth", "1", ETHER // 2),
        ("20 wei", "1", 20),
        ("3 gwei", "1", 3 * 10**9),
        ("0.000000000000000001", "", 1),
        ("2 BNB", "56", 2 * ETHER),
        ("7ETH", "", 7 * ETHER),
        (f"{2**256 - 1} wei", "1", 2**256 - 1),
    ],
)
def test_an_amount_is_read_exactly(text: str, chain: str, wei: int) -> None:
    assert amount("value", text, coin_of("evm", chain)) == wei


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("1,5", "1"),
        ("1e18", "1"),
        ("-1", "1"),
        ("1.5 wei", "1"),
        ("0.0000000000000000001", "1"),
        ("1 SOL", "1"),
        ("1 BNB", "1"),
        ("0x10", "1"),
        (".5", "1"),
        ("1 2", "1"),
        ("٣", "1"),
        ("1" * 81, "1"),
    ],
)
def test_an_amount_that_could_be_misread_is_not_read(text: str, chain: str) -> None:
    with pytest.raises(BadField):
        amount("value", text, coin_of("evm", chain))


def test_a_solana_order_has_the_api_s_names() -> None:
    given = {
        "transaction": " AAAA ",
        "recipient": "11111111111111111111111111111111",
        "declared": "0.5",
        "cluster": "102",
    }

    assert question("solana", given) == {
        "kind": "solana",
        "request": {
            "transaction": "AAAA",
            "to": "11111111111111111111111111111111",
            "value": "500000000",
            "chainId": 102,
        },
    }


def test_a_message_is_asked_about_as_it_is_signed() -> None:
    asked = question("message", {"body": ' {"chainFamily": "solana", "raw": "aGVsbG8h", "chainId": 102}\n'})

    assert asked == {"kind": "message", "request": {"chainFamily": "solana", "raw": "aGVsbG8h", "chainId": 102}}


@pytest.mark.parametrize("body", ["", "hello", '["evm", "hello"]', '{"chainFamily": "evm"', "[" * 100_000])
def test_a_text_that_is_no_body_of_a_message_is_laid_at_its_field(body: str) -> None:
    with pytest.raises(BadField) as bad:
        question("message", {"body": body})
    assert bad.value.field == "body"


def test_a_psbt_has_the_api_s_names_and_its_network() -> None:
    asked = question("bitcoin", {"scope": "bitcoin:regtest:p2wpkh:0:0:0 ", "psbt": " cHNidP8= "})

    assert asked == {
        "kind": "bitcoin",
        "request": {"walletScope": "bitcoin:regtest:p2wpkh:0:0:0", "psbtBase64": "cHNidP8="},
    }


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("evm", {"fields": ["request.chainId"]}, "chain"),
        ("evm", {"code": "unknown_chain"}, "chain"),
        ("evm", {"fields": ["request.data"]}, "data"),
        ("typed_data", {"fields": ["request.types.Note[0]"]}, "document"),
        ("message", {"fields": ["message", "raw"], "code": "bad_message"}, "body"),
        ("message", {"fields": ["request.chainFamily"]}, "body"),
        ("message", {"code": "message_not_ours"}, "body"),
        ("solana", {"code": "declared_mismatch"}, "declared"),
        ("solana", {"fields": ["request.to"]}, "recipient"),
        ("bitcoin", {"code": "fee_above_cap"}, "psbt"),
        ("bitcoin", {"fields": ["request.walletScope"]}, "scope"),
        ("evm", {"fields": "odd"}, None),
        ("evm", {"fields": [5, None]}, None),
        ("evm", {}, None),
    ],
)
def test_a_refusal_is_laid_at_its_field(kind: str, data: dict[str, Any], field: str | None) -> None:
    assert field_of(kind, data) == field


async def test_an_answer_goes_when_something_else_is_typed(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with at("policies", service, folder, tenant) as console:
        await open_form(console)
        await type_into(console, "to", ADDRESS)
        await type_into(console, "value", "0.1")
        await console.press("enter")
        await console.sees("It would be SIGNED now")

        await type_into(console, "value", "0.6")

        await console.sees_no("It would be SIGNED now")
        await console.sees("The input has changed.")


class Held:
    """Passes requests on once a test says so."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await self.go_on.wait()
        await passes_on(api, request, writer)


@asynccontextmanager
async def asking(
    service: Service, tenant: Tenant, folder: Path, size: tuple[int, int], to: str = ADDRESS
) -> AsyncIterator[tuple[Driven, Held]]:
    """A form that has asked for 0.1 to be paid, and waits for the answer."""
    held = Held()
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key, size=size) as console:
        await console.sees("1 Approvals")
        await console.press("4")
        await open_form(console)
        await type_into(console, "to", to)
        await type_into(console, "value", "0.1")
        api.does(held, "/vault/careful/simulate")
        await console.press("enter")
        await console.until(lambda: api.at("/vault/careful/simulate"), "the question")
        yield console, held


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_an_answer_to_something_else_than_is_typed_in_now_is_not_shown(
    service: Service, tenant: Tenant, careful: Agent, folder: Path, size: tuple[int, int]
) -> None:
    async with asking(service, tenant, folder, size) as (console, held):
        await type_into(console, "value", "500")

        held.go_on.set()
        await console.sees("The input has changed. Press Enter to simulate it.")
        assert "SIGNED" not in console.text

        await console.press("enter")
        await console.sees("It would be REFUSED.")


async def test_a_refusal_is_not_shown_at_a_field_that_was_changed_since(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with asking(service, tenant, folder, WIDE, to="0x12") as (console, held):
        console.one(Choice).focus()
        await console.press("left")
        await console.sees("bitcoin:mainnet:p2wpkh")

        held.go_on.set()

        await console.sees("The input has changed. Press Enter to simulate it.")
        assert console.one(Choice).has_focus


async def test_of_an_answer_that_is_lost_it_is_not_said_that_anything_may_have_happened(
    service: Service, tenant: Tenant, careful: Agent, folder: Path
) -> None:
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key) as console:
        await console.sees("1 Approvals")
        await console.press("4")
        await open_form(console)
        await type_into(console, "to", ADDRESS)
        api.does(hangs_up, "/vault/careful/simulate")
        await console.press("enter")

        await console.sees("Enter asks again.")
        assert "happen" not in console.text
