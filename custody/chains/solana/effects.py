"""The effects of a Solana transaction on a wallet, and whether they are what its caller says.

Promise: every lamport and token that the wallet's signature moves is in an effect; a message with anything we cannot
read is refused as a whole.
"""

from collections.abc import Iterable, Sequence

from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address

from custody.chains.solana import programs
from custody.chains.solana.accounts import TokenAccount
from custody.chains.solana.family import SOLANA_NATIVE
from custody.chains.solana.instructions import (
    UNIT_LIMIT,
    UNIT_PRICE,
    Closing,
    ComputeSetting,
    Meaning,
    NativeTransfer,
    Revocation,
    TokenAccountCreation,
    TokenTransfer,
    read,
    refuse,
    wrapped_account,
)
from custody.chains.solana.message import UNSIGNED, SolanaTransaction, SolanaUnsupported
from custody.chains.types import Effect, Subject
from custody.chains.units import Unit
from custody.kit.errors import Invalid

LAMPORTS_PER_SIGNATURE = 5_000
MAX_COMPUTE_UNITS = 1_400_000
COMPUTE_UNITS_PER_INSTRUCTION = 200_000
# A Token-2022 account has 170 bytes, and up to 195 with what its mint may ask for, which no message tells.
RENT = {programs.TOKEN: (2_039_280, "rent"), programs.TOKEN_2022: (2_248_080, "rent at most")}


class DeclaredMismatch(Invalid):
    """The transaction does not do what `to` and `value` say."""


class FeeAboveCap(Invalid):
    """Fee and rent are above the cap of this chain."""


def subject_of(parsed: SolanaTransaction, our_address: str, chain_id: int, caip2: str, declared_to: str) -> Subject:
    """Decode what the message does, or raise SolanaUnsupported.

    `declared_to` only helps to name the owner behind a token account: a token account says nothing about its owner,
    but an owner and a mint have exactly one associated account. It is never believed. Of a fee that somebody else pays
    there is no effect.
    """
    ours = Pubkey.from_string(our_address)
    _check_signers(parsed, ours)
    meanings = _read_all(parsed, ours)
    owners = {ours, *(one.owner for one in meanings if isinstance(one, TokenAccountCreation)), _address(declared_to)}
    moved = [_movement(one, ours, owners) for one in meanings if isinstance(one, NativeTransfer | TokenTransfer)]
    tidied = [_tidying(one, our_address) for one in meanings if isinstance(one, Revocation | Closing)]
    rent = [_rent(one, our_address) for one in meanings if isinstance(one, TokenAccountCreation)]
    fee = [_fee(parsed, meanings, our_address)] if parsed.signers[0] == ours else []
    return Subject("solana", "solana", chain_id, caip2, declared_to, (*moved, *tidied, *rent, *fee))


def check_declared(subject: Subject, our_address: str, to: str, value: int) -> None:
    """Raise DeclaredMismatch unless `to` is paid by the message, and `value` is all the lamports that it transfers.

    Of several receivers `to` is any one: the rules judge each by its own effect, and limits count the sum. Where nobody
    else is paid, `to` is the wallet itself.
    """
    moved = [effect for effect in subject.effects if effect.kind == "transfer"]
    paid = sorted({str(effect.to) for effect in moved} - {our_address})
    if to not in (paid or [our_address]):
        tokens = [effect for effect in moved if effect.asset != SOLANA_NATIVE]
        held = any(effect.account and effect.account.address == effect.to for effect in tokens)
        must = " or ".join(paid or [our_address]) + (", or the owner of a token account among these" if held else "")
        said = " and ".join(paid) or "nobody but this wallet"
        raise DeclaredMismatch(f"The transaction pays {said}, not {to}: `to` must be {must}.")
    total = sum(effect.amount for effect in moved if effect.asset == SOLANA_NATIVE)
    if total != value:
        raise DeclaredMismatch(f'The transaction moves {total} lamports, not {value}: `value` must be "{total}".')


def check_sendable(parsed: SolanaTransaction, our_address: str) -> None:
    """Raise SolanaUnsupported if somebody else, who pays the fee, signs after us: only they can broadcast it."""
    payer = parsed.signers[0]
    if str(payer) != our_address and parsed.signatures[0] == UNSIGNED:
        raise SolanaUnsupported(
            f"{payer} pays the fee and has not signed yet: send `broadcast` false, and pass `signedTransaction` on to "
            "them to sign and broadcast."
        )


def check_fees(subject: Subject, cap: int) -> None:
    """Raise FeeAboveCap if network fee and rent together are above `cap` lamports, regardless of who gets the rent."""
    total = sum(effect.amount for effect in subject.effects if effect.kind == "fee")
    if total > cap:
        sol = Unit("SOL", 9, "lamports")
        raise FeeAboveCap(f"Fee and rent are {sol.tell(total)}; this chain allows {sol.tell(cap)}.")


