"""Receipts: signed statements about signatures."""

from typing import Annotated, Any

import msgspec

from custody.identity.roles import READERS
from custody.kit.described import described
from custody.kit.shapes import AgentId, Uuid
from custody.protocol.command import AGENT, TENANT, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals


class Receipt(msgspec.Struct, frozen=True):
    """The statement, the Ed25519 signature over its canonical JSON (base64url), and the key's id in the JWK set."""

    receipt: Annotated[dict[str, Any], described("The statement.")]
    signature: Annotated[str, described("The Ed25519 signature over its canonical JSON, in base64url.")]
    kid: Annotated[str, described("The key that signed it, in `/.well-known/jwks.json`.")]


@command("signer", proofs=TENANT | AGENT, roles=READERS, repeatable=True)
@refuses(order_refusals.AgentAbsent, refusals.NotRecorded, refusals.NotSigned, refusals.TransactionAbsent)
class IssueReceipt(Command[Receipt], frozen=True):
    """Sign a statement about one signature, from what was recorded with it."""

    agent: AgentId
    tx_id: Uuid
