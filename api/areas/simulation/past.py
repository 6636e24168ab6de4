"""A past request read again: what its bytes do, when it was asked and signed, how it was decided. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from custody.chains.actions import WalletAction
from custody.chains.bitcoin import effects as bitcoin_effects
from custody.chains.evm import calldata, typed_data, typed_effects
from custody.chains.evm.address import parse_address
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.families import of_kind
from custody.chains.message_effects import read_order
from custody.chains.message_effects import subject_of as message_subject
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.payment_orders import EvmPaymentOrder, SolanaPaymentOrder
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.solana.orders import SolanaOrder
from custody.chains.types import Effect, EffectKind, Subject
from custody.kit.errors import CustodyError
from custody.policies.moved import moves, priced_moves
from custody.policies.types import Decision


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the database has it."""

    id: str
    kind: str
    order_text: str
    chain_id: int | None
    caip2: str | None
    to_address: str | None
    fee: str | None
    status: str
    queued: bool
    created_at: datetime
    signed_at: datetime | None
    replaces: str | None
    # Of a PSBT, whose change nobody can tell without the account's key, and of a payment, which is built when it is
    # signed: what was found in it.
    effects: str | None = None
    # In millionths of a dollar, as it was charged; None where something that it moves had no price.
    worth: int | None = None


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it is judged again. `signed_at` is later than `asked_at` where a person approved it."""

    id: str
    subject: Subject
    moved: dict[str, int]
    # By the prices of that time.
    worth: dict[str, int]
    asked_at: datetime
    signed_at: datetime | None
    was: Decision
    replaces: str | None


class _EvmPart(msgspec.Struct):
    """As much of a stored EVM order as decides what it does; whatever else it holds."""

    to: str
    value: str
    data: str | None = None
    action: WalletAction | None = None


def read(stored: Stored, wallets: Mapping[str, str]) -> Past | None:
    """The request, or None when today's decoders cannot read it any more."""
    try:
        subject = _SUBJECTS[stored.kind](stored, wallets.get(of_kind(stored.kind).name, ""))
    except (CustodyError, KeyError, ValueError, msgspec.MsgspecError):
        return None
    worth = _worth(subject, stored.worth)
    was: Decision = "queue" if stored.queued else "refuse" if stored.status == "rejected" else "sign"
    return Past(
        id=stored.id,
        subject=subject,
        moved=moves(subject, worth),
        worth=worth,
        asked_at=stored.created_at,
        signed_at=stored.signed_at,
        was=was,
        replaces=stored.replaces,
    )


def read_all(page: list[Stored], wallets: Mapping[str, str]) -> list[Past]:
    """Those of some requests that can be read."""
    return [past for stored in page if (past := read(stored, wallets)) is not None]


def of_row(row: Any) -> Stored:
    """From a row of the database."""
    return Stored(
        id=str(row["id"]),
        kind=row["kind"],
        order_text=row["order_text"],
        chain_id=row["chain_id"],
        caip2=row["caip2"],
        to_address=row["to_address"],
        fee=row["fee"],
        status=row["status"],
        queued=row["queued"],
        created_at=row["created_at"],
        signed_at=row["signed_at"],
        # Of two PSBTs with one coin both count in full, whichever happens.
        replaces=str(row["replaces_tx_id"]) if row["replaces_tx_id"] and row["kind"] != "bitcoin" else None,
        effects=row["effects"],
        worth=int(row["worth"]) if row["worth"] is not None else None,
    )


def _worth(subject: Subject, total: int | None) -> dict[str, int]:
    """Value each asset; only the sum was kept, so one of them has all of it."""
    names = [] if total is None else list(priced_moves(subject))
    return {name: total or 0 if place == 0 else 0 for place, name in enumerate(names)}


def _evm(stored: Stored, wallet: str) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=_EvmPart)
    to, us, chain = parse_address(order.to), wallet.lower(), stored.chain_id or 0
    data = bytes.fromhex((order.data or "").removeprefix("0x"))
    effects, calls = calldata.decode(to, int(order.value), data, chain, us)
    fee = Effect("fee", EVM_NATIVE, int(Decimal(stored.fee or 0)), from_=us, label="at most")
    return Subject("evm", "evm", chain, stored.caip2, to, (*effects, fee), calls, bounded=_is_token(order.action))


def _is_token(action: WalletAction | None) -> bool:
    return action is not None and action.token is not None


def _typed_data(stored: Stored, wallet: str) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=TypedDataOrder)
    return typed_effects.subject_of(typed_data.read(order), wallet)


def _solana(stored: Stored, wallet: str) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=SolanaOrder)
    parsed = solana_message.parse(order.transaction)
    return solana_effects.subject_of(parsed, wallet, stored.chain_id or 0, stored.caip2 or "", order.to)


class _Shown(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """An effect as it is kept."""

    kind: EffectKind | Literal["opaque"]
    asset: str | None
    amount: str
    from_: str | None = None
    to: str | None = None
    label: str | None = None

    @property
    def known(self) -> EffectKind:
        """The kind in the words of this version."""
        return "unread" if self.kind == "opaque" else self.kind


def _message(stored: Stored, wallet: str) -> Subject:
    kind = EvmMessageOrder if stored.kind == "evm_message" else SolanaMessageOrder
    order = msgspec.json.decode(stored.order_text, type=kind)
    return message_subject(order, read_order(order), wallet, stored.chain_id, stored.caip2)


def _psbt(stored: Stored, wallet: str) -> Subject:
    del wallet
    if not stored.order_text:
        # Of what was refused a long text is not kept, and not all of its effects.
        raise ValueError("this order was not kept")
    shown = msgspec.json.decode(stored.effects or "", type=list[_Shown])
    effects = tuple(Effect(one.known, one.asset, int(one.amount), one.from_, one.to, label=one.label) for one in shown)
    return bitcoin_effects.subject(effects, stored.caip2 or "")


def _payment(stored: Stored, wallet: str) -> Subject:
    """Take the effects as they were kept: they were built from the offer, at a time that is over."""
    del wallet
    if not stored.order_text:
        raise ValueError("this order was not kept")
    order = msgspec.json.decode(stored.order_text, type=EvmPaymentOrder | SolanaPaymentOrder)
    shown = msgspec.json.decode(stored.effects or "", type=list[_Shown])
    effects = tuple(Effect(one.known, one.asset, int(one.amount), one.from_, one.to, label=one.label) for one in shown)
    family, kind = ("evm", "typed_data") if isinstance(order, EvmPaymentOrder) else ("solana", "solana")
    return Subject(family, kind, stored.chain_id, stored.caip2, stored.to_address, effects, named=True)


# What a stored order of each kind does; a kind that is not here is passed over.
_SUBJECTS: Final[Mapping[str, Callable[[Stored, str], Subject]]] = {
    "evm": _evm,
    "typed_data": _typed_data,
    "solana": _solana,
    "bitcoin": _psbt,
    "evm_message": _message,
    "solana_message": _message,
    "x402": _payment,
    "solana_x402": _payment,
}
