"""Solana messages: every instruction recognised, declared and real effect equal. Spec 1/4.3, decisions 3."""

from solders.keypair import Keypair

from custody.chains.orders import SolanaOrder, SolanaPrepared
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.solana import sign as solana_sign
from custody.chains.table import ChainTable
from custody.kit.errors import Conflict
from custody.transactions.ledger import Facts
from signer.draft import Built, Draft, Final, NeedsNode, Produced, Unlocked, chain_of, digest_of, text_of


def draft(order: SolanaOrder, prepared: SolanaPrepared | None, chains: ChainTable, *, approving: bool) -> Draft:
    chain = chain_of(chains, order.chain_id, "solana")
    parsed = solana_message.parse(order.transaction)
    text = text_of(order)
    identity = solana_message.digest_bytes(parsed) + f":{order.to}:{order.value}:{chain.id}:{order.broadcast}".encode()

    def build(facts: Facts) -> Built:
        subject = solana_effects.subject_of(parsed, facts.address, chain.id, chain.caip2, order.to)
        solana_effects.check_declared(subject, order.to, int(order.value))
        solana_effects.check_fees(subject, chain.max_fee_per_transaction)
        fee = next((effect for effect in subject.effects if effect.label == "network fee"), None)

        def finish() -> Final:
            if order.broadcast and prepared is None:
                raise NeedsNode
            blockhash = _blockhash(parsed.sole_signer, prepared) if approving else None
            return Final(None, lambda secret: _unlock_solana(secret, parsed, blockhash))

        return Built(
            kind="solana", to_address=order.to, value=order.value, data=order.transaction, chain=chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id, fee=fee, subject=subject, finish=finish,
        )  # fmt: skip

    return Draft(
        kind="solana",
        purpose="solana",
        order_text=text,
        digest=digest_of("solana", identity),
        chain=chain,
        broadcast=order.broadcast,
        build=build,
    )


class ApprovalStale(Conflict):
    """Others have signed this message too, so its blockhash cannot be renewed; the agent must ask again."""


def _blockhash(sole_signer: bool, prepared: SolanaPrepared | None) -> str | None:
    """An approval may come hours after the order; its blockhash has expired by then."""
    if not sole_signer:
        raise ApprovalStale
    return prepared.blockhash if prepared else None


def _unlock_solana(secret: bytes, parsed: solana_message.SolanaTransaction, blockhash: str | None) -> Unlocked:
    def sign() -> Produced:
        signature, raw = solana_sign.sign(parsed, secret, blockhash)
        return Produced(signature, signature, raw)

    return Unlocked(str(Keypair.from_seed(secret).pubkey()), sign)
