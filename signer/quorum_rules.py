"""The bounds on a new set of rules where rules ask for votes: who may add one, and what loosening one needs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from custody.identity.roles import ADMINS
from custody.policies.quorum import TYPE, enabled_quorums, new_quorums
from custody.policies.rules import ParsedRule
from custody.protocol.signer.refusals import QuorumByPerson, UnknownApprover
from custody.worker.proven import ProvenAgent, ProvenSession, ProvenTenant

_KEYS = "SELECT user_id::text, fingerprint FROM approver_keys_of($1, $2)"


async def admit(
    connection: Any, caller: ProvenAgent | ProvenTenant, old: Sequence[ParsedRule], new: Sequence[ParsedRule]
) -> None:
    """Raise unless every quorum that is new was set by a person with a recent second factor, of keys that there are.

    Anybody else who could add one would have a veto over the tenant.
    """
    added = new_quorums(old, new)
    if not added:
        return
    if not isinstance(caller, ProvenSession):
        raise QuorumByPerson
    # Whatever the tenant asks of other changes.
    always = msgspec.structs.replace(caller.policy, require_for={**caller.policy.require_for, "tenantAdmin": True})
    msgspec.structs.replace(caller, policy=always).need(ADMINS, "tenantAdmin")
    every = [msgspec.structs.replace(rule, enabled=True) for rule in added]
    wanted = {
        (user, key) for quorum in enabled_quorums(every) for user, keys in quorum.approvers.items() for key in keys
    }
    rows = await connection.fetch(_KEYS, caller.tenant, sorted({key for _, key in wanted}))
    if missing := sorted(wanted - {(row["user_id"], row["fingerprint"]) for row in rows}):
        user, key = missing[0]
        raise UnknownApprover(
            f"approvers: {user} is no member of this tenant with a living approver key {key}; they register it first "
            "with POST /approver-keys."
        )


def asks(rules: Sequence[ParsedRule]) -> bool:
    """Say whether a set has a rule about votes, enabled or not."""
    return any(rule.type == TYPE for rule in rules)
