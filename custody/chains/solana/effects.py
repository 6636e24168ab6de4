"""What a Solana transaction does to a wallet, and whether that is what its caller says.

Promise: every lamport and token that the wallet's signature moves is in an effect; a message with anything we cannot
read is refused as a whole.
"""

from collections.abc import Iterable, Sequence

from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.solana import programs
from custody.chains.solana.family import SOLANA_NATIVE
from custody.chains.solana.instructions import (
    ComputeLimit,
    ComputePrice,
    Meaning,
    NativeTransfer,
    TokenAccountCreation,
    TokenTransfer,
    read,
    refuse,
)
from custody.chains.solana.message import SolanaTransaction, SolanaUnsupported
from custody.chains.types import Effect, Subject
from custody.chains.units import Unit
from custody.kit.errors import Invalid

LAMPORTS_PER_SIGNATURE = 5_000
MAX_COMPUTE_UNITS = 1_400_000
COMPUTE_UNITS_PER_INSTRUCTION = 200_000
# A Token-2022 account carries every extension its mint asks for: up to 195 bytes instead of 165.
RENT = {programs.TOKEN: 2_039_280, programs.TOKEN_2022: 2_248_080}


class DeclaredMismatch(Invalid):
    """The transaction does not do what `to` and `value` say."""


class FeeAboveCap(Invalid):
    """Fee and rent are above the cap of this chain."""


def subject_of(parsed: SolanaTransaction, our_address: str, chain_id: int, caip2: str, declared_to: str) -> Subject:
    """Decode what the message does, or raise SolanaUnsupported.

    `declared_to` only helps to name the owner behind a token account: a token account says nothing about its owner,
    but an owner and a mint have exactly one associated account. It is never believed.
    """
    ours = Pubkey.from_string(our_address)
    _check_signers(parsed, ours)
    meanings = _read_all(parsed, ours)
    owners = {ours, *(one.owner for one in meanings if isinstance(one, TokenAccountCreation)), _address(declared_to)}
    moved = [_moved(one, our_address, owners) for one in meanings if isinstance(one, NativeTransfer | TokenTransfer)]
    rent = [_rent(one, our_address) for one in meanings if isinstance(one, TokenAccountCreation)]
    fee = [_fee(parsed, meanings, our_address)] if parsed.signers[0] == ours else []
    return Subject("solana", "solana", chain_id, caip2, declared_to, (*moved, *rent, *fee))


def check_declared(subject: Subject, to: str, value: int) -> None:
    """Raise DeclaredMismatch unless `to` and `value` are exactly what the message moves.

    Native transfers: one destination, and `value` is their sum. Tokens alone: `value` is 0 and `to` the receiving
    owner. Tokens beside a native transfer are not declared; the rules judge them by their own effects.
    """
    moved = [effect for effect in subject.effects if effect.kind == "transfer"]
    native = [effect for effect in moved if effect.asset == SOLANA_NATIVE]
    receivers = {effect.to for effect in native or moved}
    total = sum(effect.amount for effect in native)
    if receivers != {to}:
        found = ", ".join(sorted(str(receiver) for receiver in receivers)) or "nobody"
        raise DeclaredMismatch(f"The transaction pays {found}, not {to}: `to` must name whom it pays.")
    if total != value:
        raise DeclaredMismatch(f'The transaction moves {total} lamports, not {value}: `value` must be "{total}".')


def check_fees(subject: Subject, cap: int) -> None:
    """Raise FeeAboveCap if network fee and rent together are above `cap` lamports, regardless of who gets the rent."""
    total = sum(effect.amount for effect in subject.effects if effect.kind == "fee")
    if total > cap:
        sol = Unit("SOL", 9, "lamports")
        raise FeeAboveCap(f"Fee and rent are {sol.told(total)}; this chain allows {sol.told(cap)}.")


def _check_signers(parsed: SolanaTransaction, ours: Pubkey) -> None:
    if ours not in parsed.signers:
        raise SolanaUnsupported("This wallet is not among the transaction's signers.")
    message = to_bytes_versioned(parsed.message)
    for signer, signature in zip(parsed.signers, parsed.signatures, strict=True):
        # A co-signer who signs last decides when, and whether, what we signed happens.
        if signer != ours and not signature.verify(signer, message):
            raise SolanaUnsupported(f"{signer} must sign the transaction before this wallet does.")


def _read_all(parsed: SolanaTransaction, ours: Pubkey) -> list[Meaning]:
    meanings = [read(instruction, ours) for instruction in parsed.instructions]
    paid_into = {one.destination for one in meanings if isinstance(one, TokenTransfer)}
    seen: set[type[Meaning]] = set()
    for instruction, one in zip(parsed.instructions, meanings, strict=True):
        if isinstance(one, ComputeLimit | ComputePrice):
            if type(one) in seen:
                refuse(instruction, "it is given twice")
            seen.add(type(one))
        # The owner of a token account may close it and keep the rent, so one is created only with a payment.
        if isinstance(one, TokenAccountCreation) and one.owner != ours and one.address not in paid_into:
            refuse(instruction, "the transaction does not pay into the account it creates")
    return meanings


def _moved(one: NativeTransfer | TokenTransfer, from_: str, owners: Iterable[Pubkey | None]) -> Effect:
    if isinstance(one, NativeTransfer):
        return Effect("transfer", SOLANA_NATIVE, one.lamports, from_=from_, to=str(one.to))
    receiver = one.destination
    for owner in owners:
        if owner and get_associated_token_address(owner, one.mint, one.program) == one.destination:
            receiver = owner
    return Effect("transfer", f"solana:{one.mint}", one.amount, from_=from_, to=str(receiver))


def _rent(one: TokenAccountCreation, from_: str) -> Effect:
    # Spend, with the account's owner in `to`: the owner may close the account and keep the rent; this wallet cannot.
    return Effect("fee", SOLANA_NATIVE, RENT[one.program], from_=from_, to=str(one.owner), label="rent")


def _fee(parsed: SolanaTransaction, meanings: Sequence[Meaning], from_: str) -> Effect:
    price = next((one.micro_lamports for one in meanings if isinstance(one, ComputePrice)), 0)
    working = sum(not isinstance(one, ComputeLimit | ComputePrice) for one in meanings)
    limit = next(
        (one.units for one in meanings if isinstance(one, ComputeLimit)), COMPUTE_UNITS_PER_INSTRUCTION * working
    )
    priority = -(-price * min(limit, MAX_COMPUTE_UNITS) // 1_000_000)
    lamports = LAMPORTS_PER_SIGNATURE * len(parsed.signers) + priority
    return Effect("fee", SOLANA_NATIVE, lamports, from_=from_, label="network fee")


def _address(text: str) -> Pubkey | None:
    try:
        return Pubkey.from_string(text)
    except ValueError as problem:
        raise DeclaredMismatch("`to` is not a Solana address.") from problem
