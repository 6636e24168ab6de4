"""new-recipient, effect by effect: whom each pays, empowers or calls, and of whom a person is asked."""

from collections.abc import Iterable

import msgspec
import pytest

from custody.chains.types import Account, Effect, Subject
from custody.policies.judge import judge
from custody.policies.kinds.new_recipient import recipients_of
from custody.policies.tighten import widening
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    approval_call,
    evm,
    facts,
    native,
    permit,
    rule,
    rules,
    suffixed_call,
    token_call,
    typed_data,
    unread_call,
)
from tests.rules.policies.test_policy_batches import batch
from tests.rules.policies.test_policy_message_allowlist import evm as message

MIXED = "0xABcdEFABcdEFabcdEfAbCdefabcdeFABcDEFabCD"
HIDDEN = "nobody can tell whom it pays or empowers: a person must approve it"
KNOWN = "every recipient is known"
CHAIN = "eip155:1:"


def check(order: Subject, *noted: tuple[str, str], known: Iterable[str] = (), **changes: object) -> tuple[bool, str]:
    (parsed,) = rules(rule("new-recipient", {"known": list(known)} if known else {}))
    recipients = frozenset((kind, name if ":" in name else CHAIN + name) for kind, name in noted)
    return parsed.terms.check(order, facts(recipients=recipients, **changes))


def never(address: str, how: str = "paid", where: str = " on chain 1") -> str:
    return f"{address} was never {how} by this agent{where}: a person must approve it"


class Owned(Account, frozen=True):
    owner: str = ""

    def owner_among(self, addresses: Iterable[str]) -> str | None:
        return next((one for one in addresses if one == self.owner), None)


OWNER, HELD = "3uTFpmpBvStn9yCtFNvPQXqX7SsXwZwQXLLsUdMTEcBZ", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
INTO = Effect("transfer", "solana:mint", 1, "us", HELD, account=Owned(HELD, OWNER), unowned=True)
HOLDING = Subject("solana", "solana", 101, "solana:x", HELD, (INTO, Effect("fee", "solana:native", 5_000, "us")))
NAMED = msgspec.structs.replace(HOLDING, effects=(msgspec.structs.replace(INTO, to=OWNER, unowned=False),))
TOKENS = (("paid", ALICE), ("called", TOKEN_CONTRACT))


@pytest.mark.parametrize(
    ("order", "noted", "said"),
    [
        (native(5, ALICE), (), never(ALICE)),
        (native(5, ALICE), [("paid", ALICE)], KNOWN),
        (native(0, ALICE), [("paid", ALICE)], KNOWN),
        # Each way of reaching somebody, and each chain, is one by itself.
        (native(5, ALICE), [("called", ALICE), ("empowered", ALICE)], never(ALICE)),
        (native(5, ALICE), [("paid", f"eip155:10:{ALICE}")], never(ALICE)),
        (token_call(5, ALICE), [("paid", ALICE)], never(TOKEN_CONTRACT, "called")),
        (token_call(5, ALICE), TOKENS, KNOWN),
        (token_call(5, ALICE, chain_id=10), TOKENS, never(ALICE, where=" on chain 10")),
        (approval_call(5, ALICE), TOKENS, never(ALICE, "allowed to spend")),
        (approval_call(5, ALICE), [("empowered", ALICE), *TOKENS], KNOWN),
        (permit(2**200, ALICE), (), never(ALICE, "allowed to spend")),
        (typed_data(), (), "the order has no recipient"),
        (evm(destination=BOB), (), never(BOB)),
        (evm(destination=None), (), HIDDEN),
        # Taking power back names nobody, and what comes back to the wallet neither.
        (typed_data(Effect("approval", TOKEN, 0, BOB, spender=ALICE, revokes=True)), (), "the order has no recipient"),
        (typed_data(Effect("transfer", TOKEN, 4, BOB, BOB)), (), "the order has no recipient"),
        # What nobody can read is new each time.
        (suffixed_call(5, ALICE), TOKENS, HIDDEN),
        (unread_call(), TOKENS, HIDDEN),
        (evm(Effect("transfer", TOKEN, 1, BOB, ALICE, nft=True)), [("paid", ALICE)], HIDDEN),
        (evm(Effect("approval", TOKEN, 1, BOB, spender=ALICE, nft=True)), [("empowered", ALICE)], HIDDEN),
        (typed_data(Effect("transfer", TOKEN, 1, BOB)), (), HIDDEN),
        (message("hello"), (), HIDDEN),
        # Each call of a batch.
        (batch(native(5, ALICE), native(6, BOB)), [("paid", ALICE)], never(BOB)),
        (batch(native(5, ALICE), native(6, BOB)), [("paid", ALICE), ("paid", BOB)], KNOWN),
        # Whose a token account is: as the order says, of one who was paid, or its own name.
        (HOLDING, (), never(HELD, where=" on chain 101")),
        (HOLDING, [("paid", f"solana:x:{HELD}")], KNOWN),
        (HOLDING, [("paid", f"solana:x:{OWNER}")], KNOWN),
        (HOLDING, [("empowered", f"solana:x:{OWNER}")], never(HELD, where=" on chain 101")),
        (NAMED, (), never(OWNER, where=" on chain 101")),
        (NAMED, [("paid", f"solana:x:{OWNER}")], KNOWN),
    ],
)
def test_a_person_is_asked_about_whom_no_order_reached(order: Subject, noted: list[tuple[str, str]], said: str) -> None:
    passed = said in {KNOWN, "the order has no recipient"}

    assert check(order, *noted) == (passed, said)
    assert check(order, *noted, approving=True)[0]


