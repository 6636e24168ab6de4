"""Identity's key: read from the file that the signer writes, and waited for where that has not been written yet."""

import asyncio
from pathlib import Path

from custody.kit.logs import logger
from custody.worker.key_file import KeyFile, KeyFileProblem
from custody.worker.keyring import Keyring

log = logger(__name__)
# A signer that starts beside us writes the file within a second, after it has found its database.
WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_CURE = "Start the signer of this host with the right master key: it rewrites the file."


def of(path: Path) -> KeyFile:
    """The identity key file at a path; its group may read it, for the signer may not give a file away."""
    return KeyFile(
        path=path, name="identity key", process="identity", forbidden=0o037, cure_other=_CURE, cure_lacking=_CURE
    )


async def when_there(file: KeyFile) -> Keyring:
    """Its versions, as soon as the signer has written them; KeyFileProblem when that takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_SECONDS
    while not file.path.exists():
        if loop.time() > deadline:
            raise KeyFileProblem(f"There is no identity key at {file.path}. {_CURE}")
        await asyncio.sleep(_LOOK_SECONDS)
    return file.read()
