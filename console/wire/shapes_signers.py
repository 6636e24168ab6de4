"""Answers of the API about an agent's signers and key quorums. See `shapes.py`."""

import msgspec


class Signer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Somebody who authorises what an agent asks for."""

    id: str
    agent_id: str
    signer_type: str
    subject_type: str
    subject_id: str
    key_type: str
    status: str
    created_at: str
    public_key: str | None = None
    address: str | None = None
    label: str | None = None
    permissions: list[str] = []
    policy_ids: list[str] = []
    has_credential: bool = False
    not_before: str | None = None
    expires_at: str | None = None
    revoked_at: str | None = None


class KeyQuorum(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Several who must agree."""

    id: str
    agent_id: str
    name: str
    threshold: int
    status: str
    created_at: str
    member_signer_ids: list[str] = []
    member_quorum_ids: list[str] = []
    permissions: list[str] = []
    revoked_at: str | None = None


Named = Signer | KeyQuorum
