"""A stuck EVM transaction again, with the same nonce and higher fees. Promise P2.

It takes the whole sign path: judged by today's rules, queued where they want a person, counted once for its nonce. The
payment is the one in the bytes that were signed before; a caller chooses nothing but the fees.
"""

from typing import Any

import msgspec

from custody.chains.evm import signed
from custody.chains.evm.action_orders import EvmReplacement
from custody.chains.evm.address import checksum
from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.protocol.refusals import TokenRevoked
from custody.protocol.signer.orders import ReplaceEvm
from custody.protocol.signer.outcomes import Decided, Queued, Refused, Signed
from custody.protocol.signer.refusals import NotEvm, NotSigned, TransactionAbsent, TransactionFinal
from custody.worker.call import Call
from custody.worker.idempotency import earlier
from custody.worker.proven import ProvenAgent, ProvenSession
from custody.worker.sealing import Tampered
from signer import signed_request
from signer.authorized import way_of
from signer.context import Signer
from signer.orders.evm_replacement import EVM_REPLACEMENT
from signer.orders.kind import Inputs, Replaced
from signer.sign_order import acting_for, decision_of
from signer.signing_attempt import SigningAttempt
from signer.together import settle

_READ = "SELECT * FROM replaced_read($1, $2, $3, $4)"
_decode_outcome = msgspec.msgpack.Decoder(Signed | Queued | Refused).decode


async def replace(
    signer: Signer, message: ReplaceEvm, call: Call[ProvenAgent] | Call[ProvenSession]
) -> Answered[Decided]:
    """Judge the same payment again at higher fees, and sign it for the same nonce; or queue or refuse it."""
    ref = acting_for(call, message.agent)
    row = await _read(signer, ref, message.replaces, message.tx_id)
    caller = call.caller
    # First of all: an earlier answer has a signature in it, which a revoked token gets no more.
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != _standing(row):
        raise TokenRevoked
    if row is None or row["kind"] is None:
        raise TransactionAbsent
    if row["answer"] is not None:
        return Answered(_decode_outcome(row["answer"]), replayed=True)
    if (answer := await earlier(signer, call)) is not None:
        return Answered(_decode_outcome(answer), replayed=True)
    replaced = _replaceable(message.replaces, row)
    order = _order(message, row, replaced)

    def attempt() -> SigningAttempt:
        draft = EVM_REPLACEMENT.check(order, Inputs(signer.chains, message.prepared, replaced=replaced))
        way = way_of(signer, signed_request.read(call, ref, message))
        return SigningAttempt(
            ref=ref,
            tx_id=message.tx_id,
            kind=EVM_REPLACEMENT,
            draft=draft,
            call=call,
            way=way,
            answers=message.answers,
        )

    return decision_of(await settle(signer, ref, attempt))


async def load(signer: Signer, ref: AgentRef, order: object, tx_id: str) -> Replaced | None:
    """Read what a queued order replaces, if it replaces something; as it is now, for time has gone by."""
    if not isinstance(order, EvmReplacement):
        return None
    row = await _read(signer, ref, order.replaces, tx_id)
    if row is None or row["kind"] is None:
        raise TransactionAbsent
    return _replaceable(order.replaces, row)


async def _read(signer: Signer, ref: AgentRef, replaces: str, tx_id: str) -> Any:
    async with signer.pool.acquire() as connection:
        return await connection.fetchrow(_READ, ref.tenant, ref.agent, replaces, tx_id)


def _standing(row: Any) -> tuple[str, int] | None:
    """The tokens that count; none of an agent that is gone."""
    return (str(row["incarnation"]), row["token_epoch"]) if row is not None else None


def _replaceable(tx_id: str, row: Any) -> Replaced:
    if row["kind"] != "evm":
        raise NotEvm
    if row["status"] in ("confirmed", "failed"):
        raise TransactionFinal(f"This transaction is {row['status']}; it can no longer be replaced.")
    if row["status"] not in ("signed", "broadcast"):
        raise NotSigned(f"This transaction is {row['status']}: it was never signed.")
    try:
        before = signed.read(row["signed_bytes"])
    except signed.NotOurs:
        raise Tampered from None
    return Replaced(tx_id, before.transaction, before.sender)


def _order(message: ReplaceEvm, row: Any, replaced: Replaced) -> EvmReplacement:
    before = replaced.transaction
    return EvmReplacement(
        to=checksum(before.to),
        value=str(before.value),
        data="0x" + before.data.hex() if before.data else None,
        chain_id=before.chain_id,
        broadcast=row["broadcast"],
        nonce=before.nonce,
        max_fee_per_gas=message.max_fee_per_gas,
        max_priority_fee_per_gas=message.max_priority_fee_per_gas,
        reference_id=row["reference_id"],
        replaces=replaced.tx_id,
    )
