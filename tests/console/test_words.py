"""Effects of an order in words: exact, the gravest first, and nothing that others write passes for ours."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.address import checksum
from custody.chains.evm.typed_kinds import OTHERS, REFUND, WITNESS
from tests.console.orders import (
    ETHER,
    FEE,
    MOST,
    SPENDER,
    THEM,
    TOKEN,
    TOKENS,
    US,
    allows,
    earlier,
    lines_of,
    order,
    pays,
    tone_of,
)
from words.orders.dangers import dangers
from words.orders.details import details
from words.orders.limits import limits
from words.orders.order import Known, of_approval
from words.orders.words import essentials, summary
from words.shapes import Approval, Budget, Effect, TokenFunds
from words.texts.lines import Line

MINT, PAYEE = "So11111111111111111111111111111111111111112", "4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T"


def test_a_payment_says_how_much_to_whom_and_where() -> None:
    assert lines_of(order(pays(), FEE, to_address=THEM, value="1500000000000000000")) == [
        "Sends 1.5 ETH (1,500,000,000,000,000,000 wei) to",
        f"  {THEM}",
        "Network fee at most 0.005 ETH (5,000,000,000,000,000 wei).",
        "On Ethereum.",
        'Agent "Payer" (payer) asks for this.',
    ]


def test_a_token_payment_says_which_token_and_what_it_calls_itself() -> None:
    known = Known(tokens={TOKENS: TokenFunds(TOKEN, symbol="USDC", decimals=6)})

    lines = lines_of(order(pays("1500000", asset=TOKENS), to_address=TOKEN, value="0"), known)

    assert lines[:6] == [
        "Sends 1.5 (1,500,000 raw units) of",
        f"  token {checksum(TOKEN)}",
        '  calls itself "USDC"',
        "to",
        f"  {THEM}",
        "On Ethereum.",
    ]


def test_an_unlimited_approval_says_so_in_words_and_in_red() -> None:
    lines = lines_of(order(allows()))

    assert lines[0] == "Lets this address spend UNLIMITED amounts on the agent's behalf, now and later:"
    assert lines[1:4] == [f"  {checksum(SPENDER)}", "of", f"  token {checksum(TOKEN)}"]
    assert tone_of("Lets", order(allows())) == "bad"


def test_a_huge_approval_is_unlimited_whatever_its_mark_says() -> None:
    effect = Effect("approval", TOKENS, str(2**128), US, spender=SPENDER, unlimited=False)

    assert "UNLIMITED" in lines_of(order(effect))[0]


def test_an_approval_up_to_an_amount_says_the_amount() -> None:
    shown, known = order(allows("5")), Known(data="0x095ea7b3")
    line = lines_of(shown, known)[0]

    assert line == "Lets this address spend 5 raw units (decimals unknown) on the agent's behalf, now and later:"
    assert tone_of("Lets", shown, known) == "warn"


@pytest.mark.parametrize(
    ("kind", "data", "more", "brief"),
    [
        ("evm", "0x095ea7b3", "", "5"),
        ("typed_data", None, "", "5"),
        ("solana", None, "", "5"),
        ("evm", "0x39509351", " more than it may already", "5 more"),
        ("evm", "0xac9650d8" + "39509351", ", or that much more than it may already,", "5 or more"),
        ("evm", None, ", or that much more than it may already,", "5 or more"),
    ],
)
def test_an_increase_of_an_allowance_is_not_shown_as_the_whole_allowance(
    kind: str, data: str | None, more: str, brief: str
) -> None:
    shown, known = order(allows("5"), kind=kind), Known(data=data, tokens={TOKENS: TokenFunds(TOKEN, decimals=0)})

    line = f"Lets this address spend 5 (5 raw units){more} on the agent's behalf, now and later:"
    assert line in lines_of(shown, known)
    assert summary(shown, known) == f"Approval of {brief} of token 0xCcCCc…cccccC for 0xDDdDd…DDDDDd"


@pytest.mark.parametrize(
    ("data", "decimals", "line", "tone", "brief"),
    [
        (
            "0xa457c2d7",
            6,
            "Lowers what this address may spend on the agent's behalf, perhaps by very little:",
            None,
            "Lowers approval of {} for {}",
        ),
        (
            "0xA457C2D7",
            None,
            "Lowers what this address may spend on the agent's behalf, perhaps by very little:",
            None,
            "Lowers approval of {} for {}",
        ),
        (
            None,
            None,
            "Lowers what this address may spend on the agent's behalf, or sets it to 0, or adds nothing:",
            "warn",
            "Lowers approval of {} for {}, or sets it to 0, or adds nothing",
        ),
        (
            "0xac9650d8095ea7b3a457c2d7",
            None,
            "Lowers what this address may spend on the agent's behalf, or sets it to 0:",
            "warn",
            "Lowers approval of {} for {}, or sets it to 0",
        ),
        (
            None,
            6,
            "Lowers what this address may spend on the agent's behalf, or sets it to 0, or adds nothing:",
            "warn",
            "Lowers approval of {} for {}, or sets it to 0, or adds nothing",
        ),
        (
            "0xac9650d8a457c2d7",
            6,
            "Lowers or takes back what this address may spend on the agent's behalf:",
            None,
            "Lowers or takes back approval of {} for {}",
        ),
        (
            "0x39509351",
            6,
            "Adds nothing to what this address may spend on the agent's behalf:",
            "warn",
            "Adds nothing to approval of {} for {}",
        ),
        (
            "0xac9650d839509351",
            6,
            "Sets what this address may spend on the agent's behalf to 0, or adds nothing:",
            "warn",
            "Sets approval of {} for {} to 0, or adds nothing",
        ),
        (
            "0x095ea7b3",
            6,
            "Takes back what this address may spend on the agent's behalf:",
            "good",
            "Takes back approval of {} for {}",
        ),
        (
            "0x095ea7b3",
            None,
            "Sets what this address may spend on the agent's behalf to 0:",
            "warn",
            "Sets approval of {} for {} to 0",
        ),
    ],
)
def test_only_what_is_known_to_be_set_to_0_is_said_to_be(
    data: str | None, decimals: int | None, line: str, tone: str | None, brief: str
) -> None:
    shown, known = order(allows("0")), Known(data=data, tokens={TOKENS: TokenFunds(TOKEN, decimals=decimals)})

    assert lines_of(shown, known)[0] == line
    assert tone_of(line, shown, known) == tone
    assert summary(shown, known) == brief.format("token 0xCcCCc…cccccC", "0xDDdDd…DDDDDd")


def test_taking_an_approval_back_is_no_danger() -> None:
    line = "Takes back what this address may spend on the agent's behalf:"

    known = Known(data="0x095ea7b3", tokens={TOKENS: TokenFunds(TOKEN, decimals=6)})

    assert lines_of(order(allows("0")), known)[0] == line
    assert tone_of(line, order(allows("0")), known) == "good"
    taken = "Takes back what this address may spend on the agent's behalf:"
    assert lines_of(order(allows("0")), Known(data="0xa22cb465"))[0] == taken


def test_a_possible_nft_approval_is_not_shown_as_revoked() -> None:
    lines = lines_of(order(allows("0")), Known(data="0x095ea7b3"))

    assert lines[0] == "Sets what this address may spend on the agent's behalf to 0:"
    assert "  were it an NFT contract, this would give away its number 0" in lines
    assert tone_of("Sets", order(allows("0")), Known(data="0x095ea7b3")) == "warn"


def test_an_nft_contract_that_tells_no_decimals_or_0_may_give_away_its_number() -> None:
    approves, moves = "0x095ea7b3", "0x23b872dd"
    land = {TOKENS: TokenFunds(TOKEN, symbol="LAND", decimals=0)}

    gives, zero, sends = (
        lines_of(shown, Known(data=data, tokens=land))
        for shown, data in (
            (order(allows("7")), approves),
            (order(allows("0")), approves),
            (order(pays("7", asset=TOKENS)), moves),
        )
    )

    assert "  were it an NFT contract, this would give away its number 7" in gives
    assert "  were it an NFT contract, this would give away its number 0" in zero
    assert tone_of("Sets", order(allows("0")), Known(data=approves, tokens=land)) == "warn"
    assert "  were it an NFT contract, this would send its number 7" in sends


@pytest.mark.parametrize(
    ("data", "decimals", "may_be"),
    [
        ("0x23b872dd", None, True),
        ("0x23b872dd", 6, False),
        ("0xa9059cbb", None, False),
        ("0xac9650d8" + "23b872dd", None, True),
        ("0xac9650d8" + "a9059cbb", None, False),
    ],
)
def test_a_payment_that_an_nft_contract_reads_as_a_number_says_so(
    data: str, decimals: int | None, may_be: bool
) -> None:
    known = Known(data=data, tokens={TOKENS: TokenFunds(TOKEN, decimals=decimals)})

    lines = lines_of(order(pays("7", asset=TOKENS)), known)

    assert ("  were it an NFT contract, this would send its number 7" in lines) is may_be


def test_an_unlimited_effect_that_is_not_known_says_that_it_is() -> None:
    assert lines_of(order(Effect("teleport", ETHER, MOST, US, THEM)))[0].startswith("UNLIMITED: Does something")


def test_power_over_every_nft_is_unlimited() -> None:
    assert "move EVERY NFT, UNLIMITED," in lines_of(order(allows(label="every token")))[0]


def test_an_nft_is_named_by_its_number() -> None:
    assert lines_of(order(pays("1", asset=TOKENS, label="token 42")))[0] == "Sends NFT number 42 (1 of it) of"


@pytest.mark.parametrize("label", ["token 42 and all else", "token ", "Token 42", "token 4\u0662"])
def test_a_call_that_only_resembles_an_nft_transfer_shows_an_amount(label: str) -> None:
    assert lines_of(order(pays("1", asset=TOKENS, label=label)))[0] == "Sends 1 raw units (decimals unknown) of"


def test_typed_data_of_an_unknown_kind_is_said_to_be_unknown_before_anything_else() -> None:
    effect = Effect("unread", None, "0", US, THEM, label="SafeOp", unknown=True)
    shown = order(effect, kind="typed_data", to_address=THEM)

    assert dangers(shown, Known())[0] == Line("! Typed data of an unknown kind: read all of it.", "bad")
    assert tone_of("Typed data of an unknown kind", shown) == "bad"
    assert any("It is for the contract" in line for line in lines_of(shown))


def test_a_document_is_named_by_its_type_whatever_its_effects_are_called() -> None:
    shown = order(pays("1", asset=TOKENS, label="token 42"), kind="typed_data", to_address=THEM)

    assert lines_of(shown, Known(data={"primaryType": "OrderComponents"}))[0].startswith(
        'Signs a document, "OrderComponents"'
    )


def test_a_receiver_that_an_unread_document_names_is_not_taken_for_its_contract() -> None:
    shown = order(Effect("unread", None, "0", US, THEM, label="Withdraw"), kind="typed_data", to_address=TOKEN)

    lines = lines_of(shown)

    assert lines[lines.index("It names") + 1] == f"  {THEM}"
    assert lines[lines.index("The document is for the contract") + 1] == f"  {checksum(TOKEN)}"


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (WITNESS, "Words beside a transfer, its witness, cannot be decoded"),
        (OTHERS, "Parts of what the agent gives go to somebody else, and nobody can tell how much"),
        (REFUND, "Coins or tokens are refunded for gas, and nobody can tell how many"),
    ],
)
def test_an_unread_part_of_a_document_says_which_part_it_is(label: str, says: str) -> None:
    shown = order(pays(), Effect("unread", None, "0", US, THEM, label=label), kind="typed_data", to_address=THEM)

    assert f"{says}: the contract may take them for anything." in lines_of(shown)


def test_an_undecoded_call_says_so_in_red() -> None:
    shown = order(Effect("unread", None, "0", US, THEM), to_address=THEM, value="0")

    assert lines_of(shown)[:3] == [
        "Cannot be decoded: it may move anything the agent has.",
        "It calls",
        f"  {THEM}",
    ]
    assert tone_of("Cannot be decoded", shown) == "bad"


@pytest.mark.parametrize("effects", [(FEE, pays(), allows("5"), allows()), (allows(), FEE, allows("5"), pays())])
def test_the_gravest_comes_first(effects: tuple[Effect, ...]) -> None:
    text = "\n".join(lines_of(order(*effects)))

    places = [text.index(part) for part in ("UNLIMITED", "spend 5 raw", "Sends", "Network fee")]
    assert places == sorted(places)


def test_a_destination_that_was_never_paid_goes_before_one_that_was() -> None:
    known = Known(past=[earlier(1, pays(to=THEM))])

    lines = lines_of(order(pays("1", to=THEM), pays("2", to=SPENDER)), known)

    assert lines.index(f"  {checksum(SPENDER)}") < lines.index(f"  {THEM}")
    assert lines[lines.index(f"  {checksum(SPENDER)}") + 1] == "  never paid before"
    assert lines.count("  never paid before") == 1


@pytest.mark.parametrize("status", ["rejected", "pending_approval", "failed"])
def test_a_queued_order_is_not_shown_as_paid(status: str) -> None:
    assert "  never paid before" in lines_of(order(pays()), Known(past=[earlier(1, pays(), status=status)]))


def test_a_past_that_was_not_read_to_its_end_says_so() -> None:
    known = Known(past=[], past_complete=False, looked_through=100)

    assert "  never paid before, judging by the last 100 orders to the same place" in lines_of(order(pays()), known)
    assert dangers(order(pays()), known)[0].text.endswith(
        "as this order does, judging by the last 100 orders to the same place."
    )
    assert dangers(order(pays()), Known(past=[]))[0].text.endswith("as this order does.")


def test_nothing_is_said_of_a_past_that_is_not_known() -> None:
    assert not any("never" in line for line in lines_of(order(pays()), Known(past=None)))


def test_a_frozen_agent_is_said_before_all_it_asks_for() -> None:
    assert lines_of(order(pays()), Known(frozen="This agent is frozen."))[0] == "This agent is frozen."


def test_a_name_is_said_below_its_address_whatever_its_case() -> None:
    known = Known(names={THEM.lower(): 'agent "Treasury" (treasury) of this tenant'})

    lines = lines_of(order(pays(to=THEM), to_address="0x" + "11" * 20, value="1500000000000000000"), known)

    assert lines[lines.index(f"  {THEM}") + 1] == '  agent "Treasury" (treasury) of this tenant'


def test_a_stranger_is_called_one_only_where_the_names_are_known() -> None:
    stranger = "  unknown: not an agent here, not on an approved list"

    assert stranger in lines_of(order(pays()), Known(names_known=True))
    assert stranger not in lines_of(order(pays()), Known(names_known=False))


def test_a_document_is_named_and_who_holds_it_may_use_it() -> None:
    shown = order(allows(label="Permit"), kind="typed_data", to_address=TOKEN)

    assert lines_of(shown)[0] == 'Signs a document, "Permit": anyone who holds the signature may use it, now or later.'
    assert "UNLIMITED" in lines_of(shown)[1]


def test_a_document_without_effects_is_named_by_what_is_signed() -> None:
    lines = lines_of(order(kind="typed_data", to_address=THEM, chain_id=None), Known(data={"primaryType": "Mail"}))

    assert lines[:-1] == [
        'Signs a document, "Mail": anyone who holds the signature may use it, now or later.',
        "No known effect of it moves value.",
        "The document names no chain: the permission may be valid on any chain.",
        "The document is for the contract",
        f"  {THEM}",
    ]


def test_rent_for_somebody_else_is_theirs() -> None:
    rent = Effect("fee", "solana:native", "2039280", US, PAYEE, label="rent")

    lines = lines_of(order(rent, kind="solana", chain_id=101))

    assert lines[0] == "Rent 0.00203928 SOL (2,039,280 lamports) for another address, which may withdraw it:"
    assert lines[1] == f"  {PAYEE}"


def test_a_fee_for_somebody_else_is_a_gift() -> None:
    gift = Effect("fee", ETHER, "1", US, THEM)

    assert lines_of(order(gift))[0].endswith("as a gift to another address:")
    assert tone_of("Network fee", order(gift)) == "warn"


def test_the_words_for_own_token_accounts_alarm_nobody() -> None:
    account = "11111111111111111111111111111111"
    of = {"kind": "solana", "chain_id": 101, "to_address": PAYEE, "value": "5"}
    revoked = Effect("approval", None, "0", PAYEE, label=f"revoke on {account}")
    closed = Effect("transfer", "solana:native", "0", PAYEE, PAYEE, label=f"close {account}")
    wrapped = Effect("transfer", "solana:native", "5", PAYEE, PAYEE, label="wrap")

    assert lines_of(order(revoked, **of))[:2] == [
        "Ends what a delegate may spend from the agent's token account:",
        f"  {account}",
    ]
    assert summary(order(closed, **of), Known()) == "Closes token account 1111111…111111"
    assert (
        lines_of(order(wrapped, **of))[0]
        == "Wraps 0.000000005 SOL (5 lamports), which stay the agent's own as a token."
    )
    assert not any(line.tone in ("warn", "bad") for line in essentials(order(revoked, closed, wrapped, **of), Known()))


def test_rent_that_depends_on_the_mint_is_said_to_be_the_most() -> None:
    rent = Effect("fee", "solana:native", "2248080", US, PAYEE, label="rent at most")

    assert lines_of(order(rent, kind="solana", chain_id=101))[0].startswith("Rent at most 0.00224808 SOL")


def test_a_solana_token_payment_names_its_mint() -> None:
    shown = order(pays("5", to=PAYEE, asset=f"solana:{MINT}"), kind="solana", chain_id=101, to_address=PAYEE, value="0")

    assert lines_of(shown)[:4] == ["Sends 5 raw units (decimals unknown) of", f"  token {MINT}", "to", f"  {PAYEE}"]


def test_bitcoin_is_counted_in_its_own_units() -> None:
    shown = order(pays("150000000", to="bc1qexample", asset="bitcoin"), kind="bitcoin", chain_id=None)

    assert lines_of(shown)[:-1] == ["Sends 1.5 BTC (150,000,000 sat) to", "  bc1qexample", "On Bitcoin."]


def test_another_value_than_what_is_sent_is_said_in_red() -> None:
    shown = order(pays("5"), to_address=THEM, value="6")

    line = "It claims to send 0.000000000000000006 ETH (6 wei), which is not what it does."
    assert line in lines_of(shown)
    assert tone_of(line, shown) == "bad"


def test_another_destination_than_the_effects_say_is_said() -> None:
    lines = lines_of(order(allows(), to_address=THEM, value="0"))

    assert lines[-3:-1] == ["The order goes to", f"  {THEM}"]


def test_a_token_of_another_chain_is_said_in_red() -> None:
    assert "  on another chain: Base" in lines_of(order(pays("1", asset=f"evm:8453:{TOKEN}")))


def test_a_chain_that_is_not_known_is_called_by_its_number() -> None:
    assert "On chain 4242, which is not known here." in lines_of(order(pays(), chain_id=4242))


def test_the_end_of_the_time_is_said() -> None:
    assert (
        lines_of(order(pays(), expires_at="2026-03-02T12:00:00.000Z"))[-1]
        == "This request expires 2026-03-02 12:00:00 UTC."
    )


def test_an_effect_that_is_not_known_is_said_not_hidden() -> None:
    lines = lines_of(order(Effect("teleport", ETHER, "1", US, THEM)))

    assert lines[0] == 'Does something that is not known here ("teleport"):'
    assert f"  {THEM}" in lines


def test_an_order_without_effects_says_so_in_red() -> None:
    assert lines_of(order(to_address=THEM))[0] == "The effects of this order are unknown."


@pytest.mark.parametrize(
    ("effects", "line"),
    [
        ([pays()], "Sends 1.5 ETH to 0x11111…111111"),
        ([pays("2")], "Sends 2 wei to 0x11111…111111"),
        ([FEE, pays(), pays()], "Sends 1.5 ETH to 0x11111…111111, and 1 more"),
        ([pays(), allows()], "UNLIMITED approval of token 0xCcCCc…cccccC for 0xDDdDd…DDDDDd, and 1 more"),
        ([allows("0")], "Lowers approval of token 0xCcCCc…cccccC for 0xDDdDd…DDDDDd, or sets it to 0, or adds nothing"),
        ([Effect("unread", None, "0", US, THEM)], "Cannot be decoded: call of 0x11111…111111"),
        ([Effect("unread", None, "0", US, THEM, label="SafeOp", unknown=True)], 'Unknown typed data: "SafeOp"'),
        ([Effect("unread", None, "0", US, THEM, label="Order")], 'Cannot be decoded: document "Order"'),
        ([Effect("opaque", None, "0", US, THEM)], "Cannot be decoded: call of 0x11111…111111"),
        (
            [Effect("unread", None, "0", US, THEM, label="all of the call", size=4)],
            "Cannot be decoded: call of 0x11111…111111",
        ),
        (
            [pays(), Effect("unread", None, "0", US, THEM, label="behind the arguments", size=1_000)],
            "1,000 bytes behind the arguments of a call cannot be decoded, and 1 more",
        ),
        ([], "Effect unknown"),
    ],
    ids=[
        *("payment", "two wei", "several", "approval", "revocation", "unread", "kind", "document"),
        *("earlier", "all", "behind", "none"),
    ],
)
def test_a_list_has_it_in_one_line_the_gravest_first(effects: list[Effect], line: str) -> None:
    assert summary(order(*effects), Known()) == line


WORDS = st.text(max_size=40) | st.sampled_from(
    ["", ETHER, TOKENS, "evm:", "evm:x:", "solana:", "bitcoin", "at most", US]
)
EFFECTS = st.builds(
    Effect,
    st.sampled_from(["transfer", "approval", "fee", "call", "unread"]) | WORDS,
    st.none() | WORDS,
    WORDS | st.just(MOST),
    st.none() | WORDS,
    st.none() | WORDS,
    st.none() | WORDS,
    st.booleans(),
    st.booleans(),
    st.none() | WORDS,
)


@given(
    st.lists(EFFECTS, max_size=4),
    st.sampled_from(["evm", "typed_data", "solana", "bitcoin", ""]),
    st.none() | st.integers(),
    st.none() | WORDS,
    st.none() | WORDS,
)
def test_nothing_raises_and_no_effect_is_hidden(
    effects: list[Effect], kind: str, chain: int | None, to: str | None, value: str | None
) -> None:
    shown = order(*effects, kind=kind, chain_id=chain, to_address=to, value=value)
    known = Known(past=[earlier(1, *effects)], names_known=True, budgets=[Budget("p", "day", ETHER, "1", "1")])

    assert len(essentials(shown, known)) >= 2 + len(effects)
    assert summary(shown, known)
    assert limits(shown, known)
    assert details(shown, known)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=30,
)


@given(JSON, st.sampled_from(["evm", "typed_data", "solana", "bitcoin"]))
def test_whatever_is_signed_is_shown_in_lines_that_end(data: Any, kind: str) -> None:
    lines = details(order(kind=kind), Known(data=data))

    assert len(lines) <= 400
    assert all(len(line.text) <= 1_000 for line in lines)


def document(message: object, fields: int = 1) -> dict[str, Any]:
    """A document as the service stores it, with so many fields in its types."""
    types = {f"T{at}": [{"name": f"f{one}", "type": "uint256"} for one in range(5)] for at in range(fields // 5)}
    return {"domain": {"chainId": 1, "name": "x"}, "primaryType": "T0", "types": types, "value": message}


def test_the_message_of_a_document_is_shown_however_long_its_types_are() -> None:
    given = document({"grants": "everything"}, fields=250)

    lines = [one.text for one in details(order(kind="typed_data"), Known(data=given))]

    assert '    grants: "everything"' in lines
    assert lines.index('    grants: "everything"') < lines.index("  types:")
    assert lines[-1] == "  …and 741 lines more, not shown here."


def test_a_message_that_is_shown_whole_says_nothing_of_lines() -> None:
    known = Known(data=document({"text": "a" * 600, "list": list(range(190))}, fields=250))

    assert not any("Not all" in one.text for one in details(order(kind="typed_data"), known))
    assert not any("Not all" in line for line in lines_of(order(kind="typed_data"), known))


@pytest.mark.parametrize(
    ("message", "lacking"),
    [
        ({"list": list(range(1_000))}, "802 lines left out"),
        ({"list": list(range(200_000))}, "at least 10,000 lines left out"),
        ({"deep": [{"call": ["0x" + "00" * 400]}]}, "1 line cut short"),
        ({"list": [["b" * 601] * 150] * 2, "z": 1}, "105 lines left out, 196 lines cut short"),
        ({"n" * 81: 1}, "1 line cut short"),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": ["h" * 601]}}}}}}}, "1 line cut short"),
    ],
    ids=["many", "very many", "calldata", "both", "a name", "very deep"],
)
def test_a_message_that_is_not_shown_whole_says_so_in_red_above_and_below(message: object, lacking: str) -> None:
    opaque = Effect("unread", None, "0", US, THEM, label="T0")
    shown, known = order(opaque, kind="typed_data"), Known(data=document(message))
    line = f"Not all of the message is shown in the details: {lacking}."

    assert tone_of(line, shown, known) == "bad"
    assert [one.tone for one in details(shown, known) if one.text == line] == ["bad"]


def test_calldata_is_clipped_with_its_length_and_its_function() -> None:
    lines = [one.text for one in details(order(), Known(data="0xa9059cbb" + "00" * 1_000))]

    assert "calldata, 1,004 bytes, function 0xa9059cbb (transfer)" in lines
    assert lines[-1].endswith("… (2,010 characters)")


def test_an_item_of_the_queue_is_said_with_its_digest() -> None:
    item = msgspec.convert(
        {
            "id": "a",
            "txId": "t",
            "agentId": "payer",
            "agentName": "Payer",
            "status": "pending",
            "digest": "ab" * 32,
            "requestedAt": "2026-03-01T12:00:00Z",
            "kind": "evm",
        },
        Approval,
    )

    assert f"digest       {'ab' * 32}" in [one.text for one in details(of_approval(item), Known())]


@pytest.mark.parametrize("name", ['x" (treasury) asks for this: "', "a" * 10_000, "[@click=app.quit]x[/]", "a    b"])
def test_a_name_cannot_leave_its_quotation_marks(name: str) -> None:
    line = lines_of(order(pays(), agent_name=name))[-1]

    assert re.fullmatch(r'Agent "[^"]{1,100}" \(payer\) asks for this\.', line)
