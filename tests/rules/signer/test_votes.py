"""Votes that count: each thing about a key, a person and a time that must be so, taken away one at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from custody.identity.assertions import Evidence, Matter, challenge, fingerprint, from_base64url
from custody.policies.kinds.approval_quorum import ApprovalQuorum
from custody.protocol.signer.refusals import VoteRefused
from custody.worker.keyring import Keyring
from custody.worker.proofs import MEMBERSHIP_MAC, Proofs, membership_content
from custody.worker.sealing import Sealer, fields
from signer.ballots import Ballot, GivenVote
from signer.claims import Claims
from signer.votes import key_content, revoked_name, tally
from tests.fixtures.approvers import RP_ID, Authenticator

# As rows of before have it.
KEY_MAC = "approver-key-mac"
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
MATTER = Matter("approval", "acme", "item", "transaction", "ab" * 32)
NONCE = bytes(16)
KEYS = {"ann": Authenticator(), "bob": Authenticator()}
UNTIL = int((NOW + timedelta(hours=1)).timestamp())


@dataclass(frozen=True)
class Parts:
    """The parts of a signer that votes are counted with."""

    sealer: Sealer
    proofs: Proofs
    claims: Claims


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[Parts]:
    """The real ones, of which membership is never looked up."""
    sealer, identity = (Sealer(Keyring({1: bytes([one]) * 32})) for one in (1, 2))
    claims = Claims(tmp_path / "claims")
    claims.load()
    yield Parts(sealer, Proofs(None, identity, None, None), claims)
    claims.close()


def evidence(user="ann", *, until=UNTIL, count=7, matter=MATTER, key=None, signs_for=None):
    made = KEYS[key or user].assertion(challenge(matter, signs_for or user, NONCE, until), count=count)
    return Evidence(*(from_base64url(made[name]) for name in ("authenticatorData", "clientDataJSON", "signature")))


def ballot(signer, user="ann", *, made=None, given=False, **changed):
    """A ballot as its row tells of it, with MACs as they should be; `changed` is what somebody wrote there since."""
    public_key = KEYS[user].public_key
    content = key_content("acme", f"key-{user}", user, RP_ID, "credential", public_key, revoked=False)
    member = membership_content("acme", user, "admin", SINCE)
    made = made or evidence(user)
    whole = Ballot(
        user=user,
        key_id=f"key-{user}",
        authenticator_data=made.authenticator_data.hex(),
        client_data=made.client_data.hex(),
        signature=made.signature.hex(),
        voted_at=None if given else NOW - timedelta(minutes=1),
        key_user=user,
        rp_id=RP_ID,
        credential_id="credential",
        public_key=public_key.hex(),
        key_mac=signer.sealer.mac(KEY_MAC, "acme", content).hex(),
        revoked=False,
        count=6,
        role="admin",
        member_since=SINCE,
        membership_mac=signer.proofs._sealer.mac(MEMBERSHIP_MAC, "acme", member).hex(),
    )
    return msgspec.structs.replace(whole, **changed)


def pins(*users, named=None):
    keys = {user: frozenset({fingerprint(KEYS[user].public_key)}) for user in users}
    return [ApprovalQuorum(threshold=2, approvers=named if named is not None else keys, above=None, asset=None)]


def count(signer, *ballots, vote=None, quorums=None, matter=MATTER):
    text = msgspec.json.encode(list(ballots)).decode() if ballots else None
    return tally(signer, matter, text, pins("ann", "bob") if quorums is None else quorums, NOW, vote)


def vote_of(user="ann", *, made=None, latest=None):
    return GivenVote(user, f"key-{user}", made or evidence(user), latest)


def test_kept_votes_count_by_person_and_key(signer):
    found = count(signer, ballot(signer), ballot(signer, "bob"))

    assert found.votes == {(user, fingerprint(KEYS[user].public_key)) for user in KEYS}
    assert (found.matter, found.fresh, found.until) == (MATTER, None, UNTIL)
    first = found.counted[0]
    assert (first.until, first.sign_count, first.voted_at) == (UNTIL, 7, NOW - timedelta(minutes=1))
    assert first.evidence.signature.hex() == first.ballot.signature


def test_no_ballots_are_no_votes(signer):
    assert count(signer).counted == ()
    assert count(signer).votes == frozenset()


def member_mac(signer, *, user="ann", role="admin", since=SINCE, tenant="acme"):
    return signer.proofs._sealer.mac(MEMBERSHIP_MAC, tenant, membership_content(tenant, user, role, since)).hex()


def key_mac(signer, *, tenant="acme", key="key-ann", user="ann", credential="credential", rp_id=RP_ID, revoked=False):
    content = key_content(tenant, key, user, rp_id, credential, KEYS["ann"].public_key, revoked=revoked)
    return signer.sealer.mac(KEY_MAC, tenant, content).hex()


def changed_rows(signer):
    """Each way in which a row may lie or no longer hold, and what is said to a vote that is given now."""
    bob = KEYS["bob"].public_key.hex()
    return {
        "the key of another": ({"public_key": bob}, "the key is not one that was registered"),
        "a key without a MAC": ({"key_mac": ""}, "the key is not one that was registered"),
        "a key of another site": ({"rp_id": "elsewhere.example"}, "the key is not one that was registered"),
        "a key under another id": ({"key_id": "key-other"}, "the key is not one that was registered"),
        "a key with another credential": ({"credential_id": "other"}, "the key is not one that was registered"),
        "a key of another tenant": ({"key_mac": key_mac(signer, tenant="other")}, "the key is not one that was"),
        "a key whose revocation was taken back": (
            {"key_mac": key_mac(signer, revoked=True)},
            "the key is not one that was registered",
        ),
        "a key that is revoked": (
            {"key_mac": key_mac(signer, revoked=True), "revoked": True},
            "the key was revoked",
        ),
        "another person's key": (
            {"key_mac": key_mac(signer, user="eve"), "key_user": "eve"},
            "the key is another person's",
        ),
        "a membership without a MAC": ({"membership_mac": ""}, "no owner or admin of the tenant"),
        "a membership that began again": ({"member_since": NOW}, "no owner or admin of the tenant"),
        "a higher role than was given": ({"role": "owner"}, "no owner or admin of the tenant"),
        "a role that does not vote": (
            {"role": "viewer", "membership_mac": member_mac(signer, role="viewer")},
            "no owner or admin of the tenant",
        ),
        "a member of another tenant": (
            {"membership_mac": member_mac(signer, tenant="other")},
            "no owner or admin of the tenant",
        ),
        "another member": ({"membership_mac": member_mac(signer, user="bob")}, "no owner or admin of the tenant"),
    }


def test_a_row_that_lies_has_no_vote(signer):
    for what, (row, why) in changed_rows(signer).items():
        votes = count(signer, ballot(signer, **row), ballot(signer, "bob")).votes
        assert votes == {("bob", fingerprint(KEYS["bob"].public_key))}, what
        with pytest.raises(VoteRefused, match=f"This vote does not count: .*{why}"):
            count(signer, ballot(signer, given=True, **row), vote=vote_of())


def test_an_owner_votes_too(signer):
    row = ballot(signer, role="owner", membership_mac=member_mac(signer, role="owner"))

    assert len(count(signer, row).counted) == 1


def test_a_key_that_was_revoked_stays_so_whatever_the_row_says(signer):
    signer.claims.revoke(revoked_name("acme", KEYS["ann"].public_key))

    assert count(signer, ballot(signer)).counted == ()
    with pytest.raises(VoteRefused, match="the key was revoked"):
        count(signer, ballot(signer, given=True), vote=vote_of())
    assert revoked_name("acme", b"key") == f"acme/{fingerprint(b'key')}"


@pytest.mark.parametrize("named", [{}, {"ann": frozenset()}, {"bob": frozenset({fingerprint(KEYS["ann"].public_key)})}])
def test_a_rule_must_name_this_key_for_this_person(signer, named):
    assert count(signer, ballot(signer), quorums=pins(named=named)).counted == ()
    with pytest.raises(VoteRefused, match="no approval-quorum rule of this agent names this key for this person"):
        count(signer, ballot(signer, given=True), vote=vote_of(), quorums=pins(named=named))


@pytest.mark.parametrize(
    "made",
    [
        evidence(matter=msgspec.structs.replace(MATTER, digest="cd" * 32)),
        evidence(matter=msgspec.structs.replace(MATTER, tenant="other")),
        evidence(key="bob"),
        evidence(signs_for="bob"),
    ],
)
def test_the_assertion_must_be_of_this_matter_key_and_person(signer, made):
    assert count(signer, ballot(signer, made=made)).counted == ()
    with pytest.raises(VoteRefused):
        count(signer, ballot(signer, given=True), vote=vote_of(made=made))


@pytest.mark.parametrize(
    ("until", "why"),
    [
        (int(NOW.timestamp()), "its time is up"),
        (int(NOW.timestamp()) - 1, "its time is up"),
        (int(NOW.timestamp()) + 86_401, "it would last longer than 24 hours"),
    ],
)
def test_a_vote_ends(signer, until, why):
    made = evidence(until=until)

    assert count(signer, ballot(signer, made=made)).counted == ()
    with pytest.raises(VoteRefused, match=why):
        count(signer, ballot(signer, given=True), vote=vote_of(made=made))


@pytest.mark.parametrize("until", [int(NOW.timestamp()) + 1, int(NOW.timestamp()) + 86_400])
def test_a_vote_counts_until_its_end(signer, until):
    assert count(signer, ballot(signer, made=evidence(until=until))).until == until


def test_a_vote_that_is_given_lasts_no_longer_than_its_item(signer):
    ends = datetime.fromtimestamp(UNTIL, UTC)

    with pytest.raises(VoteRefused, match="it would last longer than the item waits"):
        count(signer, ballot(signer, given=True), vote=vote_of(latest=ends - timedelta(seconds=1)))
    assert count(signer, ballot(signer, given=True), vote=vote_of(latest=ends)).fresh is not None


def test_a_vote_that_is_given_counts_now(signer):
    vote = vote_of()

    found = count(signer, ballot(signer, "bob"), ballot(signer, given=True), vote=vote)

    assert found.fresh is found.counted[1]
    assert found.fresh.voted_at == NOW
    assert found.fresh.evidence == vote.evidence
    assert [one.ballot.user for one in found.counted] == ["bob", "ann"]


def test_of_a_ballot_that_is_given_only_the_evidence_beside_it_counts(signer):
    lies = ballot(signer, given=True, made=evidence(matter=msgspec.structs.replace(MATTER, digest="cd" * 32)))

    assert count(signer, lies, vote=vote_of()).fresh is not None


def test_a_vote_needs_its_key(signer):
    for ballots in ((), (ballot(signer, "bob"),)):
        with pytest.raises(VoteRefused, match="there is no such approver key"):
            count(signer, *ballots, vote=vote_of())


@pytest.mark.parametrize(("known", "shown", "counts"), [(6, 7, True), (7, 7, False), (8, 7, False), (7, 0, False)])
def test_the_counter_of_an_authenticator_rises(signer, known, shown, counts):
    row, vote = ballot(signer, given=True, count=known), vote_of(made=evidence(count=shown))
    kept = ballot(signer, count=known, made=evidence(count=shown))

    assert len(count(signer, kept).counted) == 1
    if counts:
        assert count(signer, row, vote=vote).fresh.sign_count == shown
    else:
        with pytest.raises(VoteRefused, match="counter did not rise"):
            count(signer, row, vote=vote)


@pytest.mark.parametrize("known", [0, 1])
def test_an_authenticator_may_have_no_counter(signer, known):
    row = ballot(signer, given=True, count=known)

    if known:
        with pytest.raises(VoteRefused, match="counter did not rise"):
            count(signer, row, vote=vote_of(made=evidence(count=0)))
    else:
        assert count(signer, row, vote=vote_of(made=evidence(count=0))).fresh is not None


def test_the_content_of_a_key_names_all_of_it():
    plain = key_content("t", "k", "u", "r", "c", b"p", revoked=False)

    assert plain == fields("approver-key", "t", "k", "u", "r", "c", b"p", "active")
    assert key_content("t", "k", "u", "r", "c", b"p", revoked=True) == fields(
        "approver-key", "t", "k", "u", "r", "c", b"p", "revoked"
    )
