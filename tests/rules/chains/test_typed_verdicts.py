"""Documents judged: what is blocked, limited, listed or taken back, as a call that does the same would be."""

from typing import Any

import pytest
from eth_abi import encode

from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.evm.typed_kinds import CALLS, READERS
from custody.chains.evm.typed_order import TypedDataOrder
from custody.policies.judge import judge
from tests.rules.chains.typed_samples import (
    DOMAIN,
    OTHER,
    PERMIT2_DOMAIN,
    SPENDER,
    TOKEN,
    US,
    kind,
    read_effects,
    sample,
    with_witness,
)
from tests.rules.policies.makers import Sent, facts, rule, rules

ASSET = f"evm:8453:{TOKEN}"
TRANSFER = "0xa9059cbb" + encode(["address", "uint256"], [OTHER, 5]).hex()
BLOCKED = rule("approved-addresses", {"addresses": [OTHER], "mode": "blacklist"})
LIMIT = rule("spending-limit", {"maxPerDay": "4", "asset": ASSET})
PERMITTED = {"token": TOKEN, "amount": 5}

CONSIDERED = {
    "itemType": 1,
    "token": TOKEN,
    "identifierOrCriteria": 0,
    "startAmount": 1,
    "endAmount": 1,
    "recipient": OTHER,
}


def decide(order: TypedDataOrder, *given: Sent, **changes: Any) -> str:
    return judge(rules(*given), subject_of(read(order), US), facts(asset=ASSET, **changes)).decision


PAYING = {
    "a Safe's coins": sample(kind("SafeTx"), to=OTHER, value=1),
    "a Safe's token": sample(kind("SafeTx"), to=TOKEN, value=0, data=TRANSFER),
    "a delegate call": sample(kind("SafeTx"), to=OTHER, operation=1),
    "a refund": sample(kind("SafeTx"), to=SPENDER, value=1, gasPrice=1, refundReceiver=OTHER),
    "a meta-transaction": sample(kind("MetaTransaction"), functionSignature=TRANSFER),
    "what CoW buys": sample(kind("Order(address sellToken"), receiver=OTHER),
    "0x, by name": sample(kind("RfqOrder"), taker=OTHER),
    "Permit2": sample(kind("PermitTransferFrom"), spender=OTHER),
    "an unknown witness": with_witness("Thing(address a)", domain=PERMIT2_DOMAIN, spender=OTHER),
    "what Seaport's buyer pays": sample(kind("OrderComponents"), consideration=[CONSIDERED]),
    "Hyperliquid": sample(kind("HyperliquidTransaction:UsdSend"), destination=OTHER),
    "an authorization": sample(kind("TransferWithAuthorization"), to=OTHER),
}


@pytest.mark.parametrize("name", PAYING)
def test_a_blocked_address_gets_nothing_by_a_document_that_names_it(name: str) -> None:
    assert decide(PAYING[name], BLOCKED) == "refuse"


@pytest.mark.parametrize("spelled", [*READERS, *CALLS])
@pytest.mark.parametrize("rules_", [(BLOCKED,), (LIMIT,)], ids=["a blocked list", "a limit"])
def test_an_unread_part_is_never_signed_where_a_rule_could_be_evaded(spelled: str, rules_: tuple[Sent, ...]) -> None:
    unread = [one for one in read_effects(sample(spelled)) if one.kind == "unread"]

    assert not unread or decide(sample(spelled), *rules_) != "sign"


@pytest.mark.parametrize(
    "order",
    [
        sample(kind("PermitTransferFrom"), permitted=PERMITTED),
        with_witness("Thing(address a)", domain=PERMIT2_DOMAIN, permitted=PERMITTED),
        sample(kind("SafeTx"), to=TOKEN, value=0, data=TRANSFER),
        sample(kind("MetaTransaction"), functionSignature=TRANSFER),
        sample(kind("MetaTransaction"), functionSignature=TRANSFER + "00"),
        sample(kind("TransferWithAuthorization"), value=5),
    ],
)
def test_a_document_beyond_a_limit_is_refused(order: TypedDataOrder) -> None:
    assert decide(order, LIMIT) == "refuse"


def test_a_call_within_a_document_must_be_listed_with_the_documents_contract() -> None:
    order = sample(kind("SafeTx"), to=SPENDER, value=0, data=TRANSFER)
    safe = {"address": TOKEN, "selectors": ["0x6a761202"]}
    bounded = {
        "address": SPENDER,
        "selectors": ["0xa9059cbb"],
        "constraints": {"0xa9059cbb": {"maxAmount": "5", "recipientAllowlist": [OTHER]}},
    }
    tight = bounded | {"constraints": {"0xa9059cbb": {"maxAmount": "4"}}}

    verdicts = [
        decide(order, LIMIT, rule("contract-allowlist", {"contracts": contracts}))
        for contracts in ([safe, bounded], [safe], [bounded], [safe, tight])
    ]

    assert verdicts == ["sign", "refuse", "refuse", "refuse"]


@pytest.mark.parametrize(
    "order",
    [
        sample(kind("Permit(address owner"), spender=OTHER, value=0),
        sample(kind("Permit(address holder"), spender=OTHER, allowed=False),
        sample(kind("PermitSingle"), spender=OTHER, details=PERMITTED | {"amount": 0, "expiration": 9, "nonce": 0}),
    ],
)
def test_power_is_taken_back_from_a_blocked_spender_too(order: TypedDataOrder) -> None:
    assert decide(order, BLOCKED, LIMIT) == "sign"


def test_a_transfer_at_circles_gateway_asks_and_counts_nothing() -> None:
    order = sample(kind("TransferWithAuthorization"), DOMAIN | {"name": "GatewayWalletBatched"}, value=5)

    verdict = judge(rules(LIMIT), subject_of(read(order), US), facts(asset=ASSET))

    assert (verdict.decision, verdict.charges) == ("queue", {})
