"""A signed statement about one signature: what was judged, by which rules, and what came of it. docs/receipts.md.

Of what was judged it states nothing that the database alone says: the record's MAC must be the signer's own, the
signature must be the wallet's, and the signed bytes must do what the recorded effects say. Times, the status and the
place of the audit row are the database's word, and the page says so.
"""

import base64
from typing import Any

import msgspec
from coincurve import PublicKey
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey

from custody.chains.evm import calldata, signed, typed_data, typed_effects
from custody.chains.evm.address import address_of
from custody.chains.orders import TypedDataOrder
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.types import EVM_NATIVE, Effect
from custody.kit import clock
from custody.kit.errors import Conflict, CustodyError, Forbidden, NotFound
from custody.protocol.messages import Done, IssueReceipt
from custody.receipts.canonical import FORMAT, canonical
from signer.case import AgentAbsent
from signer.context import Ask, Signer
from signer.proofs import BadProof, ProvenAgent, ProvenTenant, TokenRevoked
from signer.record import shown, signed_content
from signer.sealing import Tampered, sha256

_READ = "SELECT * FROM receipt_read($1, $2, $3)"
_UNSIGNED = ("pending_approval", "rejected")


class TransactionAbsent(NotFound):
    """There is no such transaction."""


class NotSigned(Conflict):
    """This transaction was not signed, so there is nothing to give a receipt for."""


class NotRecorded(Conflict):
    """This transaction was signed before the service recorded what a receipt states."""


async def issue(signer: Signer, message: IssueReceipt, ask: Ask[ProvenAgent] | Ask[ProvenTenant]) -> Done:
    """The receipt, its signature, and the key that made it; nothing is written."""
    caller = ask.caller
    if isinstance(caller, ProvenAgent) and caller.agent != message.agent:
        raise Forbidden("An agent asks only for its own receipts.", code="other_agent")
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, caller.tenant, message.agent, message.tx_id)
    _admit(caller, row)
    metadata: dict[str, Any] = msgspec.json.decode(row["metadata"] or "{}")
    if "recordMac" not in metadata:
        raise NotRecorded
    _check_record(signer, caller.tenant, message, row, metadata["recordMac"])
    _check_signature(row)
    receipt = _receipt(signer, caller.tenant, message, row)
    key = signer.statement_keys.of("receipt")
    signature = base64.urlsafe_b64encode(key.sign(canonical(receipt))).rstrip(b"=").decode()
    return Done({"receipt": receipt, "signature": signature, "kid": key.kid})


def _admit(caller: ProvenAgent | ProvenTenant, row: Any) -> None:
    if row is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (
        str(row["incarnation"]),
        row["token_epoch"],
    ):
        raise TokenRevoked
    if row["kind"] is None:
        raise TransactionAbsent
    if row["status"] in _UNSIGNED:
        raise NotSigned


def _check_record(signer: Signer, tenant: str, message: IssueReceipt, row: Any, mac: str) -> None:
    """Raise Tampered unless the row says what the signer wrote when it signed."""
    content = signed_content(
        tenant=tenant, agent=message.agent, incarnation=str(row["incarnation"]), tx_id=message.tx_id, kind=row["kind"],
        chain_id=row["chain_id"], to_address=row["to_address"], value=_value(row), reference_id=row["reference_id"],
        replaces_tx_id=_replaced(row), digest=row["digest"], tx_hash=row["tx_hash"], signature=row["signature"],
        policy_version=row["policy_version"], policy_hash=row["policy_hash"] or b"", effects=row["effects"],
        policy_results=row["policy_results"],
        budgets=row["budgets"] or "", approval=str(row["approval_id"]) if row["approval_id"] else None, by=_by(row),
    )  # fmt: skip
    try:
        made = bytes.fromhex(mac)
    except ValueError:
        raise Tampered from None
    signer.statement_keys.check_mac("receipt", made, content)


def _check_signature(row: Any) -> None:
    """Raise Tampered unless the signature is this wallet's, over bytes that do what was recorded."""
    try:
        effects = {"evm": _evm, "typed_data": _typed_data, "solana": _solana}[row["kind"]](row)
    except (CustodyError, KeyError, ValueError) as problem:
        raise Tampered from problem
    if msgspec.json.encode([shown(effect) for effect in effects]).decode() != row["effects"]:
        raise Tampered


