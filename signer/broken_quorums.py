"""The rules' view of their quorums: whether the operator broke them, and the votes there are, uncounted."""

from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from custody.kit import clock
from custody.policies.quorum import TYPE
from custody.worker.sealing import Tampered, fields
from custody.worker.state import Worker

QUORUM_BREAK_MAC: Final = "quorum-break-mac"
_READ = "SELECT * FROM quorum_read($1, $2, $3, $4, $5, $6)"


class Break(NamedTuple):
    """The word of the operator on a version of the rules."""

    version: int | None
    effective_at: datetime | None
    mac: bytes | None


class Read(msgspec.Struct, frozen=True):
    """The reading beside the rules; `ballots` is the text of the votes, which `signer/votes.py` counts."""

    broken: Break
    ballots: str | None


def names_votes(rules: str | None) -> bool:
    """Tell whether the stored text of a set may have a rule that asks for votes; what has none costs nothing more."""
    return rules is not None and f'"{TYPE}' in rules


async def read(
    connection: Any, tenant: str, agent: str, subject: tuple[str, str] | None, voter: tuple[str, str] | None = None
) -> Read:
    """Read the votes on a subject (kind and id), that of a voter and a key among them, and what the operator said."""
    kind, name = subject or (None, None)
    row = await connection.fetchrow(_READ, tenant, agent, kind, name, *(voter or (None, None)))
    return Read(
        Break(row["break_version"], row["break_effective"], row["break_mac"]),
        row["ballots"],
    )


def is_broken(signer: Worker, ref: tuple[str, str, str], version: int, said: Break, now: datetime) -> bool:
    """Tell whether the operator broke the quorums of this version of the rules, and a day has gone by.

    `ref`: tenant, agent, incarnation. A row that is not the signer's own breaks nothing.
    """
    return said.effective_at is not None and said.effective_at <= now and is_whole(signer, ref, version, said)


def is_whole(signer: Worker, ref: tuple[str, str, str], version: int, said: Break) -> bool:
    """Tell whether the operator said it of this version of the rules."""
    if said.version != version or said.effective_at is None:
        return False
    tenant, agent, incarnation = ref
    content = break_content(tenant, agent, incarnation, version, said.effective_at)
    try:
        signer.sealer.check_mac(said.mac, QUORUM_BREAK_MAC, tenant, content)
    except Tampered:
        return False
    return True


def seal_break(signer: Worker, ref: tuple[str, str, str], version: int, effective_at: datetime) -> bytes:
    """The MAC of what the operator says."""
    tenant, agent, incarnation = ref
    return signer.sealer.mac(QUORUM_BREAK_MAC, tenant, break_content(tenant, agent, incarnation, version, effective_at))


def break_content(tenant: str, agent: str, incarnation: str, version: int, effective_at: datetime) -> bytes:
    """The content that the MAC of a break is made over."""
    return fields("quorum-break", tenant, agent, incarnation, version, clock.unix_microseconds(effective_at))
