"""Replace an agent's rule set under its next version, sealed. Promise P7."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.identity.assertions import Matter
from custody.kit import ids
from custody.kit.errors import Forbidden, Frozen
from custody.policies.fingerprint import policy_hash
from custody.policies.kinds import PolicyRule
from custody.policies.quorum import enabled_quorums
from custody.policies.quorum import standing as counts
from custody.policies.rules import ParsedRule, parse, wire
from custody.policies.sources import set_by_agent
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.order_refusals import AgentAbsent, PolicyTampered
from custody.protocol.signer.policies import PoliciesVoted, ReplacePolicies, VotePolicies
from custody.protocol.signer.refusals import PoliciesMoving, PolicyLoosened, QuorumNeeded, VoteRefused
from custody.worker.act import act
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenAgent, ProvenAppClient, ProvenSession, ProvenTenant
from custody.worker.sealing import Tampered
from signer import ballots, broken_quorums, quorum_rules, votes
from signer.context import Signer
from signer.intents.claims import Claimed, StaleState
from signer.policies import row_of
from signer.policy_events import change_event
from signer.policy_sets import raise_unknown_set
from signer.quotas import Held, rules_bytes, stored_bytes
from signer.rollback_journal import RolledBack

_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_REPLACE = "SELECT replace_policies($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_decode_rows = msgspec.json.Decoder(list[tuple[str, str, bool, str]]).decode
TRIES = 4
Asker = ProvenAgent | ProvenTenant
Outcome = list[PolicyRule] | PoliciesVoted
_VOTE = "SELECT policy_vote_write($1, $2, $3, $4, $5, $6, $7, $8)"
_HOLD = "SELECT voters_hold($1, $2, $3, $4)"
_PUT_VOTE = "SELECT put_vote($1, $2)"
_PUT_BREAK = "SELECT put_break($1, $2, $3, $4, $5)"


class _Change(msgspec.Struct, frozen=True):
    """The change asked for, and the vote that came with it."""

    agent: str
    call: Call[Asker]
    new: tuple[ParsedRule, ...]
    given: ballots.GivenVote | None
    intent: "_ByIntent | None" = None

    def __repr__(self) -> str:
        return f"_Change({self.agent!r})"


class _ByIntent(msgspec.Struct, frozen=True):
    """An intent's change of the set, the version it is against, and how it is claimed."""

    made: Callable[[tuple[ParsedRule, ...]], tuple[ParsedRule, ...]]
    version: int
    claimed: Claimed


class _Ballot(msgspec.Struct, frozen=True):
    """The votes for a looser set, and whether they are enough; from when on the operator's word will be in force."""

    tally: ballots.Tally | None = None
    enough: bool = False
    waiting: datetime | None = None

    def outcome(self, old: tuple[ParsedRule, ...], rules: list[PolicyRule]) -> Outcome:
        """Make what the caller is told once the set is written."""
        return rules if self.tally is None else PoliciesVoted(*counts(old, self.tally.votes), self.tally.given, rules)


class _Moved(Exception):
    """A voter or key changed while the set was written: nothing of it stays."""


async def replace(signer: Signer, message: ReplacePolicies, call: Call[Asker]) -> list[PolicyRule]:
    """Replace the whole set. With an agent's own token or by an app client it may only be tightened."""
    if isinstance(call.caller, ProvenAgent) and call.caller.agent != message.agent:
        raise Forbidden("An agent may change only its own policies.", code="other_agent")
    outcome = await _replace(signer, message, call, None)
    assert isinstance(outcome, list)  # noqa: S101 - without a vote there is no other answer
    return outcome


async def vote(signer: Signer, message: VotePolicies, call: Call[ProvenSession]) -> PoliciesVoted:
    """Vote for a looser set; the last vote that is needed replaces it, as `replace` does."""
    if any(rule.id is None for rule in message.policies):
        raise InvalidPolicy("Give every rule its `id`: the votes are over the whole set, and each has the same.")
    outcome = await _replace(signer, message, call, ballots.given_vote(call.caller.user, message.vote, None))
    assert isinstance(outcome, PoliciesVoted)  # noqa: S101 - with a vote there is no other answer
    return outcome


