"""Blocks and balances: py-evm with one transaction per block and chain id 31337.

py-evm executes; it has neither a queue nor a node's manners. Those are in `node.py`.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from eth.chains.base import MiningChain
from eth.consensus.applier import ConsensusApplier
from eth.consensus.noproof import NoProofConsensus
from eth.constants import BLANK_ROOT_HASH
from eth.db.atomic import AtomicDB
from eth.db.backends.memory import MemoryDB
from eth.estimators.gas import binary_gas_search_1000_tolerance
from eth.vm.forks.shanghai import ShanghaiVM
from eth.vm.spoof import SpoofTransaction
from eth_keys.datatypes import PrivateKey

from custody.kit import clock
from ops.local_chain import play_usdc

CHAIN_ID = 31337
BLOCK_GAS = 30_000_000
GWEI = 10**9
TIP = GWEI
NOBODY = b"\0" * 20
# Worthless: the key of this chain's faucet, which exists only in the memory of this process.
FAUCET = PrivateKey(hashlib.sha256(b"the local chain's faucet").digest())
FAUCET_WEI = 10**9 * 10**18


class _Chain(MiningChain):
    chain_id = CHAIN_ID
    vm_configuration = ConsensusApplier(NoProofConsensus).amend_vm_configuration(((0, ShanghaiVM),))
    gas_estimator = staticmethod(binary_gas_search_1000_tolerance)

    def create_header_from_parent(self, parent_header: Any, **fields: Any) -> Any:
        return super().create_header_from_parent(parent_header, **fields, gas_limit=parent_header.gas_limit)


class Mined(msgspec.Struct, frozen=True):
    """A transaction with what came of it."""

    transaction: Any
    header: Any
    receipt: Any
    succeeded: bool
    contract: bytes | None


class Snapshot(msgspec.Struct, frozen=True):
    """A moment of the chain that can be gone back to."""

    store: dict[bytes, bytes]
    mined: dict[bytes, Mined]
    in_block: dict[int, bytes]


class Ledger:
    """The chain's state; `accounts` are there from the first block on. Not safe for several threads at once."""

    def __init__(self, accounts: Mapping[bytes, Any] | None = None) -> None:
        faucet = FAUCET.public_key.to_canonical_address()
        genesis: Any = {
            "coinbase": NOBODY,
            "difficulty": 0,
            "extra_data": b"",
            "gas_limit": BLOCK_GAS,
            "mix_hash": b"\0" * 32,
            "nonce": b"\0" * 8,
            "receipt_root": BLANK_ROOT_HASH,
            "transaction_root": BLANK_ROOT_HASH,
            "timestamp": int(clock.now().timestamp()),
        }
        wealth: Any = {
            faucet: {"balance": FAUCET_WEI, "nonce": 0, "code": b"", "storage": {}},
            play_usdc.ADDRESS: play_usdc.account(faucet),
            **(accounts or {}),
        }
        self._store = MemoryDB()
        self._chain: Any = _Chain.from_genesis(AtomicDB(self._store), genesis, wealth)
        self._builder: Any = self._chain.get_vm().get_transaction_builder()
        self.mined: dict[bytes, Mined] = {}
        self.in_block: dict[int, bytes] = {}

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return int(self._chain.get_canonical_head().block_number)

    def header(self, number: int) -> Any:
        """The header of a block."""
        return self._chain.get_canonical_block_header_by_number(number)

    def state(self, number: int | None = None) -> Any:
        """Balances, nonces and code as they were after a block."""
        return self._chain.get_vm(self.header(self.height if number is None else number)).state

    def next_base_fee(self) -> int:
        """Compute what gas costs at least in the block to come."""
        return int(self._chain.header.base_fee_per_gas)

    def decode(self, raw: bytes) -> Any:
        """Read a signed transaction of any type the chain knows."""
        return self._builder.decode(raw)

    def mine(self, transaction: Any | None = None) -> None:
        """Mine a block with one transaction, or an empty one."""
        wanted = [transaction] if transaction is not None else []
        result, receipts, computations = self._chain.mine_all(wanted, coinbase=NOBODY)
        if transaction is None:
            return
        [receipt], [computation] = receipts, computations
        contract = computation.msg.storage_address if computation.msg.is_create else None
        header = result.imported_block.header
        self.mined[transaction.hash] = Mined(transaction, header, receipt, computation.is_success, contract)
        self.in_block[header.block_number] = transaction.hash

    def snapshot(self) -> "Snapshot":
        """The chain as it is now."""
        return Snapshot(dict(self._store.kv_store), dict(self.mined), dict(self.in_block))

    def revert(self, to: "Snapshot") -> None:
        """Make the chain what it was: whatever came after it never happened."""
        self._store = MemoryDB(dict(to.store))
        self._chain = _Chain(AtomicDB(self._store))
        self.mined, self.in_block = dict(to.mined), dict(to.in_block)

    def fund(self, to: bytes, wei: int, data: bytes = b"") -> Any:
        """Sign a payment out of the faucet, or a call by it."""
        price = TIP + 2 * self.next_base_fee()
        nonce = self.state().get_nonce(FAUCET.public_key.to_canonical_address())
        unsigned = self._builder.new_unsigned_dynamic_fee_transaction(
            chain_id=CHAIN_ID,
            nonce=nonce,
            max_priority_fee_per_gas=TIP,
            max_fee_per_gas=price,
            gas=100_000,
            to=to,
            value=wei,
            data=data,
            access_list=(),
        )
        return unsigned.as_signed_transaction(FAUCET, CHAIN_ID)

    def call(
        self, sender: bytes, to: bytes, value: int, data: bytes, gas: int = BLOCK_GAS, number: int | None = None
    ) -> bytes:
        """Execute on the state after a block, without keeping anything; raises py-evm's Revert or another VMError."""
        at = self._head() if number is None else self.header(number)
        return bytes(self._chain.get_transaction_result(self._pretend(sender, to, value, data, gas, number), at))

    def estimate(self, sender: bytes, to: bytes, value: int, data: bytes) -> int:
        """The gas a transaction would need."""
        return int(self._chain.estimate_gas(self._pretend(sender, to, value, data), self._head()))

    def _head(self) -> Any:
        return self._chain.get_canonical_head()

    def _pretend(
        self, sender: bytes, to: bytes, value: int, data: bytes, gas: int = BLOCK_GAS, number: int | None = None
    ) -> Any:
        nonce = self.state(number).get_nonce(sender)
        unsigned = self._builder.create_unsigned_transaction(
            nonce=nonce, gas_price=0, gas=min(gas, BLOCK_GAS), to=to, value=value, data=data
        )
        return SpoofTransaction(unsigned, from_=sender)
