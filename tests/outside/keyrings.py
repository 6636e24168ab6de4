"""A system's store of secrets: one that works, and can be locked."""

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """Keeps what it is given until the test ends. While `locked` it refuses, as one does whose person is away."""

    priority = 1.0  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        """Return the password kept under a name."""
        self._insist()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep something under a name."""
        self._insist()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        """Keep it no longer."""
        self._insist()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError

    def _insist(self) -> None:
        if self.locked:
            raise KeyringLocked("the collection is locked")
