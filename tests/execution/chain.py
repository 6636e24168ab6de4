"""A chain of one block that says of every transaction what it changed.

Every write to storage is remembered, and every hash that a contract made of 64 bytes, so a changed slot is known by its
variable and its keys: nothing is looked for only where it is expected.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from eth.chains.base import MiningChain
from eth.consensus.applier import ConsensusApplier
from eth.consensus.noproof import NoProofConsensus
from eth.constants import BLANK_ROOT_HASH
from eth.db.atomic import AtomicDB
from eth.vm.forks.cancun import CancunVM
from eth.vm.forks.cancun.computation import CancunComputation
from eth.vm.forks.cancun.state import CancunState
from eth.vm.logic.sha3 import sha3
from eth.vm.message import Message
from eth.vm.opcode import as_opcode
from eth_utils import ValidationError

CHAIN_ID = 1
NOW = 1_750_000_000
NOBODY = b"\xfe" * 20
GAS = 3_000_000
PRICE = 2 * 10**9
_SHA3 = 0x20
_MAPPING = 64


class Change(msgspec.Struct, frozen=True):
    """A slot that holds something else: `variable` of a contract at `keys`, outermost first."""

    contract: bytes
    slot: int
    keys: tuple[int, ...]
    before: int
    after: int


class Frame(msgspec.Struct, frozen=True):
    """A call that was made in somebody's name: `contract` is whose state it works on."""

    sender: bytes
    contract: bytes
    selector: str
    value: int


class Outcome(msgspec.Struct, frozen=True):
    """The result of a transaction; coins are changes of balances without the fee."""

    succeeded: bool
    fee: int
    coins: Mapping[bytes, int]
    changes: tuple[Change, ...]
    frames: tuple[Frame, ...]


class _Heard:
    """State from before contracts wrote, and what they hashed."""

    def __init__(self) -> None:
        self.slots: dict[tuple[bytes, int], int] = {}
        self.coins: dict[bytes, int] = {}
        self.hashed: dict[int, bytes] = {}


_heard = _Heard()


def _hash(computation: Any) -> None:
    start, size = (one if isinstance(one, int) else int.from_bytes(one) for one in computation._stack.values[:-3:-1])
    sha3(computation)
    if size == _MAPPING:
        made = computation._stack.values[-1]
        preimage = bytes(computation.memory_read_bytes(start, size))
        _heard.hashed[made if isinstance(made, int) else int.from_bytes(made)] = preimage


class _Computation(CancunComputation):
    opcodes = {  # noqa: RUF012 - as its parents have it
        **CancunComputation.opcodes,
        _SHA3: as_opcode(gas_cost=30, logic_fn=_hash, mnemonic="SHA3"),
    }


class _State(CancunState):
    computation_class = _Computation

    def set_storage(self, address: bytes, slot: int, value: int) -> None:
        if (address, slot) not in _heard.slots:
            _heard.slots[address, slot] = self.get_storage(address, slot)
        super().set_storage(address, slot, value)

    def set_balance(self, address: bytes, balance: int) -> None:
        if address not in _heard.coins:
            _heard.coins[address] = self.get_balance(address)
        super().set_balance(address, balance)

    def delta_balance(self, address: bytes, delta: int) -> None:
        if address not in _heard.coins:
            _heard.coins[address] = self.get_balance(address)
        super().delta_balance(address, delta)


class _Vm(CancunVM):
    _state_class = _State


class _Chain(MiningChain):
    chain_id = CHAIN_ID
    vm_configuration = ConsensusApplier(NoProofConsensus).amend_vm_configuration(((0, _Vm),))