def test_an_address_that_is_known_may_be_reached_in_any_way_and_spelling() -> None:
    lower = MIXED.lower()

    assert check(native(5, lower), known=[lower]) == (True, KNOWN)
    assert check(native(5, lower.replace("ab", "Ab")), known=[lower]) == (True, KNOWN)
    assert check(approval_call(5, ALICE), known=[ALICE, TOKEN_CONTRACT]) == (True, KNOWN)
    assert check(HOLDING, known=[OWNER]) == (True, KNOWN)


def test_a_new_account_whose_owner_is_sought_is_not_sought_for_ever() -> None:
    many = [("paid", f"solana:x:{OWNER}"), *(("paid", f"solana:x:{number:044}") for number in range(256))]

    assert check(HOLDING, *many)[0] is False
    assert check(HOLDING, *many[:256])[0] is True


def test_an_order_tells_each_recipient_once() -> None:
    found, whole = recipients_of(batch(token_call(5, ALICE), token_call(6, ALICE), native(1, BOB)), frozenset(), 0)

    assert [*dict.fromkeys(found)] == [
        ("paid", CHAIN + ALICE),
        ("called", CHAIN + TOKEN_CONTRACT),
        ("paid", CHAIN + BOB),
    ]
    assert whole


def test_the_rule_covers_nothing_and_never_refuses() -> None:
    limited = rules(
        rule("spending-limit", {"maxPerDay": "100"}), rule("new-recipient", {"known": [ALICE, TOKEN_CONTRACT]})
    )

    assert judge(limited, native(5, ALICE), facts()).decision == "sign"
    assert judge(limited, token_call(5, ALICE), facts()).decision == "queue"
    assert judge(limited[1:], native(5, BOB), facts()).decision == "queue"


@pytest.mark.parametrize(
    ("old", "new", "is_tighter"),
    [
        ({"known": [ALICE, BOB]}, {"known": [ALICE]}, True),
        ({"known": [ALICE]}, {}, True),
        ({"known": [ALICE]}, {"known": [ALICE]}, True),
        ({}, {"known": [ALICE]}, False),
        ({"known": [ALICE]}, {"known": [BOB]}, False),
    ],
)
def test_fewer_known_addresses_are_tighter(old: dict[str, object], new: dict[str, object], is_tighter: bool) -> None:
    found = widening(rules(rule("new-recipient", old)), rules(rule("new-recipient", new)), empty_policy="allow")

    assert (found is None) is is_tighter
