"""The highest version seen of each agent's policies, of its signers and quorums, and of each policy set, beside the
database (promise P7).

Putting back an old sealed head together with its old rows would pass every MAC. It does not pass this file.
Lines are appended and synced before the change is answered; on start the file is rewritten without the old ones.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TextIO

COMPACT_AFTER = 10_000
# A line of policies has no word for it, as it had before there were others.
Sealed = Literal["policies", "authority", "quorum", "sets"]
# Those whose versions agents have; `sets` are policy sets, and `quorum` only marks that there was such a rule.
SETS: Final[tuple[Sealed, ...]] = ("policies", "authority", "sets")
_AGENTS: Final = (
    "SELECT id, incarnation::text, {}_version AS version FROM agents WHERE tenant_id = $1 AND id = ANY ($2)"
)
# Of a tenant the versions that the database has, by name. The set of every agent is there as long as its tenant is.
VERSIONS: Final[Mapping[Sealed, str]] = {
    "policies": _AGENTS.format("policy"),
    "authority": _AGENTS.format("authority"),
    "sets": (
        "SELECT n.id, '-' AS incarnation, COALESCE(s.version, 0) AS version FROM unnest($2::text[]) AS n (id) "
        "LEFT JOIN policy_sets s ON s.tenant_id = $1 AND s.id = n.id WHERE s.id IS NOT NULL OR n.id = 'tenant'"
    ),
}
_WORDS: Final[tuple[Sealed, ...]] = ("authority", "quorum", "sets")
# Before the first change: an agent is made with policies, and without signers.
_FIRST: dict[Sealed, int] = {"policies": 1, "authority": 0, "quorum": 0, "sets": 0}


class RolledBack(Exception):
    """The database holds an older set than this signer has already seen."""


class Heads:
    """Versions by (tenant, agent, incarnation), of policies and of authority. The first ones need no line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[tuple[str, str, str], int] = {}
        self._authority: dict[tuple[str, str, str], int] = {}
        # Versions of policies that had a rule about votes: what such a set becomes is not for a tenant's key to say.
        self._quorum: dict[tuple[str, str, str], int] = {}
        self._sets: dict[tuple[str, str, str], int] = {}
        self._file: TextIO | None = None
        self._appended = 0

    def load(self) -> None:
        """Read what was seen, and write it back compacted."""
        self._read()
        self._compact()

    def look(self) -> None:
        """Read what was seen, and write nothing: a signer may run beside who looks."""
        self._read()

    def _read(self) -> None:
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                parts = line.split(" ")
                # A line cut off by a crash was never acknowledged.
                if (
                    len(parts) < 5
                    or not parts[3].isdigit()
                    or parts[4:] not in (["."], *([word, "."] for word in _WORDS))
                ):
                    continue
                seen = self._of("policies" if len(parts) == 5 else next(word for word in _WORDS if word == parts[4]))
                key = (parts[0], parts[1], parts[2])
                seen[key] = max(int(parts[3]), seen.get(key, 0))

    def _of(self, of: Sealed) -> dict[tuple[str, str, str], int]:
        return {"policies": self._seen, "authority": self._authority, "quorum": self._quorum, "sets": self._sets}[of]

    def _compact(self) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(_line(key, version, "policies") for key, version in self._seen.items())
            file.writelines(_line(key, version, "authority") for key, version in self._authority.items())
            file.writelines(_line(key, version, "quorum") for key, version in self._quorum.items())
            file.writelines(_line(key, version, "sets") for key, version in self._sets.items())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self.close()
        self._file = self._path.open("a")
        self._appended = 0

    def check(self, tenant: str, agent: str, incarnation: str, version: int, *, of: Sealed = "policies") -> None:
        """Raise RolledBack for a version older than one seen; remember a newer one."""
        seen = self._of(of).get((tenant, agent, incarnation), _FIRST[of])
        if version < seen:
            raise RolledBack
        if version > seen:
            self.remember(tenant, agent, incarnation, version, of=of)

    def remember(self, tenant: str, agent: str, incarnation: str, version: int, *, of: Sealed = "policies") -> None:
        """Record a version that was committed, durably."""
        assert self._file is not None  # noqa: S101 - load() comes first
        key, known = (tenant, agent, incarnation), self._of(of)
        # Two changes that commit one after the other may be remembered the other way round.
        known[key] = max(version, known.get(key, 0))
        self._file.write(_line(key, version, of))
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._appended += 1
        if self._appended > COMPACT_AFTER:
            self._compact()

    def had_quorum(self, tenant: str, agent: str, incarnation: str) -> bool:
        """Say whether an agent ever had a rule about votes, as far as this signer knows."""
        return (tenant, agent, incarnation) in self._quorum

    def by_tenant(self, of: Sealed) -> dict[str, dict[tuple[str, str], int]]:
        """The highest version seen of each agent and incarnation, tenant by tenant."""
        found: dict[str, dict[tuple[str, str], int]] = {}
        for (tenant, agent, incarnation), version in self._of(of).items():
            found.setdefault(tenant, {})[(agent, incarnation)] = version
        return found

    def accept(self, older: Mapping[tuple[str, str, str], int], *, of: Sealed) -> None:
        """Take older versions for the newest, because the operator restored them; on disk when this returns."""
        self._of(of).update(older)
        self._compact()

    def forget_sets(self, tenant: str, policy_set: str | None = None) -> None:
        """Forget the policy sets of a tenant that is deleted, or one that is."""
        for key in [key for key in self._sets if key[0] == tenant and policy_set in (None, key[1])]:
            del self._sets[key]
        self._compact()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _line(key: tuple[str, str, str], version: int, of: Sealed) -> str:
    word = "" if of == "policies" else f"{of} "
    return f"{' '.join(key)} {version} {word}.\n"
