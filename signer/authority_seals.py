"""The sealed set of an agent's signers and quorums: one head commits to every living row (promise P7)."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Final

import msgspec

from custody.identity.authority import Authority, Quorum, QuorumRow, Signer, SignerRow, StoredAuthority
from custody.kit.cache import Cache
from custody.worker.sealing import Sealer, Tampered, fields, sha256
from signer.rollback_journal import Heads

AUTHORITY_MAC: Final = "authority-mac"
# Sets that were checked and parsed, by their text; the text of one is at most some 60 KiB.
_KEPT = 256
_KEPT_SECONDS = 600.0
_WITHOUT_TIMES: Final = SignerRow._fields.index("not_before")
_read_stored = msgspec.json.Decoder(StoredAuthority).decode
_words = msgspec.json.Decoder(tuple[str, ...]).decode


class AuthoritySeals:
    """Seals sets, and refuses one whose head is not ours or older than one already seen."""

    def __init__(self, sealer: Sealer, heads: Heads) -> None:
        self._sealer = sealer
        self.heads = heads
        self._kept: Cache[tuple[str, str, str, int, str], Authority] = Cache(_KEPT, _KEPT_SECONDS)

    def seal(
        self,
        tenant: str,
        agent: str,
        incarnation: str,
        version: int,
        signers: list[SignerRow],
        quorums: list[QuorumRow],
    ) -> bytes:
        """The head's MAC."""
        return self._sealer.mac(AUTHORITY_MAC, tenant, content(tenant, agent, incarnation, version, signers, quorums))

    def open(self, tenant: str, agent: str, incarnation: str, version: int, text: str) -> Authority:
        """The set that `authority_read` told, whole, ours and current; Tampered or RolledBack otherwise.

        `version` is the agent row's. At 0 there never was a signer: then there may be neither a head nor a row.
        """
        key = (tenant, agent, incarnation, version, text)
        found = self._kept.get(key)
        if found is None:
            found = self._read(tenant, agent, incarnation, version, text)
            self._kept.put(key, found)
        # Only now: what is newer is remembered, and a version that nobody sealed must not be.
        self.heads.check(tenant, agent, incarnation, version, of="authority")
        return found

    def _read(self, tenant: str, agent: str, incarnation: str, version: int, text: str) -> Authority:
        stored = stored_of(text)
        if version == 0 and stored.head is None and not stored.signers and not stored.quorums:
            return Authority({}, {})
        sealed = content_of_set(tenant, agent, incarnation, version, text)
        self._sealer.check_mac(_mac_of(stored), AUTHORITY_MAC, tenant, sealed)
        return Authority(
            {row.id: _signer(row) for row in stored.signers}, {row.id: quorum_of(row) for row in stored.quorums}
        )


def content(
    tenant: str, agent: str, incarnation: str, version: int, signers: list[SignerRow], quorums: list[QuorumRow]
) -> bytes:
    """Encode what a head's MAC is made over: every living row but for what people call it."""
    hashes = sorted(
        [sha256(fields("signer", *_parts_of(row))) for row in signers]
        + [sha256(fields("quorum", *row)) for row in quorums]
    )
    return fields("authority-head", tenant, agent, incarnation, version, len(hashes), *hashes)


def _parts_of(row: SignerRow) -> Iterator[str | int]:
    """A signer as it is sealed; one without times as it was before there were any."""
    yield from (part or "" for part in row[:_WITHOUT_TIMES])
    times = row[_WITHOUT_TIMES:]
    if any(time is not None for time in times):
        yield from ("" if time is None else time for time in times)


def content_of_set(tenant: str, agent: str, incarnation: str, version: int, text: str) -> bytes:
    """Encode what the MAC of a stored set is made over; Tampered where head, agent and rows do not hang together."""
    stored = stored_of(text)
    if stored.head is None or stored.head[:2] != (version, len(stored.signers) + len(stored.quorums)):
        raise Tampered
    return content(tenant, agent, incarnation, version, stored.signers, stored.quorums)


def stored_of(text: str) -> StoredAuthority:
    """A set as `authority_read` told it; Tampered where a row says what the signer never writes."""
    try:
        return _read_stored(text)
    except msgspec.DecodeError:
        raise Tampered from None


def credentials_in(text: str) -> dict[str, str]:
    """The sealed credentials of the signers in a stored set, in base64 by signer."""
    return stored_of(text).credentials


def _mac_of(stored: StoredAuthority) -> bytes:
    return b64decode(stored.head[2]) if stored.head is not None else b""


def _signer(row: SignerRow) -> Signer:
    return Signer(
        id=row.id,
        signer_type=row.signer_type,
        subject=(row.subject_type, row.subject_id),
        key_type=row.key_type,
        public_key=b64decode(row.public_key) if row.public_key else None,
        permissions=frozenset(_words(row.permissions)),
        policy_ids=_words(row.policy_ids),
        status=row.status,
        not_before=row.not_before,
        expires_at=row.expires_at,
    )


def quorum_of(row: QuorumRow) -> Quorum:
    return Quorum(
        id=row.id,
        threshold=row.threshold,
        members=_words(row.members),
        children=_words(row.children),
        permissions=frozenset(_words(row.permissions)),
        status=row.status,
    )
