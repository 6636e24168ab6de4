"""The arguments of SQL functions for every act, as the composite types of custody/database/types/.

A driver passes composites by position: the fields stand in the order of the SQL types, which
tests/stores/test_composites.py compares.
"""

from typing import Literal, NamedTuple


class Credential(NamedTuple):
    """The credential that an act began with. Every write looks it up again: it may have ended meanwhile."""

    kind: Literal["tenant_key", "app_secret", "session"]
    hash: bytes | None = None
    session: str | None = None
    membership_mac: bytes | None = None


class Act(NamedTuple):
    """The traces of an act: the answer under its idempotency key, and its audit row."""

    principal: str
    route: str | None
    key_hash: bytes | None
    fingerprint: bytes | None
    answer: bytes | None
    actor_type: Literal["agent", "user", "system"]
    actor_id: str
    metadata: str
    origin: list[str | None]