def _evm(row: Any) -> tuple[Effect, ...]:
    found = signed.read(row["signed_bytes"])
    transaction = found.transaction
    place = (found.sender, found.hash, transaction.chain_id, transaction.nonce)
    if place != (row["evm_address"], row["tx_hash"], row["chain_id"], row["nonce"]):
        raise Tampered
    us = found.sender.lower()
    effects, _ = calldata.decode(transaction.to, transaction.value, transaction.data, transaction.chain_id, us)
    fee = transaction.gas_limit * transaction.max_fee
    return (*effects, Effect("fee", EVM_NATIVE, fee, from_=us, label="at most"))


def _typed_data(row: Any) -> tuple[Effect, ...]:
    document = typed_data.read(msgspec.json.decode(row["order_text"], type=TypedDataOrder))
    made = bytes.fromhex(row["signature"].removeprefix("0x"))
    key = PublicKey.from_signature_and_message(
        made[:64] + bytes((made[64] - 27,)), typed_data.digest_of(document), hasher=None
    )
    if address_of(key.format(compressed=False)) != row["evm_address"]:
        raise Tampered
    return typed_effects.subject_of(document, row["evm_address"]).effects


def _solana(row: Any) -> tuple[Effect, ...]:
    parsed = solana_message.parse(base64.b64encode(row["signed_bytes"]).decode())
    us = Pubkey.from_string(row["solana_address"])
    made = parsed.signatures[parsed.signers.index(us)]
    if not made.verify(us, to_bytes_versioned(parsed.message)) or str(made) != row["tx_hash"]:
        raise Tampered
    subject = solana_effects.subject_of(parsed, row["solana_address"], row["chain_id"], row["caip2"], row["to_address"])
    return subject.effects


def _receipt(signer: Signer, tenant: str, message: IssueReceipt, row: Any) -> dict[str, Any]:
    approved = row["approval_id"] is not None
    return {
        "format": FORMAT, "issuer": signer.public_url, "issuedAt": clock.iso(row["now"]), "tenantId": tenant,
        "agentId": message.agent, "txId": message.tx_id, "kind": row["kind"], "status": row["status"],
        "wallet": row["solana_address"] if row["kind"] == "solana" else row["evm_address"],
        "chainId": row["chain_id"], "caip2": row["caip2"],
        "nonce": None if row["nonce"] is None else str(row["nonce"]), "toAddress": row["to_address"],
        "value": _value(row), "referenceId": row["reference_id"], "replacesTxId": _replaced(row),
        "digest": row["digest"].hex(), "txHash": row["tx_hash"],
        # Who holds a signature can use it, and a receipt is there to be shown: so only what commits to it.
        "signatureHash": sha256(row["signature"].encode()).hex(),
        "policyVersion": row["policy_version"], "policyHash": row["policy_hash"].hex(),
        "policyResults": msgspec.json.decode(row["policy_results"]), "effects": msgspec.json.decode(row["effects"]),
        "budgets": msgspec.json.decode(row["budgets"]), "requestedAt": clock.iso(row["created_at"]),
        "signedAt": clock.iso(row["signed_at"]),
        "approval": {
            "id": str(row["approval_id"]), "requestedAt": clock.iso(row["requested_at"]),
            "approvedAt": clock.iso(row["resolved_at"]), "approvedBy": _by(row),
        } if approved else None,
        "audit": {
            "seq": row["audit_seq"], "logIndex": row["log_index"], "checkpointSize": row["checkpoint_size"],
        },
    }  # fmt: skip


def _value(row: Any) -> str | None:
    return None if row["value"] is None else format(row["value"], "f")


def _replaced(row: Any) -> str | None:
    return str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None


def _by(row: Any) -> str:
    """Who acted, as it is named under the MAC: a key or app client names itself."""
    prefix = {"agent": "agent:", "user": "user:"}.get(row["actor_type"], "")
    return f"{prefix}{row['actor_id']}"
