"""Votes on a matter: read with the keys and people behind them, and counted from their evidence alone.

A vote counts while its person is an owner or admin, its key is theirs, living and pinned in a rule that is enabled, and
its time is not up. Of its row nothing is believed but the evidence.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

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
from custody.policies.kinds.approval_quorum import ApprovalQuorum
from custody.policies.quorum import is_pinned
from custody.protocol.signer.refusals import VoteRefused
from custody.worker.sealing import Tampered, fields
from signer.ballots import Ballot, Counted, GivenVote, Tally
from signer.context import Signer

APPROVER_KEY_MAC: Final = "approver-key-mac"


_read_ballots = msgspec.json.Decoder(list[Ballot]).decode


def key_content(  # noqa: PLR0913 - everything that a key is
    tenant: str, key: str, user: str, rp_id: str, credential_id: str, public_key: bytes, *, revoked: bool
) -> bytes:
    """Encode what the MAC of an approver's key is made over."""
    standing = "revoked" if revoked else "active"
    return fields("approver-key", tenant, key, user, rp_id, credential_id, public_key, standing)


def revoked_name(tenant: str, public_key: bytes) -> str:
    """Name a revoked key by what it is, so that it stays revoked under any other id."""
    return f"{tenant}/{fingerprint(public_key)}"


def tally(
    signer: Signer,
    matter: Matter,
    ballots: str | None,
    quorums: Sequence[ApprovalQuorum],
    now: datetime,
    vote: GivenVote | None,
) -> Tally:
    """Count the votes; VoteRefused where the one that is given now does not count."""
    counted: dict[str, Counted] = {}
    fresh: Counted | None = None
    for ballot in _read_ballots(ballots) if ballots else ():
        given = vote if ballot.voted_at is None else None
        try:
            one = _count(signer, matter, ballot, quorums, now, given)
        except NotAVote as problem:
            if given is not None:
                raise VoteRefused(f"This vote does not count: {problem}.") from None
            continue
        counted[ballot.user] = one
        fresh = one if given is not None else fresh
    if vote is not None and fresh is None:
        raise VoteRefused("This vote does not count: there is no such approver key.")
    return Tally(matter, tuple(counted.values()), fresh)


def _count(
    signer: Signer,
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


def _trusted_key(signer: Signer, tenant: str, ballot: Ballot) -> bytes:
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