def _check_signers(parsed: SolanaTransaction, ours: Pubkey) -> None:
    if ours not in parsed.signers:
        raise SolanaUnsupported("This wallet is not among the transaction's signers.")
    message = to_bytes_versioned(parsed.message)
    named = {account for instruction in parsed.instructions for account in instruction.accounts}
    for signer, signature in zip(parsed.signers, parsed.signatures, strict=True):
        # A co-signer who signs last decides when, and whether, what we signed happens. Who only pays the fee may: all
        # that moves is fixed, and the blockhash lets it happen within about a minute or never.
        sponsors = signer == parsed.signers[0] and signature == UNSIGNED and signer not in named
        if signer != ours and not sponsors and not signature.verify(signer, message):
            why = ", which stands in an instruction," if signer in named else ""
            raise SolanaUnsupported(f"{signer}{why} must sign the transaction before this wallet does.")


def _read_all(parsed: SolanaTransaction, ours: Pubkey) -> list[Meaning]:
    meanings = [read(instruction, ours) for instruction in parsed.instructions]
    paid_into = {one.destination for one in meanings if isinstance(one, TokenTransfer)}
    seen: set[int] = set()
    for instruction, one in zip(parsed.instructions, meanings, strict=True):
        if isinstance(one, ComputeSetting):
            if one.tag in seen:
                refuse(instruction, "it is given twice")
            seen.add(one.tag)
        # The owner of a token account may close it and keep the rent, so one is created only with a payment.
        if isinstance(one, TokenAccountCreation) and one.owner != ours and one.address not in paid_into:
            refuse(instruction, "the transaction does not pay into the account it creates")
    return meanings


def _movement(one: NativeTransfer | TokenTransfer, ours: Pubkey, owners: Iterable[Pubkey]) -> Effect:
    from_ = str(ours)
    if isinstance(one, NativeTransfer):
        # Lamports that we wrap stay ours, and count: no limit on the coin guards the token that they become.
        if one.to == wrapped_account(ours):
            return Effect("transfer", SOLANA_NATIVE, one.lamports, from_=from_, to=from_, label="wrap")
        # What no key can hold is a program's: it may be a token account, whose owner closes it and has the lamports.
        held = not one.to.is_on_curve()
        account = TokenAccount(str(one.to), str(programs.WRAPPED_SOL), str(programs.TOKEN)) if held else None
        return Effect("transfer", SOLANA_NATIVE, one.lamports, from_, str(one.to), account=account, unowned=held)
    receiver, known = one.destination, False
    for owner in owners:
        if get_associated_token_address(owner, one.mint, one.program) == one.destination:
            receiver, known = owner, owner.is_on_curve()
    account = TokenAccount(str(one.destination), str(one.mint), str(one.program))
    to = str(receiver)
    return Effect("transfer", f"solana:{one.mint}", one.amount, from_, to, account=account, unowned=not known)


def _tidying(one: Revocation | Closing, from_: str) -> Effect:
    if isinstance(one, Revocation):
        return Effect("approval", None, 0, from_=from_, label=f"revoke on {one.account}", revokes=True)
    # How much comes back is in no byte; it never counts against what went out.
    return Effect("transfer", SOLANA_NATIVE, 0, from_=from_, to=from_, label=f"close {one.account}")


def _rent(one: TokenAccountCreation, from_: str) -> Effect:
    # Spend, with the account's owner in `to`: the owner may close the account and keep the rent; this wallet cannot.
    lamports, label = RENT[one.program]
    return Effect("fee", SOLANA_NATIVE, lamports, from_=from_, to=str(one.owner), label=label)


def _fee(parsed: SolanaTransaction, meanings: Sequence[Meaning], from_: str) -> Effect:
    asked = {one.tag: one.figure for one in meanings if isinstance(one, ComputeSetting)}
    working = sum(not isinstance(one, ComputeSetting) for one in meanings)
    price, limit = asked.get(UNIT_PRICE, 0), asked.get(UNIT_LIMIT, COMPUTE_UNITS_PER_INSTRUCTION * working)
    priority = -(-price * min(limit, MAX_COMPUTE_UNITS) // 1_000_000)
    lamports = LAMPORTS_PER_SIGNATURE * len(parsed.signers) + priority
    return Effect("fee", SOLANA_NATIVE, lamports, from_=from_, label="network fee")


def _address(text: str) -> Pubkey:
    try:
        return Pubkey.from_string(text)
    except ValueError as problem:
        raise DeclaredMismatch("`to` is not a Solana address.") from problem
