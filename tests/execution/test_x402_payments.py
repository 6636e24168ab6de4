"""Payments by x402 on Solana: the real programs do what was judged of the transaction, once its sponsor signs it."""

import base64
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody.chains.chains_file import load
from custody.chains.payment_orders import SolanaPaymentOrder
from custody.chains.solana import effects, message, sign
from custody.payments import solana_payment
from custody.payments.demand import read_offer
from custody.payments.offers import Terms, terms_of
from custody.payments.refusals import OfferUnpayable
from signer.ledger import Facts
from signer.orders.kind import Inputs
from signer.orders.x402 import SOLANA_PAYMENT
from tests.execution.solana_world import (
    AGENT,
    COIN_MINT,
    KEY,
    SPONSOR,
    SPONSOR_KEY,
    STRANGER,
    associated_account,
    cluster,
)

TOKEN = f'[[chains]]\nid = 102\n[[chains.tokens]]\naddress = "{COIN_MINT}"\nsymbol = "COIN"\ndecimals = 2\n'
OFFER = (
    '{"scheme": "exact", "network": "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", "amount": "60", "asset": "%s",'
    ' "payTo": "%s", "maxTimeoutSeconds": 60, "extra": {"feePayer": "%s"%s}}'
)
NONCE = b"\x07" * 32


@pytest.fixture(name="terms")
def terms_fixture(tmp_path_factory: pytest.TempPathFactory) -> Terms:
    """An offer of the stranger, sponsored."""
    file = tmp_path_factory.mktemp("chains") / "chains.toml"
    file.write_text(TOKEN)
    offer = read_offer(2, OFFER % (COIN_MINT, STRANGER, SPONSOR, ', "memo": "order 7"'))
    assert offer is not None
    terms = terms_of(offer, load({"SERVICE_CHAINS_FILE": str(file)}))
    assert terms is not None
    return terms


def signed_payment(terms: Terms) -> tuple[message.SolanaTransaction, VersionedTransaction]:
    """The transaction as it is judged, and as the wallet has signed it."""
    built = message.parse(solana_payment.transaction(terms, str(AGENT), NONCE, str(cluster().blockhash)))
    _, raw = sign.sign(built, KEY, None)
    return built, VersionedTransaction.from_bytes(raw)


def test_a_sponsored_payment_moves_what_was_judged(terms: Terms) -> None:
    """The tokens, and not a lamport of the wallet; before the sponsor signs, nothing at all."""
    built, ours = signed_payment(terms)
    subject = effects.subject_of(built, str(AGENT), 102, terms.network, terms.pay_to)
    [effect] = subject.effects
    assert (effect.kind, effect.asset, effect.amount, effect.to) == ("transfer", terms.asset, 60, str(STRANGER))
    by_sponsor = SPONSOR_KEY.sign_message(to_bytes_versioned(ours.message))
    complete = VersionedTransaction.populate(ours.message, [by_sponsor, ours.signatures[1]])

    done = cluster().execute(bytes(complete))

    accounts = [associated_account(who, COIN_MINT) for who in (AGENT, STRANGER)]
    assert done.succeeded
    assert [done.after[each].amount - done.before[each].amount for each in accounts] == [-60, 60]
    assert done.after[AGENT].lamports == done.before[AGENT].lamports
    assert ours.signatures[0] == Signature.default()
    assert not cluster().execute(bytes(ours)).succeeded


def test_the_shape_is_that_of_the_specification(terms: Terms) -> None:
    """Unit limit, unit price, TransferChecked, memo; the sponsor pays and stands in no instruction."""
    built, _ = signed_payment(terms)

    assert [one.data[:1] for one in built.instructions[:3]] == [b"\x02", b"\x03", b"\x0c"]
    assert built.instructions[3].data == b"order 7"
    assert built.signers == [SPONSOR, AGENT]
    assert all(SPONSOR not in one.accounts for one in built.instructions)


def test_the_same_order_is_the_same_payment(terms: Terms) -> None:
    """Its memo tells it from the next one, where the seller wants none of its own."""
    bare = msgspec.structs.replace(terms, memo=None)
    made = [solana_payment.transaction(bare, str(AGENT), nonce, None) for nonce in (NONCE, NONCE, b"\x08" * 32)]

    assert made[0] == made[1] != made[2]
    assert base64.b64decode(made[0]).count(NONCE[:16].hex().encode()) == 1


def test_a_sponsor_that_is_the_wallets_own_account_makes_an_offer_unpayable(
    terms: Terms, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only the wallet tells that it is its account; the 402 passes as one that offers nothing acceptable."""
    file = tmp_path_factory.mktemp("chains") / "own.toml"
    file.write_text(TOKEN)
    inputs = Inputs(load({"SERVICE_CHAINS_FILE": str(file)}), unique=NONCE)
    facts = cast("Facts", SimpleNamespace(address=str(AGENT)))

    def effects_of(sponsor: Pubkey) -> object:
        offer = OFFER % (COIN_MINT, STRANGER, sponsor, "")
        draft = SOLANA_PAYMENT.check(SolanaPaymentOrder(version=2, offer=offer, chain_id=102), inputs)
        return SOLANA_PAYMENT.effects(draft, facts).subject.effects

    with pytest.raises(OfferUnpayable):
        effects_of(associated_account(AGENT, COIN_MINT))
    assert effects_of(SPONSOR)