async def by_intent(
    signer: Signer,
    call: Call[ProvenSession],
    agent: str,
    made: Callable[[tuple[ParsedRule, ...]], tuple[ParsedRule, ...]],
    version: int,
    claimed: Claimed,
) -> None:
    """Replace the set by what is made of it, with the intent claimed in the same transaction; StaleState unless it is
    of this version.
    """
    # The answer under the request's key is the intent's.
    change = _Change(agent, msgspec.structs.replace(call, key=None), (), None, _ByIntent(made, version, claimed))
    await _in_turn(signer, call.caller.tenant, agent, lambda: change)


async def _replace(
    signer: Signer,
    message: ReplacePolicies | VotePolicies,
    call: Call[Asker] | Call[ProvenSession],
    given: ballots.GivenVote | None,
) -> Outcome:
    def read() -> _Change:
        return _Change(message.agent, call, parse(message.policies, ids.new_uuid), given)

    return await _in_turn(signer, call.caller.tenant, message.agent, read)


async def _in_turn(signer: Signer, tenant: str, agent: str, read: Callable[[], _Change]) -> Outcome:
    try:
        # In the agent's turn, before a connection is taken: one agent's changes may not hold up the others.
        async with signer.queues.turn_of(tenant, agent):
            change = await signer.throttle.run(tenant, agent, read)
            await signer.quotas.know(tenant)
            for left in reversed(range(TRIES)):
                async with signer.pool.acquire() as connection:
                    outcome = await _try(connection, signer, change, last=left == 0)
                    if outcome is not None:
                        return outcome
    except TooManyWaiting:
        raise PoliciesMoving from None
    except asyncpg.ForeignKeyViolationError as problem:
        raise_unknown_set(problem)
    raise PoliciesMoving


async def _try(connection: Any, signer: Signer, change: _Change, *, last: bool) -> Outcome | None:
    """One try at the version that was read; None when somebody else was faster."""
    call, caller, new = change.call, change.call.caller, change.new
    row = await connection.fetchrow(_ANCHOR, caller.tenant, change.agent)
    _admit(caller, row)
    incarnation, version = str(row["incarnation"]), row["policy_version"] + 1
    old = _before(signer, change, row, last=last)
    if old is None:
        return None
    if change.intent is not None:
        if version != change.intent.version + 1:
            raise StaleState
        new = change.intent.made(old)
        change = msgspec.structs.replace(change, new=new)
    if isinstance(caller, ProvenAgent | ProvenAppClient):
        if _only_tightens(signer, caller):
            _only_tighter(signer, caller, old, new)
        new = set_by_agent(old, new)
    ballot = await _judge_votes(connection, signer, change, row, old)
    await quorum_rules.admit(connection, caller, old, new)
    if ballot.tally is not None and not ballot.enough:
        return await _keep_vote(connection, change, row, ballot.tally, old)
    rows, rules = [row_of(rule) for rule in new], [wire(rule) for rule in new]
    outcome = ballot.outcome(old, rules)
    answer = pack(outcome)
    if quorum_rules.asks(new):
        # Before the write: a set that ever asked for votes is never replaced unread.
        signer.policies.heads.remember(caller.tenant, change.agent, incarnation, version, of="quorum")
    with _hold_quotas(signer, caller, row["rules"] or "[]", new, len(answer) if call.key else 0) as held:
        by = change.agent if isinstance(caller, ProvenAgent) else None
        arguments = (
            caller.tenant,
            caller.standing if isinstance(caller, ProvenTenant) else None,
            act(call, answer, agent=by, version=version, rules=len(new)),
            change.agent,
            incarnation,
            caller.epoch if isinstance(caller, ProvenAgent) else None,
            version,
            signer.policies.seal(caller.tenant, change.agent, incarnation, version, rows),
            rows,
            _event(signer, caller, row, old, new, version),
        )
        result = await _write(connection, signer, arguments, ballot, change.intent)
        if result == "done":
            held.keep()
    if result != "done":
        return None
    # Remembered before the answer leaves: what was acknowledged can be noticed when it is rolled back.
    signer.policies.heads.remember(caller.tenant, change.agent, incarnation, version)
    return outcome