class Chain:
    """One block to come, in which everything happens. Not for several threads."""

    def __init__(self) -> None:
        genesis: Any = {
            "coinbase": NOBODY,
            "difficulty": 0,
            "extra_data": b"",
            "gas_limit": 30_000_000,
            "mix_hash": b"\0" * 32,
            "nonce": b"\0" * 8,
            "receipt_root": BLANK_ROOT_HASH,
            "transaction_root": BLANK_ROOT_HASH,
            "timestamp": NOW,
            "withdrawals_root": BLANK_ROOT_HASH,
            "blob_gas_used": 0,
            "excess_blob_gas": 0,
            "parent_beacon_block_root": b"\0" * 32,
        }
        self._chain: Any = _Chain.from_genesis(AtomicDB(), genesis, {})
        self._vm: Any = self._chain.get_vm()
        self._state: Any = self._vm.state
        self._builder: Any = self._vm.get_transaction_builder()
        # A price of gas makes contracts pay it back that promise to; nobody pays it.
        context: Any = self._state.transaction_context_class
        self._context = context(gas_price=PRICE, origin=NOBODY, blob_versioned_hashes=())
        self._known: dict[int, bytes] = {}

    def fund(self, who: bytes, wei: int) -> None:
        """Give coins."""
        self._state.set_balance(who, wei)

    def place(self, address: bytes, creation: bytes) -> None:
        """Run a contract's creation where its code is to stand, so that what it notes of its address is right."""
        self._state.set_code(address, self._message(NOBODY, address, b"", 0, creation))

    def do(self, sender: bytes, to: bytes, data: bytes, value: int = 0) -> bytes:
        """Make a call for good, without a transaction; a revert is an error."""
        return self._message(sender, to, data, value, self._state.get_code(to))

    def settle(self) -> None:
        """Make all so far what every case begins with."""
        self._state.lock_changes()
        self._known |= _heard.hashed

    @contextmanager
    def case(self) -> Iterator[None]:
        """Undo everything that happens inside."""
        start = self._state.snapshot()
        try:
            yield
        finally:
            self._state.revert(start)
            self._state.clear_transient_storage()

    def storage(self, contract: bytes, slot: int) -> int:
        """One slot."""
        return int(self._state.get_storage(contract, slot))

    def coins(self, who: bytes) -> int:
        """A balance."""
        return int(self._state.get_balance(who))

    def code(self, contract: bytes) -> bytes:
        """The code of a contract."""
        return bytes(self._state.get_code(contract))

    def nonce(self, who: bytes) -> int:
        """The next nonce."""
        return int(self._state.get_nonce(who))

    def execute(self, raw: bytes) -> Outcome | None:
        """Execute signed bytes as a block would; None if no block takes them."""
        self._hear()
        transaction = self._builder.decode(raw)
        start = self._state.snapshot()
        try:
            transaction.validate()
            self._state.validate_transaction(transaction)
            self._vm.validate_transaction_against_header(self._vm.get_header(), transaction)
            computation = self._state.apply_transaction(transaction)
        except ValidationError:
            self._state.revert(start)
            return None
        return self._outcome(computation, transaction.sender)

    def act(self, sender: bytes, to: bytes, data: bytes, value: int = 0) -> Outcome:
        """Let somebody else make a call, as anybody may; a revert changes nothing."""
        self._hear()
        return self._outcome(self._compute(sender, to, data, value, self._state.get_code(to)), None)

    def _hear(self) -> None:
        global _heard  # noqa: PLW0603 - the instruction has no other way to it
        _heard = _Heard()

    def _outcome(self, computation: Any, payer: bytes | None) -> Outcome:
        changes = [
            Change(contract, *self._meaning(slot), before, after)
            for (contract, slot), before in _heard.slots.items()
            if (after := self.storage(contract, slot)) != before
        ]
        moved = {who: self.coins(who) - before for who, before in _heard.coins.items()}
        fee = 0
        if payer is not None:
            # What was burnt of it is nobody's gain.
            fee = -sum(moved.values())
            moved[payer] += fee
        frames = tuple(_frames(computation)) if computation.is_success else ()
        return Outcome(
            bool(computation.is_success), fee, {who: by for who, by in moved.items() if by}, tuple(changes), frames
        )

    def _meaning(self, slot: int) -> tuple[int, tuple[int, ...]]:
        keys: tuple[int, ...] = ()
        while (preimage := _heard.hashed.get(slot) or self._known.get(slot)) is not None:
            keys = (int.from_bytes(preimage[:32]), *keys)
            slot = int.from_bytes(preimage[32:])
        return slot, keys

    def _message(self, sender: bytes, to: bytes, data: bytes, value: int, code: bytes) -> bytes:
        computation = self._compute(sender, to, data, value, code)
        computation.raise_if_error()
        return bytes(computation.output)

    def _compute(self, sender: bytes, to: bytes, data: bytes, value: int, code: bytes) -> Any:
        message = Message(gas=20_000_000, to=to, sender=sender, value=value, data=data, code=code)
        return self._state.computation_class.apply_message(self._state, message, self._context)


def _frames(computation: Any) -> Iterator[Frame]:
    message = computation.msg
    data = bytes(message.data[:4])
    yield Frame(message.sender, message.storage_address, "0x" + data.hex(), message.value)
    for child in computation.children:
        if child.is_success:
            yield from _frames(child)
