"""A person's tokens, kept in the system's keyring, else in a file that only they can read.

A refresh token works once; using it a second time ends the session (that is how theft is noticed). So the consoles of
one profile renew under one lock, and the second one reuses the tokens of the first.
"""

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import keyring
import keyring.backends.fail
import keyring.backends.null
import keyring.errors
import msgspec

from console import private_file
from console.wire.failures import Away, Failure
from words.texts.plain import plain

_KEYRING_NAME: Final = "custody-console"
# Longer than a request that renews may take: who holds the lock for longer than this hangs.
LOCK_SECONDS: Final = 45.0
_LOOK_SECONDS: Final = 0.02


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of one session, whose they are, and when the first of them ends by this machine's clock.

    The refresh token is empty once it may have been used and nothing came of it.
    """

    token: str
    refresh_token: str
    ends_at: datetime
    user: str
    tenant: str

    def __repr__(self) -> str:
        return "Tokens()"

    def end_within(self, length: timedelta, now: datetime) -> bool:
        """Tell whether the first of them is good for no longer than this."""
        return self.ends_at - now <= length

    def without_refresh_token(self) -> "Tokens":
        """These, without the refresh token."""
        return msgspec.structs.replace(self, refresh_token="")


class _Kept(msgspec.Struct, frozen=True):
    """Stored tokens, with their owner, so that tokens in the wrong place are of no use there."""

    profile: str
    url: str
    tokens: Tokens

    def __repr__(self) -> str:
        return "_Kept()"


class TokenStore:
    """The tokens of one profile at one address: those of one service are never sent to another.

    Its methods block, for a keyring may ask the person first. `say` is told what one should know of it.
    """

    def __init__(self, folder: Path, profile: str, url: str, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._folder = folder / "tokens"
        self._profile = profile
        self._url = url
        self._lock_seconds = lock_seconds
        self._name = f"{profile} {url}"
        self.file = self._folder / f"{_file_name(self._name)}.json"
        self.say: Callable[[str], None] = lambda sentence: None
        self._said = set[str]()

    def read(self) -> Tokens | None:
        """Return the tokens kept last; None if there are none, or they cannot be used."""
        # A file is there only if it is newer than what the keyring has: old tokens would end the session.
        text = self._read_file()
        if text is None and _keyring_works():
            try:
                text = keyring.get_password(_KEYRING_NAME, self._name)
            except Exception as problem:  # A backend may raise anything.
                self._say(f"The system's keyring cannot be read ({_reason(problem)}).")
        try:
            kept = msgspec.json.decode(text, type=_Kept) if text else None
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None
        return kept.tokens if kept and (kept.profile, kept.url) == (self._profile, self._url) else None

    def is_empty(self) -> bool:
        """Tell whether surely nothing is kept: what is there and cannot be read is something."""
        if os.path.lexists(self.file):
            return False
        try:
            return not _keyring_works() or keyring.get_password(_KEYRING_NAME, self._name) is None
        except Exception:  # A backend may raise anything.
            return False

    def write(self, tokens: Tokens) -> None:
        """Keep these in place of others. Where nothing can be kept, say so: the session goes on without."""
        text = msgspec.json.encode(_Kept(self._profile, self._url, tokens)).decode()
        try:
            if not self._write_keyring(text):
                self._make_folder()
                private_file.write(self.file, text)
        except OSError as problem:
            # What was kept before is used up.
            self.forget()
            self._say(f"The session cannot be saved in {self.file} ({problem.strerror}); it ends with this console.")

    def forget(self) -> None:
        """Keep nothing any more."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
        if _keyring_works():
            try:
                keyring.delete_password(_KEYRING_NAME, self._name)
            except keyring.errors.PasswordDeleteError:
                pass  # There was nothing.
            except Exception as problem:
                self._say(f"The system's keyring could not delete the session ({_reason(problem)}).")

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold the lock among the consoles of this profile. The kernel takes it from a console that dies."""
        try:
            self._make_folder()
            lock = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise Failure(f"{self._folder} cannot be written ({problem.strerror}); make yourself its owner.") from None
        try:
            await _lock(lock, self._lock_seconds)
            yield
        finally:
            os.close(lock)

    def _read_file(self) -> str | None:
        try:
            return private_file.read(self.file)
        except private_file.Exposed as problem:
            self._say(f"{str(problem)[0].upper()}{str(problem)[1:]}, or sign in again.")
        except (OSError, ValueError):
            pass
        return None

    def _write_keyring(self, text: str) -> bool:
        if not _keyring_works():
            return False
        try:
            keyring.set_password(_KEYRING_NAME, self._name, text)
        except Exception as problem:  # A backend may raise anything.
            self._say(f"The system's keyring cannot be used ({_reason(problem)}); the session is saved in {self.file}.")
            return False
        self.file.unlink(missing_ok=True)
        return True

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._folder.stat().st_mode & 0o077:
            self._folder.chmod(0o700)

    def _say(self, sentence: str) -> None:
        """Once: what was wrong a minute ago is mostly wrong still."""
        if sentence not in self._said:
            self._said.add(sentence)
            self.say(sentence)


async def _lock(lock: int, seconds: float) -> None:
    """Take the lock. Not by waiting in the kernel: a thread that hangs there could not be given up."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Away("Another console of this profile is renewing the session and does not finish.") from None
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            return


def _keyring_works() -> bool:
    try:
        found: Any = keyring.get_keyring()
    except Exception:  # Such as a backend that was named and is not there.
        return False
    return not isinstance(found, keyring.backends.fail.Keyring | keyring.backends.null.Keyring)


def _reason(problem: Exception) -> str:
    return plain(str(problem))[:80] or type(problem).__name__


def _file_name(name: str) -> str:
    """Readable, and another one for every name."""
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    return f"{readable[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
