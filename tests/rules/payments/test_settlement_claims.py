"""The part of a signed payment that is followed: whatever is no payment is none, and stops no other."""

from typing import Any

import msgspec

from custody.chains.evm.address import checksum
from custody.chains.evm.selectors import PERMIT2
from scheduler.tx_tracking.evm_settlement_rules import claim_of, state_question
from tests.fixtures.each import each

WALLET, SELLER, TOKEN = (checksum("0x" + f"{number}" * 40) for number in (1, 2, 3))


def order(primary_type: str, contract: str, **value: object) -> dict[str, Any]:
    """A document as the signer keeps it."""
    return {"domain": {"verifyingContract": contract}, "types": {}, "primaryType": primary_type, "value": value}


def transfer(**changed: object) -> dict[str, Any]:
    """A payment by EIP-3009."""
    usual = {"from": WALLET, "to": SELLER, "value": "60", "validBefore": "99", "nonce": "0x" + "ab" * 32}
    return order("TransferWithAuthorization", TOKEN, **(usual | changed))


def permit(contract: str = PERMIT2, **changed: object) -> dict[str, Any]:
    """A payment by Permit2."""
    usual = {"permitted": {"token": TOKEN, "amount": "60"}, "nonce": "7", "deadline": "99", "witness": {"to": SELLER}}
    return order("PermitWitnessTransferFrom", contract, **(usual | changed))


@each(
    "document",
    [
        transfer(nonce="0x" + "ab" * 33),
        transfer(nonce="-0x1"),
        transfer(nonce=7),
        transfer(**{"from": "0x12"}),
        transfer(to=None),
        transfer(value="x"),
        transfer(validBefore=[]),
        permit(nonce="-1"),
        permit(nonce=str(2**256)),
        permit(witness=[]),
        permit(permitted={}),
        permit(contract=TOKEN),
        order("Mail", TOKEN),
        order("TransferWithAuthorization", "0xnone"),
        {},
        [],
    ],
)
def test_a_document_that_is_no_payment_is_followed_by_nothing(document: object) -> None:
    assert claim_of(msgspec.json.encode(document), WALLET) is None


@each("document", [transfer(), permit(), permit(witness={"to": SELLER, "facilitator": WALLET})])
def test_a_payment_is_asked_for_by_its_nonce(document: dict[str, Any]) -> None:
    claim = claim_of(msgspec.json.encode(document), WALLET)

    assert claim is not None
    assert (claim.payer, claim.payee, claim.token) == (WALLET.lower(), SELLER.lower(), TOKEN.lower())
    assert (claim.least, claim.most) == (0 if "facilitator" in str(document) else 60, 60)
    to, data = state_question(claim)
    assert (to, len(data)) == (TOKEN.lower() if claim.method == "eip3009" else PERMIT2, 2 + 8 + 128)
