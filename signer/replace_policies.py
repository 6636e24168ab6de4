"""Replace an agent's rule set under its next version, sealed. Spec 1/4.1, decisions 3, promise P7."""

from typing import Any

from custody.kit import ids
from custody.kit.errors import Conflict, Forbidden, Frozen
from custody.policies.rules import ParsedRule, parse, wire
from custody.policies.tighten import loosened
from custody.protocol.messages import Done, Outcome, ReplacePolicies
from signer.case import AgentAbsent, Sealed
from signer.context import Ask, Signer
from signer.heads import RolledBack
from signer.idempotency import packed
from signer.policies import row_of
from signer.proofs import BadProof, ProvenAgent, ProvenTenant, TokenRevoked
from signer.sealing import Tampered
from signer.turns import TooManyWaiting

_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_REPLACE = (
    "SELECT replace_policies($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
)
TRIES = 4
Asker = ProvenAgent | ProvenTenant


class PolicyLoosened(Forbidden):
    """An agent may only tighten its own policies."""


class PoliciesMoving(Conflict):
    """The policies are being changed by somebody else; read them again and repeat."""


async def replace(signer: Signer, message: ReplacePolicies, ask: Ask[Asker]) -> Outcome:
    """Replace the whole set. With an agent's own token it may only be tightened."""
    if isinstance(ask.caller, ProvenAgent) and ask.caller.agent != message.agent:
        raise Forbidden("An agent changes only its own policies.", code="other_agent")
    try:
        # In the agent's turn, before a connection is taken: one agent's changes may not hold up the others.
        async with signer.turns.turn_of(ask.caller.tenant, message.agent):
            new = parse(message.policies, ids.new_uuid)
            outcome = Done({"policies": [_shown(rule) for rule in new]})
            for left in reversed(range(TRIES)):
                async with signer.pool.acquire() as connection:
                    if await _try(connection, signer, message.agent, ask, new, outcome, last=left == 0):
                        return outcome
    except TooManyWaiting:
        raise PoliciesMoving from None
    raise PoliciesMoving


async def _try(  # noqa: PLR0913 - one try needs all that the story has
    connection: Any,
    signer: Signer,
    agent: str,
    ask: Ask[Asker],
    new: tuple[ParsedRule, ...],
    outcome: Done,
    *,
    last: bool,
) -> bool:
    """One try at the version that was read; False when somebody else was faster."""
    caller = ask.caller
    row = await connection.fetchrow(_ANCHOR, caller.tenant, agent)
    _admit(caller, row)
    if isinstance(caller, ProvenAgent) and not signer.agent_put_replaces:
        try:
            _only_tighter(signer, caller, row, new)
        except RolledBack:
            # Mostly a change that was committed after this row was read; tampering only if it stays so.
            if last:
                raise Sealed(code="policy_tampered") from None
            return False
    incarnation, version = str(row["incarnation"]), row["policy_version"] + 1
    is_agent = isinstance(caller, ProvenAgent)
    result = await connection.fetchval(
        _REPLACE, caller.tenant, agent, incarnation, caller.epoch if isinstance(caller, ProvenAgent) else None, version,
        signer.policies.seal(caller.tenant, agent, incarnation, version, [row_of(rule) for rule in new]),
        [r.id for r in new], [r.type for r in new], [r.enabled for r in new], [r.config for r in new],
        caller.standing if isinstance(caller, ProvenTenant) else None, caller.principal, *ask.key_row, packed(outcome),
        "agent" if is_agent else "system", agent if is_agent else caller.principal,
        f'{{"version":{version},"rules":{len(new)}}}', ask.origin_row,
    )  # fmt: skip
    if result != "done":
        return False
    # Remembered before the answer leaves: what was acknowledged can be noticed when it is rolled back.
    signer.policies.heads.remember(caller.tenant, agent, incarnation, version)
    return True


def _admit(caller: Asker, row: Any) -> None:
    if row is None:
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent):
        if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
            raise TokenRevoked
        if row["frozen"]:
            raise Frozen


def _only_tighter(signer: Signer, caller: ProvenAgent, row: Any, new: tuple[ParsedRule, ...]) -> None:
    head = (row["head_version"], row["head_count"], row["head_mac"])
    try:
        old = signer.policies.open(
            caller.tenant, caller.agent, caller.incarnation, head, row["policy_version"], row["rules"] or "[]"
        ).rules
    except Tampered:
        raise Sealed(code="policy_tampered") from None
    if (what := loosened(old, new, empty_policy=signer.empty_policy)) is not None:
        raise PolicyLoosened(f"An agent may only tighten its own policies. {what}")


def _shown(rule: ParsedRule) -> dict[str, Any]:
    return {"id": rule.id, "type": rule.type, "enabled": rule.enabled, "config": wire(rule).config}