def _before(signer: Signer, change: _Change, row: Any, *, last: bool) -> tuple[ParsedRule, ...] | None:
    """The rules as they are; none where the tenant may replace what somebody changed. None: read again."""
    caller = change.call.caller
    try:
        return _open_stored(signer, caller.tenant, change.agent, row)
    except RolledBack:
        # Mostly a change that was committed after this row was read; tampering only if it stays so.
        if not last:
            return None
    except PolicyTampered:
        pass
    # Not a set that may have asked for votes, or who changed it in the database could drop them.
    asked = signer.policies.heads.had_quorum(caller.tenant, change.agent, str(row["incarnation"]))
    if asked or isinstance(caller, ProvenAgent | ProvenAppClient):
        raise PolicyTampered
    return ()


async def _judge_votes(
    connection: Any, signer: Signer, change: _Change, row: Any, old: tuple[ParsedRule, ...]
) -> _Ballot:
    """Raise unless the change only tightens what asks for votes, or comes with one."""
    caller, version, quorums = change.call.caller, row["policy_version"], enabled_quorums(old)
    ref = caller.tenant, change.agent, str(row["incarnation"])
    said = None
    if quorums:
        subject, voter = (("policies", change.agent), change.given.by) if change.given else (None, None)
        read = await broken_quorums.read(connection, caller.tenant, change.agent, subject, voter)
        said = read.broken if broken_quorums.is_whole(signer, ref, version, read.broken) else None
        if broken_quorums.is_broken(signer, ref, version, read.broken, row["now"]):
            quorums = ()
        elif change.given is None:
            _keeps_quorum(signer, old, change.new)
        else:
            matter = Matter("policies", caller.tenant, change.agent, str(version), policy_hash(change.new).hex())
            tally = votes.tally(signer, matter, read.ballots, quorums, row["now"], change.given)
            met = all(len(quorum.voters(tally.votes)) >= quorum.threshold for quorum in quorums)
            return _Ballot(tally, met)
    if change.given is not None:
        raise VoteRefused("No rule of this agent asks for votes now: replace its policies without one.")
    # Told of this version: what is not in force yet goes on with the next one.
    waits = said is not None and said.effective_at is not None and said.effective_at > row["now"]
    return _Ballot(waiting=said.effective_at if said is not None and waits else None)


def _event(
    signer: Signer, caller: Asker, row: Any, old: tuple[ParsedRule, ...], new: tuple[ParsedRule, ...], version: int
) -> str:
    # Rules that somebody changed in the database were not read, so nothing is known to be tighter than they were.
    known = None if not old and row["head_count"] else old
    return change_event(caller, known, new, version, empty_policy=signer.empty_policy)


def _hold_quotas(
    signer: Signer, caller: Asker, old: str, new: tuple[ParsedRule, ...], answer_bytes: int
) -> AbstractContextManager[Held]:
    """Count what the set will have more than the one before it, and what is written; a shorter set always fits."""
    size = rules_bytes(new)
    before = sum(stored_bytes(rule_id, kind, config) for rule_id, kind, _, config in _decode_rows(old))
    return signer.quotas.hold(
        caller.tenant,
        spare=isinstance(caller, ProvenTenant),
        policy_bytes=size - before,
        bytes_per_day=size + answer_bytes,
    )


def _admit(caller: Asker, row: Any) -> None:
    if row is None:
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent):
        if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
            raise TokenRevoked
        if row["frozen"]:
            raise Frozen


