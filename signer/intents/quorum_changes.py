"""A change of an agent's key quorums that somebody authorised, by the functions of the direct routes."""

from typing import Any

import msgspec
from msgspec import UNSET

from custody.intents.payloads import Payload, QuorumUpdate
from custody.protocol.signer.authority import ChangeQuorum, CreateQuorum, NewQuorum, QuorumChange, RevokeQuorum
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from signer import quorums
from signer.context import Signer
from signer.intents.claims import Claim, Claimed
from signer.intents.sealed import Sealed


async def carry_out(
    signer: Signer, call: Call[ProvenSession], intent: Sealed, payload: Payload, claimed: Claimed
) -> None:
    """Create, change or revoke the quorum, if signers and quorums are as they were."""
    if not isinstance(payload, QuorumUpdate):
        raise TypeError("no change of a quorum")
    agent, claim = intent.agent or "", Claim(int((intent.baseline or "").rpartition(":")[2]), claimed)
    if payload.action == "create":
        new = msgspec.convert(_fields_of(payload), NewQuorum)
        await quorums.create_claiming(signer, CreateQuorum(agent, new), call, claim)
    elif payload.action == "update":
        changed = msgspec.convert(_fields_of(payload), QuorumChange)
        await quorums.change_claiming(signer, ChangeQuorum(agent, payload.quorum_id or "", changed), call, claim)
    else:
        await quorums.revoke_claiming(signer, RevokeQuorum(agent, payload.quorum_id or ""), call, claim)


def _fields_of(payload: QuorumUpdate) -> dict[str, Any]:
    """Read what the payload says of the quorum, by the names of the direct routes."""
    fields = msgspec.to_builtins(payload)
    return {name: value for name, value in fields.items() if name not in {"action", "quorumId"} and value is not UNSET}
