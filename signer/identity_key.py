"""The key of the process `identity`: derived from each version of the master key, and left where identity reads it.

Identity seals people's rows under it and never sees the master key. The signer holds the same derived keys, to check
these rows itself. docs/sealed-blob.md 3.
"""

import os
import stat
from pathlib import Path

from custody.kit.logs import logger
from custody.worker import key_file
from custody.worker.key_file import KeyFileProblem
from custody.worker.keyring import Keyring
from custody.worker.sealing import Sealer

log = logger(__name__)
PURPOSE = "identity"
HEAD = "# Custody identity key. The signer derives it from the master key and writes it; it needs no copy.\n"


class IdentityKey:
    """Follows the master key: whatever versions that has, identity's file and the signer's second sealer have too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sealer = Sealer(Keyring({}))

    def follow(self, master: Sealer) -> None:
        """Derive from these versions of the master key from now on."""
        self.sealer.renew(master.derive(PURPOSE))

    def keep(self) -> None:
        """Have them in the file; KeyFileProblem where that may not be written."""
        content = HEAD + key_file.lines(self.sealer.keyring.versions)
        try:
            if self.path.read_text() == content:
                return
        except OSError:
            pass
        try:
            self._write(content)
        except OSError as problem:
            raise KeyFileProblem(
                f"The identity key {self.path} cannot be written: {problem.strerror}. Give the signer's user its "
                "folder."
            ) from None
        log.info("the identity key was written", extra={"path": str(self.path)})

    def _write(self, content: str) -> None:
        """In one step: identity finds the old file or the new one."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, exist_ok=True)
        draft = folder / f".{self.path.name}.new"
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if folder.stat().st_mode & stat.S_ISGID:
            # The group of such a folder is identity's: it may read, and nobody but the signer may write.
            os.fchmod(descriptor, 0o640)
        key_file.write(descriptor, content)
        draft.replace(self.path)
        key_file.sync_folder(folder)
