"""Notes in the operator's log that the master key file was sealed, unsealed, or has other holders than before.

The signer holds the head against the one that it noted last, so it does not matter with what program it was changed.
"""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from custody.kit.key_head import Head, MalformedHead
from custody.worker import key_file
from custody.worker.acts import enter
from custody.worker.proven import PLATFORM
from signer.master_key import MasterKeyFile

_AUDIT = "SELECT audit_append('system', 'signer', $1, 'master_key', $2, $3, NULL)"
_PLAIN = "plain"


class KeyHolders:
    """The head of the file, and what was noted of it in this state folder."""

    def __init__(self, note: Path, file: MasterKeyFile) -> None:
        self._note, self._file = note, file
        self._noted = note.read_text().strip() if note.exists() else _PLAIN

    async def tell(self, pool: Any) -> None:
        """Append to the log where the head is another one; again after a crash, rather than not at all."""
        try:
            head = self._file.head()
        except (OSError, MalformedHead):
            return
        now = _PLAIN if head is None else f"{head.file} {sha256(head.text).hexdigest()}"
        if now == self._noted:
            return
        async with pool.acquire() as connection, connection.transaction():
            await enter(connection, PLATFORM)
            await connection.execute(_AUDIT, self._action(head), (head.file if head else ""), _say(head))
        self._keep(now)

    def _action(self, head: Head | None) -> str:
        if head is None:
            return "key.file_unlocked"
        return "key.file_locked" if self._noted == _PLAIN else "key.holders_changed"

    def _keep(self, now: str) -> None:
        draft = self._note.with_suffix(".new")
        draft.unlink(missing_ok=True)
        key_file.write(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), now + "\n")
        draft.replace(self._note)
        self._noted = now


def _say(head: Head | None) -> str:
    holders = [f"{one.kind} {one.name}" for one in head.holders] if head else []
    return msgspec.json.encode({"holders": holders}).decode()
