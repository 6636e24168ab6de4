"""Votes on a matter: read with the keys and people behind them, and counted from their evidence alone.

A vote counts while its person is an owner or admin, its key is theirs, living and pinned in a rule that is enabled, and
its time is not up. Of its row nothing is believed but the evidence.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from custody.identity.assertions import (
    MAX_SECONDS,
    Evidence,
    Matter,
    NotAVote,
    check,
    fingerprint,
)
from custody.identity.roles import ADMINS
from custody.kit import clock
from custody.policies.kinds.approval_quorum import ApprovalQuorum
from custody.policies.quorum import TYPE, is_pinned
from custody.protocol.signer.refusals import VoteRefused
from custody.worker.sealing import Tampered, fields
from signer.ballots import Ballot, Break, Counted, GivenVote, Read, Tally
from signer.signing_state import SigningState

APPROVER_KEY_MAC: Final = "approver-key-mac"
QUORUM_BREAK_MAC: Final = "quorum-break-mac"
_READ = "SELECT * FROM quorum_read($1, $2, $3, $4, $5, $6)"
_NO_BREAK: Final = (None, None, None)


_read_ballots = msgspec.json.Decoder(list[Ballot]).decode


def names_votes(rules: str | None) -> bool:
    """Whether the stored text of a set may have a rule that asks for votes; what has none costs nothing more."""
    return rules is not None and f'"{TYPE}' in rules


async def read(
    connection: Any, tenant: str, agent: str, subject: tuple[str, str] | None, vote: GivenVote | None = None
) -> Read:
    """The votes on a subject (its kind and id), the one given now among them, and what the operator said."""
    kind, name = subject or (None, None)
    row = await connection.fetchrow(
        _READ, tenant, agent, kind, name, vote.user if vote else None, vote.key_id if vote else None
    )
    return Read(
        Break(row["break_version"], row["break_effective"], row["break_mac"]),
        _read_ballots(row["ballots"]) if row["ballots"] else [],
    )


def is_broken(signer: SigningState, ref: tuple[str, str, str], version: int, said: Break, now: datetime) -> bool:
    """Whether the operator broke the quorums of this version of the rules, and a day has gone by.

    `ref`: tenant, agent, incarnation. A row that is not the signer's own breaks nothing.
    """
    return said.effective_at is not None and said.effective_at <= now and is_whole(signer, ref, version, said)


def is_whole(signer: SigningState, ref: tuple[str, str, str], version: int, said: Break) -> bool:
    """Whether the operator said it of this version of the rules."""
    if said.version != version or said.effective_at is None:
        return False
    tenant, agent, incarnation = ref
    content = break_content(tenant, agent, incarnation, version, said.effective_at)
    try:
        signer.sealer.check_mac(said.mac, QUORUM_BREAK_MAC, tenant, content)
    except Tampered:
        return False
    return True


def seal_break(signer: SigningState, ref: tuple[str, str, str], version: int, effective_at: datetime) -> bytes:
    """The MAC of what the operator says."""
    tenant, agent, incarnation = ref
    return signer.sealer.mac(QUORUM_BREAK_MAC, tenant, break_content(tenant, agent, incarnation, version, effective_at))


def break_content(tenant: str, agent: str, incarnation: str, version: int, effective_at: datetime) -> bytes:
    """What the MAC of a break is made over."""
    return fields("quorum-break", tenant, agent, incarnation, version, clock.unix_microseconds(effective_at))


def key_content(  # noqa: PLR0913 - everything that a key is
    tenant: str, key: str, user: str, rp_id: str, credential_id: str, public_key: bytes, *, revoked: bool
) -> bytes:
    """What the MAC of an approver's key is made over."""
    standing = "revoked" if revoked else "active"
    return fields("approver-key", tenant, key, user, rp_id, credential_id, public_key, standing)


def revoked_name(tenant: str, public_key: bytes) -> str:
    """How a revoked key is noted: by what it is, so that it stays revoked under any other id."""
    return f"{tenant}/{fingerprint(public_key)}"


def tally(
    signer: SigningState,
    matter: Matter,
    ballots: Sequence[Ballot],
    quorums: Sequence[ApprovalQuorum],
    now: datetime,
    vote: GivenVote | None,
) -> Tally:
    """Count the votes; VoteRefused where the one that is given now does not count."""
    counted: dict[str, Counted] = {}
    fresh: Counted | None = None
    for ballot in ballots:
        given = vote if ballot.voted_at is None else None
        try:
            one = _counted(signer, matter, ballot, quorums, now, given)
        except NotAVote as problem:
            if given is not None:
                raise VoteRefused(f"This vote does not count: {problem}.") from None
            continue
        counted[ballot.user] = one
        fresh = one if given is not None else fresh
    if vote is not None and fresh is None:
        raise VoteRefused("This vote does not count: there is no such approver key.")
    return Tally(matter, tuple(counted.values()), fresh)


def _counted(
    signer: SigningState,
    matter: Matter,
    ballot: Ballot,
    quorums: Sequence[ApprovalQuorum],
    now: datetime,
    given: GivenVote | None,
) -> Counted:
    evidence = given.evidence if given is not None else _evidence(ballot)
    public_key = _trusted_key(signer, matter.tenant, ballot)
    pinned = fingerprint(public_key)
    if not is_pinned(quorums, ballot.user, pinned):
        raise NotAVote("no approval-quorum rule of this agent names this key for this person")
    if ballot.role not in ADMINS or not signer.proofs.is_member(
        matter.tenant, ballot.user, ballot.role, ballot.member_since, bytes.fromhex(ballot.membership_mac)
    ):
        raise NotAVote("the person is no owner or admin of the tenant")
    vote = check(evidence, public_key, ballot.rp_id, matter, ballot.user)
    _check_times(vote.until, now, given)
    if given is not None and (vote.count or ballot.count) and vote.count <= ballot.count:
        raise NotAVote("the authenticator's counter did not rise, so the key may have been copied")
    return Counted(ballot, evidence, pinned, vote.until, vote.count, ballot.voted_at or now)


def _check_times(until: int, now: datetime, given: GivenVote | None) -> None:
    if until <= now.timestamp():
        raise NotAVote("its time is up")
    # Also of a vote that was kept: nobody could have given it.
    if until > now.timestamp() + MAX_SECONDS:
        raise NotAVote("it would last longer than 24 hours")
    if given is not None and given.latest is not None and until > given.latest.timestamp():
        raise NotAVote("it would last longer than the item waits")


def _trusted_key(signer: SigningState, tenant: str, ballot: Ballot) -> bytes:
    public_key = bytes.fromhex(ballot.public_key)
    content = key_content(
        tenant, ballot.key_id, ballot.key_user, ballot.rp_id, ballot.credential_id, public_key, revoked=ballot.revoked
    )
    try:
        signer.sealer.check_mac(bytes.fromhex(ballot.key_mac), APPROVER_KEY_MAC, tenant, content)
    except Tampered:
        raise NotAVote("the key is not one that was registered") from None
    if ballot.key_user != ballot.user:
        raise NotAVote("the key is another person's")
    if ballot.revoked or signer.claims.is_revoked(revoked_name(tenant, public_key)):
        raise NotAVote("the key was revoked")
    return public_key


def _evidence(ballot: Ballot) -> Evidence:
    return Evidence(
        bytes.fromhex(ballot.authenticator_data), bytes.fromhex(ballot.client_data), bytes.fromhex(ballot.signature)
    )
