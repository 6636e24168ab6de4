"""Messages that a wallet signs as they are: the EVM wallet under the prefix of EIP-191, the Solana wallet bare."""

from collections.abc import Callable, Mapping
from typing import Any

import coincurve
import msgspec
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature

from custody.chains.evm.personal_message import digest, recover
from custody.chains.evm.signature import SignatureWrong, sign_digest
from custody.chains.families import caip2
from custody.chains.message_effects import read_order, subject_of
from custody.chains.message_orders import EvmMessageOrder, MessageOrder, SolanaMessageOrder
from custody.chains.message_reading import BadMessage
from custody.chains.messages import Message
from custody.chains.table import ChainTable
from custody.chains.types import Effect
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.kind import Decoded, Draft, Final, Inputs, OrderKind, Produced, chain_of, digest_of, text_of
from signer.wallets.evm import EVM_KEYS
from signer.wallets.keys import WalletKeys
from signer.wallets.solana import SOLANA_KEYS


class MessageDraft(Draft, frozen=True, kw_only=True):
    """A message that was read, and the chain that it or its order names."""

    order: MessageOrder
    message: Message
    place: tuple[int | None, str | None]


class MessageFinal(Final, frozen=True, kw_only=True):
    """The bytes of the message."""

    content: bytes


class MessageKind[Order: MessageOrder, Key](OrderKind[Order, MessageDraft, Decoded, MessageFinal, Key]):
    """`POST /vault/{agentId}/sign-message`, for the wallets of one family.

    `mark` makes a signature of bytes; `verify` says, by another way, whether one is an address's over just these bytes.
    """

    permissions = frozenset({"sign_message"})

    def __init__(
        self,
        keys: WalletKeys[Key],
        order_type: type[Order],
        mark: Callable[[bytes, Key], str],
        verify: Callable[[bytes, str, str], bool],
    ) -> None:
        self.name, self.keys = f"{keys.family}_message", keys
        self.order_type, self.mark, self.verify = order_type, mark, verify

    def check(self, order: Order, inputs: Inputs) -> MessageDraft:
        """Read the message, and refuse what could be taken for something else."""
        message = read_order(order)
        text = text_of(order)
        sent = {"message": order.message} if order.raw is None else {"raw": order.raw}
        return MessageDraft(
            order_text=text,
            digest=digest_of(self.name, text.encode()),
            chain=None,
            broadcast=False,
            reference_id=order.reference_id,
            to_address=None,
            value=None,
            data=msgspec.json.encode(sent).decode(),
            order=order,
            message=message,
            place=self._place(order, message, inputs.chains),
        )

    def effects(self, draft: MessageDraft, facts: Facts) -> Decoded:
        """Nobody knows what a message is good for; a sign-in message must be this wallet's own."""
        return Decoded(subject=subject_of(draft.order, draft.message, facts.address, *draft.place), fee=None)

    def finish(self, draft: MessageDraft, decoded: Decoded, facts: Facts) -> MessageFinal:
        """Nothing is left to fix."""
        return MessageFinal(content=draft.message.raw)

    def sign(self, final: MessageFinal, key: Key) -> Produced:
        """Sign the bytes; a faulty signature can give the key away, and must not leave."""
        signature = self.mark(final.content, key)
        if not self.verify(final.content, signature, self.keys.address(key)):
            raise SignatureWrong
        return Produced(None, signature, None)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the stored message, and check its signature."""
        order = msgspec.json.decode(row["order_text"], type=self.order_type)
        message = read_order(order)
        if not self.verify(message.raw, row["signature"], address):
            raise Tampered
        return subject_of(order, message, address, row["chain_id"], row["caip2"]).effects

    def _place(self, order: Order, message: Message, chains: ChainTable) -> tuple[int | None, str | None]:
        """The number and the CAIP-2 name of the chain: of a sign-in message its own, else what the order says."""
        said, named, number = message.sign_in.chain if message.sign_in else None, None, order.chain_id
        if number is not None:
            family = self.keys.family
            # Solana's clusters have names by which nobody could tell the number.
            named = f"eip155:{number}" if family == "evm" else caip2(chain_of(chains, number, family))
        if None not in (said, named) and said != named:
            raise BadMessage(f"chainId is {named}, and the message says {said}; leave chainId out.", fields=["chainId"])
        if said is None or named is not None:
            return number, named
        if said.startswith("eip155:"):
            return int(said.removeprefix("eip155:")), said
        return next((chain.id for chain in chains.all_of("solana") if caip2(chain) == said), None), said


def _mark_evm(content: bytes, key: coincurve.PrivateKey) -> str:
    return "0x" + sign_digest(digest(content), key).compact.hex()


def _verify_evm(content: bytes, signature: str, address: str) -> bool:
    return recover(content, signature) == address


def _mark_solana(content: bytes, key: Keypair) -> str:
    return str(key.sign_message(content))


def _verify_solana(content: bytes, signature: str, address: str) -> bool:
    return Signature.from_string(signature).verify(Pubkey.from_string(address), content)


EVM_MESSAGE = MessageKind(EVM_KEYS, EvmMessageOrder, _mark_evm, _verify_evm)
SOLANA_MESSAGE = MessageKind(SOLANA_KEYS, SolanaMessageOrder, _mark_solana, _verify_solana)
