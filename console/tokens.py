"""Where a person's tokens are kept: in the system's keyring, else in a file that only they can read. Decisions 11.

A refresh token works once; using it a second time ends the session (that is how theft is noticed). So two consoles of
one profile renew under one lock, and whoever comes second takes what the first has got.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import keyring
import keyring.backends.fail
import keyring.errors
import msgspec

_KEYRING_NAME: Final = "custody-console"


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of one session."""

    token: str
    refresh_token: str

    def __repr__(self) -> str:
        return "Tokens()"


class TokenStore:
    """The tokens of one profile at one address: tokens of one service are never sent to another."""

    def __init__(self, folder: Path, profile: str, url: str) -> None:
        self._folder = folder / "tokens"
        self._name = f"{profile} {url}"
        self._file = self._folder / f"{_file_name(self._name)}.json"

    def read(self) -> Tokens | None:
        """What was kept last; None if nothing was, or what was cannot be read. Blocks: the keyring may ask."""
        text: str | None = None
        if _keyring_works():
            with suppress(keyring.errors.KeyringError):
                text = keyring.get_password(_KEYRING_NAME, self._name)
        if text is None:
            with suppress(OSError):
                text = self._file.read_text()
        try:
            return msgspec.json.decode(text, type=Tokens) if text else None
        except msgspec.DecodeError:
            return None

    def write(self, tokens: Tokens) -> None:
        """Keep these in place of others."""
        text = msgspec.json.encode(tokens).decode()
        if _keyring_works():
            with suppress(keyring.errors.KeyringError):
                keyring.set_password(_KEYRING_NAME, self._name, text)
                self._file.unlink(missing_ok=True)
                return
        self._make_folder()
        fresh = self._file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(self._file)

    def forget(self) -> None:
        """Keep nothing any more."""
        self._file.unlink(missing_ok=True)
        if _keyring_works():
            with suppress(keyring.errors.KeyringError):
                keyring.delete_password(_KEYRING_NAME, self._name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock among the consoles of this profile. Blocks."""
        self._make_folder()
        with os.fdopen(os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _keyring_works() -> bool:
    return not isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in name)
