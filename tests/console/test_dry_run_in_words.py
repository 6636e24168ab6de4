"""What a tried-out order would come to, in words: on which chain it is."""

from typing import Any

import pytest

from console.orders.order import Known
from console.rules.dry_run_in_words import dry_run_in_words, order_of
from console.texts.lines import Line
from console.wire.shapes import Addresses, Agent, Effect
from console.wire.shapes_agents import Simulated
from tests.console.orders import THEM, TOKEN, TOKENS, US, allows, pays

AGENT = Agent(id="careful", name="Careful", tenant_id="t", created_at="", wallet_addresses=Addresses(US, "1" * 32))


def answered(kind: str, request: dict[str, Any], *effects: Effect) -> list[Line]:
    """What is said of an order that was tried out."""
    answer = Simulated("queue", [], list(effects), [], [])
    return dry_run_in_words(order_of(AGENT, {"kind": kind, "request": request}, answer), answer, Known())


@pytest.mark.parametrize("chain", [1, "1", "0x1", "0x01"])
def test_a_document_s_chain_is_read_however_it_is_written(chain: object) -> None:
    request = {"domain": {"chainId": chain}, "types": {}, "primaryType": "Permit", "value": {}}

    lines = answered("typed_data", request, allows("5", label="Permit"))

    assert Line("The document says that it is for Ethereum.") in lines
    assert not any("another chain" in line.text for line in lines)


@pytest.mark.parametrize("domain", [{}, {"chainId": None}, {"chainId": "one"}, {"chainId": True}, "odd", None])
def test_a_document_without_a_chain_may_hold_on_any(domain: object) -> None:
    lines = answered("typed_data", {"domain": domain, "types": {}, "primaryType": "Permit", "value": {}})

    assert Line("The document names no chain: the permission may be valid on any chain.", "warn") in lines


def test_an_order_without_a_chain_is_for_the_service_s_own() -> None:
    lines = answered("evm", {"to": THEM, "value": "1500000000000000000"}, pays())

    assert Line("Sends 1.5 coins (1,500,000,000,000,000,000 wei) to") in lines
    assert Line("On the service's own chain.") in lines
    assert not any("no chain" in line.text.lower() for line in lines)


def test_a_token_tells_which_chain_is_the_service_s_own() -> None:
    lines = answered("evm", {"to": TOKEN, "value": "0"}, pays("5", asset=TOKENS))

    assert Line("On Ethereum.") in lines
    assert not any("another chain" in line.text for line in lines)
