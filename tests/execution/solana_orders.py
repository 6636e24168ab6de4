"""Orders on Solana: payments and what wallets do beside them, and what can be done to their instructions."""

import base64
from collections.abc import Callable

import msgspec
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tests.execution.draws import Draws
from tests.execution.solana_world import (
    AGENT,
    ASSOCIATED,
    AUXILIARY,
    BLOCKED,
    CLASSIC,
    COIN_MINT,
    COMPUTE,
    EXTENDED,
    FEE_MINT,
    MEMO,
    NEW_MINT,
    PEOPLE,
    PROGRAM,
    SHOP,
    SPONSOR,
    SYSTEM,
    WRAPPED,
    associated_account,
)

_AMOUNTS = (0, 1, 5, 5, 8, 50, 100, 2_000, 2**40)
_MINTS = (COIN_MINT, COIN_MINT, COIN_MINT, NEW_MINT, FEE_MINT, WRAPPED)
_ADDRESSES = (
    *PEOPLE,
    *PEOPLE,
    AGENT,
    *AUXILIARY.values(),
    *(associated_account(who, COIN_MINT) for who in (*PEOPLE, AGENT)),
    associated_account(BLOCKED, WRAPPED),
)


class Order(msgspec.Struct, frozen=True):
    """Instructions, what the caller says that they do, who pays the fee, and in which form."""

    instructions: tuple[Instruction, ...]
    to: str
    value: int
    sponsored: bool = False
    versioned: bool = False

    def __str__(self) -> str:
        lines = (
            f"{one.program_id} {bytes(one.data).hex()} {[str(meta.pubkey) for meta in one.accounts]}"
            for one in self.instructions
        )
        return f"to {self.to}, value {self.value}, sponsored {self.sponsored}:\n    " + "\n    ".join(lines)

    def encode(self, blockhash: Hash) -> str | None:
        """The transaction in base64, without our signature; None if it cannot be written."""
        payer = SPONSOR if self.sponsored else AGENT
        try:
            if self.versioned:
                message: Message | MessageV0 = MessageV0.try_compile(payer, list(self.instructions), [], blockhash)
            else:
                message = Message.new_with_blockhash(list(self.instructions), payer, blockhash)
            unsigned = [Signature.default()] * message.header.num_required_signatures
            return base64.b64encode(bytes(VersionedTransaction.populate(message, unsigned))).decode()
        except ValueError:
            return None


def _meta(key: Pubkey, flags: str = "") -> AccountMeta:
    return AccountMeta(key, "s" in flags, "w" in flags)


def _figure(number: int) -> bytes:
    return number.to_bytes(8, "little")


def draw_order(draws: Draws) -> Order:
    """One order; it declares whom it pays, in one of the ways in which callers may."""
    instructions: list[Instruction] = []
    named: list[Pubkey] = []
    for _ in range(1 + draws.below(2) * draws.below(2)):
        made, receiver = draws.one(_PARTS)(draws)
        instructions += made
        named.append(receiver)
    for _ in range(draws.below(2)):
        instructions.insert(draws.below(len(instructions) + 1), draws.one(_BESIDE)(draws))
    lamports = sum(
        int.from_bytes(bytes(one.data)[4:12], "little")
        for one in instructions
        if one.program_id == SYSTEM and bytes(one.data)[:4] == b"\2\0\0\0"
    )
    to = draws.one(named) if draws.chance(90) else draws.one(_ADDRESSES)
    return Order(tuple(instructions), str(to), lamports, draws.chance(15), draws.chance(40))


type _Part = tuple[list[Instruction], Pubkey]


def _pay(draws: Draws) -> _Part:
    to = draws.one(_ADDRESSES)
    data = b"\2\0\0\0" + _figure(draws.one((0, 5, 5, 50, 100, 1_000_000, 5_000_000)))
    return [Instruction(SYSTEM, data, [_meta(AGENT, "sw"), _meta(to, "w")])], to


