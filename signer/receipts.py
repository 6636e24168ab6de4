"""A signed statement about one signature: what was judged, by which rules, and what came of it. docs/receipts.md.

Of what was judged it states nothing that the database alone says: the record's MAC must be the signer's own, the
signature must be the wallet's, and the signed bytes must do what the recorded effects say. Times, the status and the
place of the audit row are the database's word, and the page says so.
"""

import base64
from typing import Any

import msgspec

from custody.chains.families import of_kind
from custody.kit import clock
from custody.kit.errors import CustodyError, Forbidden
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.receipts import IssueReceipt, Receipt
from custody.protocol.signer.refusals import NotRecorded, NotSigned, TransactionAbsent
from custody.receipts.canonical import FORMAT, canonical
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenTenant
from custody.worker.sealing import Tampered, sha256
from signer import bitcoin_seals
from signer.context import Signer
from signer.ledger import PsbtFacts
from signer.record import show
from signer.statements import signed_content

_READ = "SELECT * FROM receipt_read($1, $2, $3)"
_UNSIGNED = ("pending_approval", "rejected")
# What could not be decoded, in the words of this version and of earlier ones.
_UNREAD = ("unread", "opaque")


async def issue(signer: Signer, message: IssueReceipt, call: Call[ProvenAgent] | Call[ProvenTenant]) -> Receipt:
    """The receipt, its signature, and the key that made it; nothing is written."""
    caller = call.caller
    if isinstance(caller, ProvenAgent) and caller.agent != message.agent:
        raise Forbidden("An agent may request only its own receipts.", code="other_agent")
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, caller.tenant, message.agent, message.tx_id)
    _admit(caller, row)
    metadata: dict[str, Any] = msgspec.json.decode(row["metadata"] or "{}")
    if "recordMac" not in metadata:
        raise NotRecorded
    _check_record(signer, caller.tenant, message, row, metadata["recordMac"])
    _check_account(signer, caller.tenant, message.agent, row)
    _check_signature(signer, row)
    receipt = _receipt(signer, caller.tenant, message, row)
    key = signer.statement_keys.of("receipt")
    signature = base64.urlsafe_b64encode(key.sign(canonical(receipt))).rstrip(b"=").decode()
    return Receipt(receipt, signature, key.kid)


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
        tenant=tenant,
        agent=message.agent,
        incarnation=str(row["incarnation"]),
        tx_id=message.tx_id,
        kind=row["kind"],
        chain_id=row["chain_id"],
        to_address=row["to_address"],
        value=_value(row),
        reference_id=row["reference_id"],
        replaces_tx_id=_replaced_id(row),
        digest=row["digest"],
        tx_hash=row["tx_hash"],
        signature=row["signature"],
        policy_version=row["policy_version"],
        policy_hash=row["policy_hash"] or b"",
        effects=row["effects"],
        policy_results=row["policy_results"],
        budgets=row["budgets"] or "",
        approval=str(row["approval_id"]) if row["approval_id"] else None,
        by=_by(row),
        authorization=row["authorization_text"],
        votes=row["votes_text"],
    )
    try:
        made = bytes.fromhex(mac)
    except ValueError:
        raise Tampered from None
    signer.statement_keys.check_mac("receipt", made, content)


def _check_account(signer: Signer, tenant: str, agent: str, row: Any) -> None:
    """Of a PSBT: raise KeyTampered unless the account key, by which change is told, is this agent's."""
    if row["account"] is None:
        return
    psbt = PsbtFacts(row["account_key"], row["account_chain_code"], row["account_mac"], None, None)
    bitcoin_seals.check(signer.sealer, AgentRef(tenant, agent), str(row["incarnation"]), row["account"], psbt)


def _check_signature(signer: Signer, row: Any) -> None:
    """Raise Tampered unless the signature is this wallet's, over bytes that do what was recorded."""
    try:
        effects = signer.kinds.of_name(row["kind"]).signed_effects(row, row["wallet"] or "")
    except (CustodyError, KeyError, ValueError) as problem:
        raise Tampered from problem
    read = msgspec.json.encode([show(effect) for effect in effects]).decode()
    if read != row["effects"] and not _was_read_before(row["effects"]):
        raise Tampered


def _was_read_before(effects: str) -> bool:
    """Say whether another version may have recorded these, which read less or counted more rent than this one.

    They are under the MAC of the receipt, so nobody but a signer wrote them; here they are only read a second time.
    """
    recorded = msgspec.json.decode(effects)
    return any(one["kind"] in _UNREAD or one.get("label") == "rent" for one in recorded)


def _receipt(signer: Signer, tenant: str, message: IssueReceipt, row: Any) -> dict[str, Any]:
    approved = row["approval_id"] is not None
    authorization = row["authorization_text"]
    return {
        "format": FORMAT,
        "issuer": signer.public_url,
        "issuedAt": clock.iso(row["now"]),
        "tenantId": tenant,
        "agentId": message.agent,
        "txId": message.tx_id,
        "kind": row["kind"],
        "status": row["status"],
        "wallet": row["wallet"],
        "chainId": row["chain_id"],
        "caip2": row["caip2"],
        "nonce": None if row["nonce"] is None else str(row["nonce"]),
        "toAddress": row["to_address"],
        "value": _value(row),
        "referenceId": row["reference_id"],
        "replacesTxId": _replaced_id(row),
        "digest": row["digest"].hex(),
        # Where the hash is the signature, nobody is shown it who could be the first to send it.
        "txHash": None if row["status"] == "signed" and of_kind(row["kind"]).hash_is_signature else row["tx_hash"],
        # Who holds a signature can use it, and a receipt is there to be shown: so only what commits to it.
        "signatureHash": sha256(row["signature"].encode()).hex(),
        "policyVersion": row["policy_version"],
        "policyHash": row["policy_hash"].hex(),
        "policyResults": msgspec.json.decode(row["policy_results"]),
        "effects": msgspec.json.decode(row["effects"]),
        "budgets": msgspec.json.decode(row["budgets"]),
        "requestedAt": clock.iso(row["created_at"]),
        "signedAt": clock.iso(row["signed_at"]),
        "approval": {
            "id": str(row["approval_id"]),
            "requestedAt": clock.iso(row["requested_at"]),
            "approvedAt": clock.iso(row["resolved_at"]),
            "approvedBy": _by(row),
            # Only where the order was signed under votes: other receipts stay as they were.
            **({"votes": msgspec.json.decode(row["votes_text"])} if row["votes_text"] is not None else {}),
        }
        if approved
        else None,
        "audit": {
            "seq": row["audit_seq"],
            "logIndex": row["log_index"],
            "checkpointSize": row["checkpoint_size"],
        },
    } | ({} if authorization is None else {"authorization": msgspec.json.decode(authorization)})


def _value(row: Any) -> str | None:
    return None if row["value"] is None else format(row["value"], "f")


def _replaced_id(row: Any) -> str | None:
    return str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None


def _by(row: Any) -> str:
    """Name who acted, as the MAC has it: a key or app client names itself."""
    prefix = {"agent": "agent:", "user": "user:"}.get(row["actor_type"], "")
    return f"{prefix}{row['actor_id']}"
