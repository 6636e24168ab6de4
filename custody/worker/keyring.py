"""The keys that a worker derives all its others from."""

import msgspec


class Keyring(msgspec.Struct, frozen=True):
    """Versions of the master key: one seals, all open."""

    versions: dict[int, bytes]
    # Which one seals; without it the highest does.
    sealing: int | None = None
    # Those that something may be sealed with, as the database says; here or not.
    known: frozenset[int] = frozenset()

    @property
    def newest(self) -> int:
        """The version that seals."""
        return max(self.versions) if self.sealing is None else self.sealing

    def __repr__(self) -> str:
        return f"Keyring(versions={sorted(self.versions)}, sealing={self.newest})"