def _destination(draws: Draws, mint: Pubkey) -> tuple[Pubkey, Pubkey]:
    """A token account, and whom a caller would name for it."""
    owner = draws.one((*PEOPLE, *PEOPLE, AGENT))
    account = associated_account(owner, mint)
    if mint == COIN_MINT and draws.chance(15):
        owner, account = draws.one(list(AUXILIARY.items()))
    return account, owner if draws.chance(60) else account


def _transfer(draws: Draws) -> _Part:
    mint = draws.one(_MINTS)
    account, to = _destination(draws, mint)
    made = [_transfer_checked(mint, account, draws.one(_AMOUNTS), with_fee=draws.chance(60))]
    if draws.chance(35):
        owner = draws.one(PEOPLE)
        account, to = associated_account(owner, mint), owner
        made = [
            _create_account(draws, owner, mint),
            _transfer_checked(mint, account, draws.one(_AMOUNTS), with_fee=draws.chance(60)),
        ]
    return made, to


def pay(mint: Pubkey, owner: Pubkey, amount: int) -> Instruction:
    """A transfer to an owner's associated account."""
    return _transfer_checked(mint, associated_account(owner, mint), amount)


def _transfer_checked(mint: Pubkey, account: Pubkey, amount: int, *, with_fee: bool = False) -> Instruction:
    decimals = bytes((9 if mint == WRAPPED else 2,))
    data = b"\x0c" + _figure(amount) + decimals
    if mint == FEE_MINT and with_fee:
        data = b"\x1a\x01" + _figure(amount) + decimals + _figure(min(3, -(-amount // 10)))
    accounts = [_meta(associated_account(AGENT, mint), "w"), _meta(mint), _meta(account, "w"), _meta(AGENT, "s")]
    return Instruction(PROGRAM[mint], data, accounts)


def _create_account(draws: Draws, owner: Pubkey, mint: Pubkey) -> Instruction:
    accounts = [
        _meta(AGENT, "sw"),
        _meta(associated_account(owner, mint), "w"),
        _meta(owner),
        _meta(mint),
        _meta(SYSTEM),
    ]
    return Instruction(ASSOCIATED, draws.one((b"\1", b"\1", b"\0", b"")), [*accounts, _meta(PROGRAM[mint])])


def _create(draws: Draws) -> _Part:
    owner = draws.one((AGENT, AGENT, SHOP))
    return [_create_account(draws, owner, draws.one(_MINTS))], owner


def _own(draws: Draws, tag: bytes, *more: Pubkey) -> Instruction:
    mint = draws.one(_MINTS)
    account = AUXILIARY[AGENT] if mint == COIN_MINT and draws.chance(40) else associated_account(AGENT, mint)
    return Instruction(PROGRAM[mint], tag, [_meta(account, "w"), *(_meta(one, "w") for one in more), _meta(AGENT, "s")])


def _grant(draws: Draws) -> _Part:
    """Instructions that give power away, or tokens by another way; none of them is read."""
    who = draws.one(PEOPLE)
    amount = _figure(draws.one(_AMOUNTS))
    kind = b"\x06" + bytes((draws.one((2, 3)),)) + b"\x01" + bytes(who)
    match draws.below(4):
        case 0:
            return [_own(draws, b"\x04" + amount, who)], who
        case 1:
            return [_own(draws, kind)], who
        case 2:
            return [_own(draws, b"\x03" + amount, associated_account(who, COIN_MINT))], who
    mint = draws.one(_MINTS)
    accounts = [_meta(associated_account(AGENT, mint), "w"), _meta(mint, "w"), _meta(AGENT, "s")]
    return [Instruction(PROGRAM[mint], b"\x08" + amount, accounts)], AGENT


def _tidy(draws: Draws) -> _Part:
    match draws.below(4):
        case 0 | 1:
            return [_own(draws, b"\x05")], AGENT
        case 2:
            receiver = draws.one((AGENT, AGENT, *PEOPLE))
            return [_own(draws, b"\x09", receiver)], receiver
    return [Instruction(CLASSIC, b"\x11", [_meta(associated_account(AGENT, WRAPPED), "w")])], AGENT


def _wrap(draws: Draws) -> _Part:
    owner = draws.one((AGENT, AGENT, BLOCKED))
    account = associated_account(owner, WRAPPED)
    data = b"\2\0\0\0" + _figure(draws.one((5, 50, 5_000_000)))
    made = [Instruction(SYSTEM, data, [_meta(AGENT, "sw"), _meta(account, "w")])]
    return [*made, Instruction(CLASSIC, b"\x11", [_meta(account, "w")])], draws.one((owner, account))


_PARTS: tuple[Callable[[Draws], _Part], ...] = (
    _pay,
    _pay,
    _transfer,
    _transfer,
    _transfer,
    _transfer,
    _create,
    _grant,
    _tidy,
    _wrap,
)


def _memo(draws: Draws) -> Instruction:
    return Instruction(MEMO, b"note", draws.one(([], [_meta(AGENT, "s")])))


def _budget(draws: Draws) -> Instruction:
    one = draws.one(
        (b"\2" + (300_000).to_bytes(4, "little"), b"\3" + _figure(1_000), b"\1" + (65_536).to_bytes(4, "little"))
    )
    return Instruction(COMPUTE, one, [])


_BESIDE: tuple[Callable[[Draws], Instruction], ...] = (_memo, _budget)

# ---- what can be done to instructions


def _each(
    change: Callable[[Draws, bytes, list[AccountMeta]], tuple[bytes, list[AccountMeta]]],
) -> Callable[[Draws, Order], Order]:
    def change_one(draws: Draws, order: Order) -> Order:
        at = draws.below(len(order.instructions))
        one = order.instructions[at]
        data, accounts = change(draws, bytes(one.data), list(one.accounts))
        made = Instruction(one.program_id, data, accounts)
        return msgspec.structs.replace(
            order, instructions=(*order.instructions[:at], made, *order.instructions[at + 1 :])
        )

    return change_one


append = _each(lambda draws, data, accounts: (data + draws.one((b"\0", b"\1", bytes(8))), accounts))
cut = _each(lambda draws, data, accounts: (data[: -1 - draws.below(3)], accounts))
refer = _each(lambda draws, data, accounts: (data, [*accounts, _meta(draws.one(_ADDRESSES), draws.one(("", "", "w")))]))
flip = _each(lambda draws, data, accounts: (_flip(draws, data), accounts))
retag = _each(lambda draws, data, accounts: (bytes((draws.below(40),)) + data[1:], accounts))
redirect = _each(lambda draws, data, accounts: (data, _replace(draws, accounts)))
swap = _each(lambda draws, data, accounts: (data, _swap(draws, accounts)))


def _flip(draws: Draws, data: bytes) -> bytes:
    if not data:
        return data
    at = draws.below(len(data))
    return data[:at] + bytes((data[at] ^ (1 << draws.below(8)),)) + data[at + 1 :]


def _replace(draws: Draws, accounts: list[AccountMeta]) -> list[AccountMeta]:
    if not accounts:
        return accounts
    at = draws.below(len(accounts))
    other = AccountMeta(draws.one(_ADDRESSES), accounts[at].is_signer and draws.chance(5), accounts[at].is_writable)
    return [*accounts[:at], other, *accounts[at + 1 :]]


def _swap(draws: Draws, accounts: list[AccountMeta]) -> list[AccountMeta]:
    if len(accounts) < 2:
        return accounts
    at = draws.below(len(accounts) - 1)
    return [*accounts[:at], accounts[at + 1], accounts[at], *accounts[at + 2 :]]


def reprogram(draws: Draws, order: Order) -> Order:
    """The same accounts and bytes for the other token program."""
    other = {CLASSIC: EXTENDED, EXTENDED: CLASSIC}
    made = tuple(
        Instruction(other.get(one.program_id, one.program_id), bytes(one.data), one.accounts)
        for one in order.instructions
    )
    return msgspec.structs.replace(order, instructions=made)


# Those that keep what the order does and add to it: none may be judged more leniently.
ADDING = (append, refer)
MUTATIONS = (*ADDING, cut, flip, retag, redirect, redirect, swap, reprogram)
