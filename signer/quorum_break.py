"""The operator's way out of approval quorums whose keys are lost: told at once, in force after a day."""

from datetime import timedelta
from typing import Any, Final

from custody.kit import clock
from custody.policies.quorum import enabled_quorums
from custody.protocol.signer.operation import BreakQuorum, QuorumBroken
from custody.protocol.signer.order_refusals import AgentAbsent, PolicyTampered
from custody.protocol.signer.refusals import NoQuorum, PoliciesMoving
from custody.webhooks.later_events import QuorumBreak
from custody.webhooks.payload import encode_events
from custody.worker.act import act
from custody.worker.acts import operating_in, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from custody.worker.sealing import Tampered
from signer import broken_quorums
from signer.context import Signer
from signer.policies import RuleSet, row_of
from signer.rollback_journal import RolledBack

AFTER: Final = timedelta(hours=24)
_LOCK = "SELECT lock_agent($1, $2)"
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_PUT = "SELECT put_break($1, $2, $3, $4, $5)"
_REPLACE = "SELECT replace_policies($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_EMIT = "SELECT emit($1, $2)"


async def break_quorum(signer: Signer, message: BreakQuorum, call: Call[ProvenPlatform]) -> QuorumBroken:
    """Disable the quorums of the agent's present rules from 24 hours on, or cancel that; told at once."""
    ends = None
    async with operating_in(signer, call, message.tenant) as connection:
        # First: no change of the rules comes between what is read here and what is written.
        await connection.execute(_LOCK, message.tenant, message.agent)
        row = await connection.fetchrow(_ANCHOR, message.tenant, message.agent)
        if row is None:
            raise AgentAbsent
        rules = _rules(signer, message, row)
        ref, version = (message.tenant, message.agent, str(row["incarnation"])), row["policy_version"]
        if message.cancel:
            # What was said is of one version of the rules: under the next one nobody can put it back.
            version += 1
            await _renew(signer, connection, message, call, row, rules)
        else:
            if not enabled_quorums(rules.rules):
                raise NoQuorum
            ends = row["now"] + AFTER
            mac = broken_quorums.seal_break(signer, ref, version, ends)
            await connection.execute(_PUT, message.tenant, message.agent, version, ends, mac)
        told = clock.iso(ends) if ends is not None else None
        await tell(connection, call, "quorum.broken", "agent", message.agent, effectiveAt=told, canceled=message.cancel)
        await connection.execute(_EMIT, message.agent, encode_events(QuorumBreak(effective_at=told)))
    if message.cancel:
        signer.policies.heads.remember(*ref, version)
    return QuorumBroken(message.agent, told)


async def _renew(
    signer: Signer, connection: Any, message: BreakQuorum, call: Call[ProvenPlatform], row: Any, rules: RuleSet
) -> None:
    incarnation, version = str(row["incarnation"]), row["policy_version"] + 1
    rows = [row_of(rule) for rule in rules.rules]
    result = await connection.fetchval(
        _REPLACE,
        message.tenant,
        None,
        act(call, version=version, rules=len(rows)),
        message.agent,
        incarnation,
        None,
        version,
        signer.policies.seal(message.tenant, message.agent, incarnation, version, rows),
        rows,
    )
    if result != "done":
        raise PoliciesMoving


def _rules(signer: Signer, message: BreakQuorum, row: Any) -> RuleSet:
    head = (row["head_version"], row["head_count"], row["head_mac"])
    try:
        return signer.policies.open(
            message.tenant, message.agent, str(row["incarnation"]), head, row["policy_version"], row["rules"] or "[]"
        )
    except (Tampered, RolledBack):
        raise PolicyTampered from None
