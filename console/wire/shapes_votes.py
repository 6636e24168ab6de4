"""Answers of the API about votes and the keys by which people vote. See `shapes.py`."""

import msgspec

from words.shapes import Votes


class ApproverKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A key by which a person votes; rules name it by its fingerprint."""

    id: str
    user_id: str
    name: str
    rp_id: str
    credential_id: str
    fingerprint: str
    status: str
    created_at: str
    revoked_at: str | None = None


class ExactOrder(msgspec.Struct, frozen=True, rename="camel"):
    """The order behind an item, as it is stored: what the digest is made of. Its texts were not made plain."""

    id: str
    tx_id: str
    kind: str
    digest: str
    order: str


class VoteTaken(msgspec.Struct, frozen=True, rename="camel"):
    """The vote was taken, and more are needed."""

    status: str
    votes: Votes
