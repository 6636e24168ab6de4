"""The time for which a signature over a document holds, from the document itself."""

import re
from typing import Any

import pytest

from tests.console.orders import MOST, TOKEN, TOKENS, US, allows, lines_of, order, pays
from words.orders.order import Known, Order
from words.orders.words import essentials
from words.shapes import Effect


def permit_order(*effects: Effect, label: str = "Permit") -> Order:
    return order(*(effects or (allows(label=label),)), kind="typed_data", to_address=TOKEN)


def ends(shown: Order, **message: Any) -> list[tuple[str, str | None]]:
    """Describe how long the signature holds."""
    lines = essentials(shown, Known(data={"primaryType": "Permit", "value": message}))
    return [
        (one.text, one.tone) for one in lines if re.search("can be used|[Tt]he permission|names no expiry", one.text)
    ]


@pytest.mark.parametrize("deadline", [MOST, "9999999999", "0x" + "f" * 64, 2**256 - 1])
def test_a_permit_without_an_end_says_so(deadline: object) -> None:
    assert ends(permit_order(), deadline=deadline) == [
        ("The signature can be used forever.", "warn"),
        ("Once used, the permission it grants does not expire: it stays until spent or revoked.", "warn"),
    ]


def test_a_permit_says_until_when_it_can_be_used() -> None:
    assert ends(permit_order(), deadline="1772452800")[0] == (
        "The signature can be used until 2026-03-02 12:00:00 UTC.",
        None,
    )


def test_of_permit2_both_ends_are_said() -> None:
    details = [{"expiration": "1772452800"}, {"expiration": "1772456400"}]

    assert ends(permit_order(label="PermitBatch"), details=details, sigDeadline="1772449200") == [
        ("The signature can be used until 2026-03-02 11:00:00 UTC.", None),
        ("The permission ends 2026-03-02 13:00:00 UTC.", None),
    ]


def test_an_authorization_says_from_when_it_can_be_used() -> None:
    shown = permit_order(pays(asset=TOKENS, label="TransferWithAuthorization"))

    assert ends(shown, validAfter="1772449200", validBefore="1772452800") == [
        ("The signature can be used from 2026-03-02 11:00:00 UTC until 2026-03-02 12:00:00 UTC.", None)
    ]


def test_an_expiry_of_zero_is_for_ever() -> None:
    assert ends(permit_order(), expiry="0")[0] == ("The signature can be used forever.", "warn")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            {"endTime": "1772452800"},
            "According to the document, the signature can be used until 2026-03-02 12:00:00 UTC.",
        ),
        (
            {"tree": [[{"endTime": "1"}, {"endTime": MOST}]]},
            "According to the document, the signature can be used forever.",
        ),
        ({"until": "1"}, "It names no expiry that is known here: the signature may be valid forever."),
    ],
    ids=["an end", "one of several without", "none"],
)
def test_the_expiry_of_unknown_typed_data_is_attributed_to_the_document(message: dict[str, Any], line: str) -> None:
    shown = permit_order(Effect("unread", None, "0", US, TOKEN, label="OrderComponents"))

    assert ends(shown, **message)[0][0] == line


def test_nothing_is_said_of_an_end_before_the_document_is_known() -> None:
    assert not any("signature can" in line for line in lines_of(permit_order(), Known(data=None)))


def test_the_chain_of_a_document_is_its_own_word() -> None:
    assert "The document says that it is for Ethereum." in lines_of(permit_order())
    assert "The document says that it is for chain 101." in lines_of(order(allows(), kind="typed_data", chain_id=101))
