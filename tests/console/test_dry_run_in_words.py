"""The result of a tried-out order, in words: on which chain it is."""

from typing import Any

import pytest

from console.rules.dry_run_in_words import data_of, dry_run_in_words, order_of
from console.wire.shapes_agents import Simulated
from tests.console.orders import THEM, TOKEN, TOKENS, US, allows, pays
from words.orders.order import Known
from words.shapes import Addresses, Agent, Effect
from words.texts.lines import Line

AGENT = Agent(id="careful", name="Careful", tenant_id="t", created_at="", wallet_addresses=Addresses(US, "1" * 32))


def lines_about(kind: str, request: dict[str, Any], *effects: Effect) -> list[Line]:
    """Describe the answer to an order that was tried out."""
    answer, asked = Simulated("queue", [], list(effects), [], []), {"kind": kind, "request": request}
    return dry_run_in_words(order_of(AGENT, asked, answer), answer, Known(data=data_of(asked)))


@pytest.mark.parametrize("chain", [1, "1", "0x1", "0x01"])
def test_a_document_s_chain_is_read_however_it_is_written(chain: object) -> None:
    request = {"domain": {"chainId": chain}, "types": {}, "primaryType": "Permit", "value": {}}

    lines = lines_about("typed_data", request, allows("5", label="Permit"))

    assert Line("The document says that it is for Ethereum.") in lines
    assert not any("another chain" in line.text for line in lines)


@pytest.mark.parametrize("domain", [{}, {"chainId": None}, {"chainId": "one"}, {"chainId": True}, "odd", None])
def test_a_document_without_a_chain_may_hold_on_any(domain: object) -> None:
    lines = lines_about("typed_data", {"domain": domain, "types": {}, "primaryType": "Permit", "value": {}})

    assert Line("The document names no chain: the permission may be valid on any chain.", "warn") in lines


def test_an_order_without_a_chain_is_for_the_service_s_own() -> None:
    lines = lines_about("evm", {"to": THEM, "value": "1500000000000000000"}, pays())

    assert Line("Sends 1.5 coins (1,500,000,000,000,000,000 wei) to") in lines
    assert Line("On the service's own chain.") in lines
    assert not any("no chain" in line.text.lower() for line in lines)


def test_a_token_tells_which_chain_is_the_service_s_own() -> None:
    lines = lines_about("evm", {"to": TOKEN, "value": "0"}, pays("5", asset=TOKENS))

    assert Line("On Ethereum.") in lines
    assert not any("another chain" in line.text for line in lines)


HEAD = "a.example wants you to sign in with your {} account:\n" + US + "\n\n"
TO_SITE = Effect("unread", label="sign-in: a.example", unknown=True)


@pytest.mark.parametrize(
    ("request_", "effect", "line"),
    [
        ({"chainFamily": "evm", "message": "hi"}, Effect("unread", label="message"), "It is for no one chain."),
        (
            {"chainFamily": "evm", "message": "hi", "chainId": 8453},
            Effect("unread", label="message"),
            "The agent says that it is for Base; such a signature is good on every chain.",
        ),
        (
            {"chainFamily": "evm", "message": "hi\nChain ID: 1"},
            Effect("unread", label="message"),
            "It is for no one chain.",
        ),
        (
            {"chainFamily": "evm", "message": HEAD.format("Ethereum") + "URI: a://a\nVersion: 1\nChain ID: 137"},
            TO_SITE,
            "It is for Polygon, by its own word.",
        ),
        (
            {"chainFamily": "solana", "message": HEAD.format("Solana") + "Chain ID: devnet"},
            TO_SITE,
            "It is for devnet, by its own word.",
        ),
        ({"chainFamily": "solana", "message": HEAD.format("Solana")}, TO_SITE, "It is for no one chain."),
    ],
    ids=["none", "typed", "no sign-in", "evm sign-in", "solana sign-in", "solana sign-in without"],
)
def test_a_message_is_for_the_chain_that_it_names(request_: dict[str, Any], effect: Effect, line: str) -> None:
    assert Line(line) in lines_about("message", request_, effect)


def test_a_message_that_was_typed_in_is_made_harmless() -> None:
    lines = lines_about(
        "message", {"chainFamily": "evm", "message": "a\nb\x1b[2J\u202e"}, Effect("unread", label="bytes")
    )

    assert [line.text for line in lines if "| " in line.text] == ["  | a\\n", "  | b\\x1b[2J<U+202E>"]
    assert all(line.text.isprintable() for line in lines)


def test_bytes_that_were_typed_in_are_shown_by_their_family_s_encoding() -> None:
    lines = lines_about("message", {"chainFamily": "solana", "raw": "/wA="}, Effect("unread", label="bytes"))

    assert Line("Bytes that are no text, 2 of them:", "bad") in lines
    assert Line("  ff00") in lines