async def _write(
    connection: Any, signer: Signer, arguments: tuple[Any, ...], ballot: _Ballot, intent: _ByIntent | None
) -> str:
    """The set, in one transaction with the last vote or with the intent that it is of, and with the operator's word
    that is not in force yet.
    """
    voters = ballot.tally.voters() if ballot.tally is not None else None
    if voters is None and ballot.waiting is None and intent is None:
        return str(await connection.fetchval(_REPLACE, *arguments))
    tenant, _, _, agent, incarnation, _, version, *_ = arguments
    try:
        async with connection.transaction():
            result = str(await connection.fetchval(_REPLACE, *arguments))
            if result == "done" and intent is not None:
                await intent.claimed(connection, {"status": "replaced", "policyVersion": version})
            if result == "done" and voters is not None:
                held = await connection.fetchval(_HOLD, tenant, voters.users, voters.macs, voters.keys)
                if not held or not await connection.fetchval(_PUT_VOTE, tenant, voters.vote):
                    raise _Moved
            if result == "done" and ballot.waiting is not None:
                # Otherwise a key of the tenant's could put the operator off for ever, by changes that only tighten.
                mac = broken_quorums.seal_break(signer, (tenant, agent, incarnation), version, ballot.waiting)
                await connection.execute(_PUT_BREAK, tenant, agent, version, ballot.waiting, mac)
    except _Moved:
        return "stale"
    return result


async def _keep_vote(
    connection: Any, change: _Change, row: Any, tally: ballots.Tally, old: tuple[ParsedRule, ...]
) -> PoliciesVoted | None:
    call = change.call
    assert tally.fresh is not None  # noqa: S101 - the tally refuses a vote that does not count
    outcome = PoliciesVoted(*counts(old, tally.votes), tally.given)
    said = {"policyHash": tally.matter.digest, "version": row["policy_version"], "keyId": tally.fresh.ballot.key_id}
    vet("approval.voted")
    result = await connection.fetchval(
        _VOTE,
        call.caller.tenant,
        call.caller.standing if isinstance(call.caller, ProvenTenant) else None,
        act(call, pack(outcome), **said, have=outcome.have, need=outcome.need),
        change.agent,
        row["incarnation"],
        row["ledger_version"],
        row["policy_version"],
        tally.row(tally.fresh),
    )
    return outcome if result == "done" else None


def _keeps_quorum(signer: Signer, old: tuple[ParsedRule, ...], new: tuple[ParsedRule, ...]) -> None:
    """Refuse what could drop the rule, or what it stands on: its votes would be worth nothing."""
    if (what := widening(old, new, empty_policy=signer.empty_policy)) is not None:
        raise QuorumNeeded(
            f"While an approval-quorum rule is enabled, policies may only be tightened. {what} Send the set with votes "
            "to POST /agents/{agentId}/policies/votes."
        )


def _only_tightens(signer: Signer, caller: Asker) -> bool:
    """Loosening rules decides over money, which an integration never does, regardless of what agents may do here."""
    return isinstance(caller, ProvenAppClient) or (isinstance(caller, ProvenAgent) and not signer.agent_put_replaces)


def _open_stored(signer: Signer, tenant: str, agent: str, row: Any) -> tuple[ParsedRule, ...]:
    head = (row["head_version"], row["head_count"], row["head_mac"])
    try:
        return signer.policies.open(
            tenant, agent, str(row["incarnation"]), head, row["policy_version"], row["rules"] or "[]"
        ).rules
    except Tampered:
        raise PolicyTampered from None


def _only_tighter(signer: Signer, caller: Asker, old: tuple[ParsedRule, ...], new: tuple[ParsedRule, ...]) -> None:
    if (what := widening(old, new, empty_policy=signer.empty_policy)) is not None:
        who = (
            "An agent may only tighten its own" if isinstance(caller, ProvenAgent) else "An app client may only tighten"
        )
        raise PolicyLoosened(f"{who} policies. {what}")
