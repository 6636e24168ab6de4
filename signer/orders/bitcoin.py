"""PSBTs: every input proven, our own change re-derived, and signed only where two readers read the same."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from custody.chains.bitcoin import effects as bitcoin_effects
from custody.chains.bitcoin import psbt as bitcoin_psbt
from custody.chains.bitcoin.addresses import address_of
from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.finalise import finalise
from custody.chains.bitcoin.keys import Root, child
from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.bitcoin.refusals import PsbtNoOwnInput
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import script_of
from custody.chains.bitcoin.sign import check_signatures, sign
from custody.chains.bitcoin.spends import prove
from custody.chains.bitcoin.types import Account, Psbt, Spend, WalletScope
from custody.chains.types import Effect
from custody.protocol.signer.outcomes import PsbtReleased
from signer.ledger import Facts, PsbtQuestion
from signer.orders.drafts import PsbtDraft
from signer.orders.kind import Decoded, Final, Inputs, OrderKind, Produced, digest_of, text_of
from signer.orders.psbt_second_reader import EmbitReader
from signer.wallets.bitcoin import BITCOIN_KEYS


class PsbtDecoded(Decoded, frozen=True, kw_only=True):
    """The effects of the PSBT, proven."""

    spend: Spend
    address: str


class PsbtFinal(Final, frozen=True, kw_only=True):
    """The spend that will be signed, and whether its transaction is to be finished."""

    spend: Spend
    address: str
    finalize: bool


class PsbtKind(OrderKind[PsbtOrder, PsbtDraft, PsbtDecoded, PsbtFinal, Root]):
    """`POST /vault/{agentId}/sign-bitcoin-psbt`."""

    name = "bitcoin"
    keys = BITCOIN_KEYS
    second_reader = EmbitReader()
    needs_signer = True
    permissions = frozenset({"sign_transaction"})

    def check(self, order: PsbtOrder, inputs: Inputs) -> PsbtDraft:
        """Read the PSBT strictly."""
        scope = parse_scope(order.wallet_scope)
        parsed = bitcoin_psbt.read(order.psbt_base64)
        text = text_of(order)
        outpoints = [one.outpoint for one in parsed.transaction.inputs]
        return PsbtDraft(
            order_text=text,
            digest=digest_of("bitcoin", text.encode()),
            chain=None,
            broadcast=False,
            reference_id=order.reference_id,
            to_address=None,
            value=None,
            data=order.psbt_base64,
            psbt=PsbtQuestion(
                scope.account_name,
                _txid(parsed.unsigned),
                [outpoint.txid for outpoint in outpoints],
                [outpoint.index for outpoint in outpoints],
            ),
            order=order,
            scope=scope,
            parsed=parsed,
            bounds=inputs.chains.bounds["bitcoin"][scope.network.name],
        )

    def effects(self, draft: PsbtDraft, facts: Facts) -> PsbtDecoded:
        """Prove what is spent, tell payments from change, and hold fee and outputs to their bounds."""
        if facts.psbt is None:
            raise PsbtNoOwnInput(
                f"psbtBase64: no input is of {draft.scope.text}, of whose account no address was made yet. Read "
                "GET /vault/{agentId}/bitcoin/address, and fund what it answers."
            )
        spend, address = _prove(draft.parsed, draft.scope, facts.psbt.public_key, facts.psbt.chain_code, draft.bounds)
        subject = bitcoin_effects.subject_of(spend, address)
        fee = next((effect for effect in subject.effects if effect.kind == "fee"), None)
        return PsbtDecoded(subject=subject, fee=fee, spend=spend, address=address)

    def finish(self, draft: PsbtDraft, decoded: PsbtDecoded, facts: Facts) -> PsbtFinal:
        """Name the coins that are signed away."""
        outpoints = [one.outpoint for one in draft.parsed.transaction.inputs]
        signed = [outpoints[own.position] for own in decoded.spend.own if own.signed]
        return PsbtFinal(
            coins=tuple((outpoint.txid, outpoint.index) for outpoint in signed),
            spend=decoded.spend,
            address=decoded.address,
            finalize=draft.order.finalize,
        )

    def sign(self, final: PsbtFinal, key: Root) -> Produced:
        """Sign the inputs of the scope, and finish the transaction where it is asked for and can be."""
        spend, scope = final.spend, final.spend.scope
        made = sign(spend, key)
        done = finalise(made, spend) if final.finalize else None
        released = PsbtReleased(
            scope=scope.text,
            address=final.address,
            address_type=scope.address_type,
            network=scope.network.name,
            inputs=len(made.signatures),
            fee=spend.fee,
            final=done.raw if done else None,
            vsize=done.vsize if done else None,
        )
        signature = ",".join(one.hex() for one in made.signatures)
        return Produced(done.txid if done else None, signature, done.psbt if done else made.raw, released)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the PSBT as it was asked for, and check the signatures that were made of it."""
        order = msgspec.json.decode(row["order_text"], type=PsbtOrder)
        scope = parse_scope(order.wallet_scope)
        # Without bounds: they may be others by now.
        spend, own = _prove(
            bitcoin_psbt.read(order.psbt_base64), scope, row["account_key"], row["account_chain_code"], None
        )
        check_signatures(spend, tuple(bytes.fromhex(one) for one in row["signature"].split(",")))
        return bitcoin_effects.subject_of(spend, own).effects


PSBT = PsbtKind()


def _prove(
    parsed: Psbt, scope: WalletScope, public_key: bytes, chain_code: bytes, bounds: Bounds | None
) -> tuple[Spend, str]:
    """Prove what a PSBT does, and find its scope's address."""
    account = Account(public_key, chain_code)
    address = address_of(script_of(scope.address_type, child(account, scope.change, scope.index)), scope.network)
    return prove(parsed, scope, account, bounds), address or ""


def _txid(unsigned: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(unsigned).digest()).digest()
