"""A past request read anew: what its bytes do, when it was asked and signed, how it was decided. Pure."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from custody.chains.evm import calldata, typed_data, typed_effects
from custody.chains.evm.address import parse_address
from custody.chains.orders import SolanaOrder, TypedDataOrder
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.types import EVM_NATIVE, Effect, Subject
from custody.kit.errors import CustodyError
from custody.policies.moved import moved
from custody.policies.types import Decision


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What the database has of one request."""

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


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it is judged again. `signed_at` is later than `asked_at` where a person approved it."""

    id: str
    subject: Subject
    moved: dict[str, int]
    asked_at: datetime
    signed_at: datetime | None
    was: Decision
    replaces: str | None


class Wallets(msgspec.Struct, frozen=True):
    """The addresses that an agent's orders come from."""

    evm: str
    solana: str


class _EvmPart(msgspec.Struct):
    """As much of a stored EVM order as decides what it does; whatever else it holds."""

    to: str
    value: str
    data: str | None = None


def read(stored: Stored, wallets: Wallets) -> Past | None:
    """The request, or None when today's decoders cannot read it any more."""
    try:
        subject = _subject(stored, wallets)
    except (CustodyError, KeyError, ValueError, msgspec.MsgspecError):
        return None
    was: Decision = "queue" if stored.queued else "refuse" if stored.status == "rejected" else "sign"
    return Past(
        id=stored.id, subject=subject, moved=moved(subject), asked_at=stored.created_at, signed_at=stored.signed_at,
        was=was, replaces=stored.replaces,
    )  # fmt: skip


def read_all(page: list[Stored], wallets: Wallets) -> list[Past]:
    """Those of some requests that can be read."""
    return [past for stored in page if (past := read(stored, wallets)) is not None]


def of_row(row: Any) -> Stored:
    """From a row of the database."""
    return Stored(
        id=str(row["id"]), kind=row["kind"], order_text=row["order_text"], chain_id=row["chain_id"],
        caip2=row["caip2"], to_address=row["to_address"], fee=row["fee"], status=row["status"], queued=row["queued"],
        created_at=row["created_at"], signed_at=row["signed_at"],
        replaces=str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None,
    )  # fmt: skip


def _subject(stored: Stored, wallets: Wallets) -> Subject:
    return {"evm": _evm, "typed_data": _typed_data, "solana": _solana}[stored.kind](stored, wallets)


def _evm(stored: Stored, wallets: Wallets) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=_EvmPart)
    to, us, chain = parse_address(order.to), wallets.evm.lower(), stored.chain_id or 0
    data = bytes.fromhex((order.data or "").removeprefix("0x"))
    effects, calls = calldata.decode(to, int(order.value), data, chain, us)
    fee = Effect("fee", EVM_NATIVE, int(Decimal(stored.fee or 0)), from_=us, label="at most")
    return Subject("evm", "evm", chain, stored.caip2, to, (*effects, fee), calls)


def _typed_data(stored: Stored, wallets: Wallets) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=TypedDataOrder)
    return typed_effects.subject_of(typed_data.read(order), wallets.evm)


def _solana(stored: Stored, wallets: Wallets) -> Subject:
    order = msgspec.json.decode(stored.order_text, type=SolanaOrder)
    parsed = solana_message.parse(order.transaction)
    return solana_effects.subject_of(parsed, wallets.solana, stored.chain_id or 0, stored.caip2 or "", order.to)
