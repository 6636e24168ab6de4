"""A PSBT taken apart, and what its bytes do. Amounts are satoshis; transaction ids are in the order of the bytes.

All of it is read by `psbt.py` and proven by `spends.py`; what signs (`sign.py`, `finalise.py`) sees nothing else.
"""

from typing import Final, Literal

import msgspec

from custody.chains.bitcoin.networks import Network

AddressType = Literal["p2wpkh", "p2tr", "p2sh-p2wpkh", "p2pkh"]
# BIP 84, 86, 49 and 44.
PURPOSES: Final[dict[AddressType, int]] = {"p2wpkh": 84, "p2tr": 86, "p2sh-p2wpkh": 49, "p2pkh": 44}


class WalletScope(msgspec.Struct, frozen=True):
    """One address of an agent: `bitcoin:<network>:<type>:<account>:<change>:<index>`."""

    network: Network
    address_type: AddressType
    account: int
    change: int
    index: int

    @property
    def text(self) -> str:
        """The scope in its one spelling."""
        return f"{self.account_name}:{self.change}:{self.index}"

    @property
    def account_name(self) -> str:
        """The beginning of the scope, which all addresses of one account key share."""
        return f"bitcoin:{self.network.name}:{self.address_type}:{self.account}"

    @property
    def account_path(self) -> tuple[int, int, int]:
        """Purpose, coin and account: each hardened below the root."""
        return PURPOSES[self.address_type], self.network.coin, self.account

    @property
    def path(self) -> str:
        """The whole path, as wallets write it: `m/84'/0'/0'/0/3`."""
        purpose, coin, account = self.account_path
        return f"m/{purpose}'/{coin}'/{account}'/{self.change}/{self.index}"


class Account(msgspec.Struct, frozen=True):
    """The public half of an account key (BIP-32): all of its addresses follow from it, and no private key does."""

    public_key: bytes
    chain_code: bytes


class OutPoint(msgspec.Struct, frozen=True):
    """The coin that an input spends."""

    txid: bytes
    index: int


class TxIn(msgspec.Struct, frozen=True):
    """An input of an unsigned transaction."""

    outpoint: OutPoint
    sequence: int


class TxOut(msgspec.Struct, frozen=True):
    """An output: so many satoshis to whom the script says."""

    amount: int
    script: bytes


class Transaction(msgspec.Struct, frozen=True):
    """A transaction without its signatures. `version` is signed, as the bytes have it."""

    version: int
    inputs: tuple[TxIn, ...]
    outputs: tuple[TxOut, ...]
    lock_time: int


class Derivation(msgspec.Struct, frozen=True):
    """A hint which key is meant: the fingerprint of a root, and the path below it. It proves nothing."""

    public_key: bytes
    fingerprint: bytes
    path: tuple[int, ...]


type Pairs = tuple[tuple[bytes, bytes], ...]


class PsbtInput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of one input in a PSBT; `pairs` has every field as it came, those not named here too.

    `previous` has the id of the transaction that made the coin, computed from its bytes, and of its outputs the one
    that the outpoint names, None where there is none.
    """

    pairs: Pairs
    previous: tuple[bytes, TxOut | None] | None = None
    witness_utxo: TxOut | None = None
    sighash: int | None = None
    redeem_script: bytes | None = None
    witness_script: bytes | None = None
    partial_signatures: tuple[tuple[bytes, bytes], ...] = ()
    derivations: tuple[Derivation, ...] = ()
    final_script: bytes | None = None
    final_witness: bytes | None = None
    tap_signature: bytes | None = None
    tap_internal_key: bytes | None = None
    tap_merkle_root: bytes | None = None
    tap_leaves: bool = False
    tap_derivations: tuple[Derivation, ...] = ()


class PsbtOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of one output in a PSBT; derivations of either kind are hints."""

    pairs: Pairs
    derivations: tuple[Derivation, ...] = ()


class Psbt(msgspec.Struct, frozen=True):
    """A PSBT of version 0, read strictly. `unsigned` has the bytes of `transaction`, which no step changes."""

    transaction: Transaction
    unsigned: bytes
    pairs: Pairs
    inputs: tuple[PsbtInput, ...]
    outputs: tuple[PsbtOutput, ...]


class OwnKey(msgspec.Struct, frozen=True):
    """One of an account's keys: its branch (0 receives, 1 is change), its index, and its public half."""

    branch: int
    index: int
    public_key: bytes


class OwnInput(msgspec.Struct, frozen=True):
    """An own input; `signed` where it is of the scope that was asked for."""

    position: int
    key: OwnKey
    signed: bool


class Payment(msgspec.Struct, frozen=True):
    """An output that is not our change; `address` is None of data (OP_RETURN), whose amount is 0, and of bare keys."""

    position: int
    amount: int
    script: bytes
    address: str | None


class Spend(msgspec.Struct, frozen=True, kw_only=True):
    """The proven effects of a PSBT: the coins of every input, who owns them, what is paid, what comes back, the fee.

    `foreign` are the inputs of others. `fee` is never negative; `weight` is the smallest that the whole transaction
    can have once signed. `outflow` is what counts as spend: all payments and the whole fee.
    """

    psbt: Psbt
    scope: WalletScope
    coins: tuple[TxOut, ...]
    own: tuple[OwnInput, ...]
    foreign: tuple[int, ...]
    payments: tuple[Payment, ...]
    change: tuple[int, ...]
    fee: int
    weight: int

    @property
    def outflow(self) -> int:
        """All payments and the whole fee."""
        return sum(payment.amount for payment in self.payments) + self.fee


class SignedPsbt(msgspec.Struct, frozen=True):
    """A PSBT with our signatures in it, its bytes, and the signatures in the order of its inputs."""

    psbt: Psbt
    raw: bytes
    signatures: tuple[bytes, ...]


class FinalTransaction(msgspec.Struct, frozen=True):
    """A transaction that can be sent: its PSBT, its bytes, its id as explorers show it, and its size."""

    psbt: bytes
    raw: bytes
    txid: str
    vsize: int
