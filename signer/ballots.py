"""The parts of a vote, and the votes on one matter that count."""

from datetime import UTC, datetime

import msgspec

from custody.identity.assertions import Evidence, Matter, base64url, from_base64url
from custody.kit import clock
from custody.kit.shapes import Role
from custody.protocol.signer.orders import Vote
from custody.protocol.signer.outcomes import VoteGiven
from custody.protocol.signer.refusals import VoteRefused
from signer.ledger import VoteRow, Voters


class GivenVote(msgspec.Struct, frozen=True):
    """A vote that is given now: by whom, with which of their keys, and until when it may last at most."""

    user: str
    key_id: str
    evidence: Evidence
    latest: datetime | None

    @property
    def by(self) -> tuple[str, str]:
        """The person and the key."""
        return self.user, self.key_id


def given_vote(user: str, vote: Vote, latest: datetime | None) -> GivenVote:
    """A vote as it was sent, decoded; VoteRefused where it is not base64url."""
    try:
        evidence = Evidence(
            from_base64url(vote.authenticator_data), from_base64url(vote.client_data), from_base64url(vote.signature)
        )
    except ValueError:
        raise VoteRefused("This vote does not count: its fields are not base64url without padding.") from None
    return GivenVote(user, vote.key_id, evidence, latest)


class Ballot(msgspec.Struct, frozen=True, array_like=True):
    """A vote as `quorum_read` tells of it, with its key and membership; bytes are in hex. No time: it is given now."""

    user: str
    key_id: str
    authenticator_data: str
    client_data: str
    signature: str
    voted_at: datetime | None
    key_user: str
    rp_id: str
    credential_id: str
    public_key: str
    key_mac: str
    revoked: bool
    count: int
    role: Role
    member_since: datetime
    membership_mac: str


class Counted(msgspec.Struct, frozen=True):
    """A vote that counts."""

    ballot: Ballot
    evidence: Evidence
    fingerprint: str
    until: int
    sign_count: int
    voted_at: datetime


class Tally(msgspec.Struct, frozen=True):
    """The votes that count, and the one among them that is given now."""

    matter: Matter
    counted: tuple[Counted, ...]
    fresh: Counted | None

    @property
    def votes(self) -> frozenset[tuple[str, str]]:
        """By person and fingerprint of the key, as rules count them."""
        return frozenset((one.ballot.user, one.fingerprint) for one in self.counted)

    @property
    def until(self) -> int:
        """The end of the last of them."""
        return max((one.until for one in self.counted), default=0)

    @property
    def given(self) -> list[VoteGiven]:
        """The votes given, the first first."""
        return [VoteGiven(one.ballot.user, clock.iso(one.voted_at)) for one in self.counted]

    def voters(self) -> Voters | None:
        """Collect what the write looks at again; None without a vote."""
        if not self.counted:
            return None
        return Voters(
            [one.ballot.user for one in self.counted],
            [bytes.fromhex(one.ballot.membership_mac) for one in self.counted],
            [one.ballot.key_id for one in self.counted],
            None if self.fresh is None else self.row(self.fresh),
        )

    def row(self, one: Counted) -> VoteRow:
        """A vote as it is kept."""
        return VoteRow(
            self.matter.kind,
            self.matter.subject,
            one.ballot.user,
            one.ballot.key_id,
            one.evidence.authenticator_data,
            one.evidence.client_data,
            one.evidence.signature,
            datetime.fromtimestamp(one.until, UTC),
            one.sign_count,
        )

    def text(self) -> str | None:
        """The votes as a receipt shows them; None without one."""
        if not self.counted:
            return None
        return msgspec.json.encode([_state(one) for one in self.counted]).decode()


def _state(one: Counted) -> dict[str, str]:
    return {
        "userId": one.ballot.user,
        "keyId": one.ballot.key_id,
        "rpId": one.ballot.rp_id,
        "publicKey": base64url(bytes.fromhex(one.ballot.public_key)),
        "authenticatorData": base64url(one.evidence.authenticator_data),
        "clientDataJSON": base64url(one.evidence.client_data),
        "signature": base64url(one.evidence.signature),
    }
