"""A node's manners around the ledger: admission, a queue by nonce, mining at once or when told to."""

from collections.abc import Mapping
from typing import Any

from eth_utils.exceptions import ValidationError

from ops.local_chain import play_usdc
from ops.local_chain.json_rpc import RpcFailure
from ops.local_chain.ledger import BLOCK_GAS, CHAIN_ID, Ledger, Snapshot

KNOWN_TYPES = (0, 2)


class Node:
    """Takes signed transactions; mines each as soon as its nonce is next, and keeps later ones until then.

    With `automine` off it keeps all of them until `mine`. A snapshot can be gone back to once.
    """

    def __init__(self, accounts: Mapping[bytes, Any] | None = None) -> None:
        self.ledger = Ledger(accounts)
        self.waiting: dict[bytes, dict[int, Any]] = {}
        self.automine = True
        self._snapshots: dict[int, tuple[Snapshot, dict[bytes, dict[int, Any]]]] = {}

    def send(self, raw: bytes) -> bytes:
        """Admit a transaction or raise RpcFailure in the words go-ethereum uses; give its hash."""
        transaction = self._decode(raw)
        self._check(transaction)
        queue = self.waiting.setdefault(transaction.sender, {})
        rival = queue.get(transaction.nonce)
        # Ten percent more, as on public networks.
        if rival is not None and _price(transaction) * 10 < _price(rival) * 11:
            raise RpcFailure("replacement transaction underpriced")
        queue[transaction.nonce] = transaction
        if self.automine:
            self._drain(transaction.sender)
        return bytes(transaction.hash)

    def mine(self) -> None:
        """Mine what waits, a block for each, or one empty block where nothing does."""
        before = self.ledger.height
        for sender in list(self.waiting):
            self._drain(sender)
        if self.ledger.height == before:
            self.ledger.mine()

    def drop(self, hash_: bytes) -> bool:
        """Forget a transaction that waits, as nodes do when they have too many."""
        for sender, queue in list(self.waiting.items()):
            for nonce, waiting in list(queue.items()):
                if waiting.hash == hash_:
                    del queue[nonce]
                    if not queue:
                        del self.waiting[sender]
                    return True
        return False

    def snapshot(self) -> int:
        """Remember this moment; give its number."""
        number = max(self._snapshots, default=0) + 1
        self._snapshots[number] = (self.ledger.snapshot(), {who: dict(queue) for who, queue in self.waiting.items()})
        return number

    def revert(self, number: int) -> bool:
        """Go back to a moment; it and all later ones are used up."""
        if number not in self._snapshots:
            return False
        chain, self.waiting = self._snapshots[number]
        self.ledger.revert(chain)
        self._snapshots = {one: kept for one, kept in self._snapshots.items() if one < number}
        return True

    def fund(self, address: bytes, wei: int) -> bytes:
        """Give money out of the faucet."""
        payment = self.ledger.fund(address, wei)
        self.ledger.mine(payment)
        return bytes(payment.hash)

    def fund_usdc(self, address: bytes, units: int) -> bytes:
        """Give play USDC out of the faucet."""
        payment = self.ledger.fund(play_usdc.ADDRESS, 0, play_usdc.transfer(address, units))
        self.ledger.mine(payment)
        return bytes(payment.hash)

    def pending_nonce(self, address: bytes) -> int:
        """The next free nonce after what is mined and what waits without a gap."""
        following = int(self.ledger.state().get_nonce(address))
        while following in self.waiting.get(address, {}):
            following += 1
        return following

    def find_waiting(self, hash_: bytes) -> Any | None:
        """A transaction that waits for an earlier nonce."""
        return next((one for queue in self.waiting.values() for one in queue.values() if one.hash == hash_), None)

    def _decode(self, raw: bytes) -> Any:
        try:
            transaction = self.ledger.decode(raw)
            transaction.check_signature_validity()
            chain_id = transaction.chain_id
        except Exception as problem:
            # py-evm, rlp and eth-keys share no exception; whatever it was, the bytes are not a transaction.
            raise RpcFailure(f"cannot decode the transaction: {problem}") from problem
        if getattr(transaction, "type_id", None) not in (None, *KNOWN_TYPES):
            raise RpcFailure("transaction type not supported")
        if chain_id is None:
            raise RpcFailure("only replay-protected (EIP-155) transactions allowed over RPC")
        if chain_id != CHAIN_ID:
            raise RpcFailure(f"invalid chain id for signer: have {chain_id} want {CHAIN_ID}")
        return transaction

    def _check(self, transaction: Any) -> None:
        state = self.ledger.state()
        if transaction.hash in self.ledger.mined or self.find_waiting(transaction.hash):
            raise RpcFailure("already known")
        next_nonce = state.get_nonce(transaction.sender)
        if transaction.nonce < next_nonce:
            raise RpcFailure(f"nonce too low: next nonce {next_nonce}, tx nonce {transaction.nonce}")
        if transaction.gas < transaction.intrinsic_gas:
            raise RpcFailure(f"intrinsic gas too low: gas {transaction.gas}, minimum {transaction.intrinsic_gas}")
        if transaction.gas > BLOCK_GAS:
            raise RpcFailure("exceeds block gas limit")
        if _price(transaction) < self.ledger.next_base_fee():
            raise RpcFailure("max fee per gas less than block base fee")
        has, needs = state.get_balance(transaction.sender), transaction.value + transaction.gas * _price(transaction)
        if has < needs:
            raise RpcFailure(f"insufficient funds for gas * price + value: have {has} want {needs}")

    def _drain(self, sender: bytes) -> None:
        queue = self.waiting[sender]
        while (transaction := queue.pop(self.ledger.state().get_nonce(sender), None)) is not None:
            try:
                self.ledger.mine(transaction)
            except ValidationError:
                # What it was checked against has changed since it came, the balance most likely. It is dropped.
                break
        if not queue:
            del self.waiting[sender]


def _price(transaction: Any) -> int:
    return int(transaction.max_fee_per_gas)
