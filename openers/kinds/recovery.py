"""A recovery key: HPKE (RFC 9180) to an X25519 key whose private half people keep on paper, away from every machine.

The base mode with HKDF-SHA256 and AES-256-GCM. The holder's name is the public key in hex, the info is the binding to
the file. Wrapping needs the public key alone, so the paper stays where it is when the file gets another key.
"""

import errno
import getpass
import os
import re
import stat

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from custody.kit.key_head import binding
from custody.kit.opener_settings import RECOVERY_KEY_FILE as FILE
from openers import written_key
from openers.outcomes import BadSettings, NotOurs, Refused
from openers.shares import Paper

_PUBLIC = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def make() -> tuple[str, str]:
    """A fresh recovery key: the text that people write down, and the public key that the head names."""
    private = X25519PrivateKey.generate()
    return written_key.write(private.private_bytes_raw()), _public_of(private)


def public_of(text: str) -> str:
    """The public key of a recovery key as it was written down; BadSettings says which group is wrong."""
    return _public_of(_private(text))


def paper_of(text: str) -> Paper:
    """A recovery key as it is shown, and as what is typed back is read."""
    return Paper("the recovery key", text, public_of)


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Wrap the file's key for whoever has the private half of this public key."""
    if not _PUBLIC.fullmatch(name):
        raise BadSettings("The name of a recovery holder is its public key: 64 hex digits, lower case.")
    try:
        return name, _SUITE.encrypt(key, X25519PublicKey.from_public_bytes(bytes.fromhex(name)), info=binding(file))
    except ValueError:
        # A point of small order, with which anybody could open it.
        raise BadSettings("That public key is none of a recovery key: anybody could open what it wraps.") from None


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Open with the recovery key in the file that the settings name, or else as it is typed at the terminal."""
    return unwrap_with(_read_file() if os.environ.get(FILE) else _ask(), name, blob, file)


def unwrap_with(text: str, name: str, blob: bytes, file: str) -> bytes:
    """Open with a recovery key as it was written down."""
    private = _private(text)
    if _public_of(private) != name:
        raise NotOurs("That is another recovery key: the sealed key file names a holder with a different public key.")
    try:
        return _SUITE.decrypt(blob, private, info=binding(file))
    except InvalidTag:
        raise NotOurs("The recovery key fits, and what it wrapped was changed or belongs to another file.") from None


def _public_of(private: X25519PrivateKey) -> str:
    return private.public_key().public_bytes_raw().hex()


def _private(text: str) -> X25519PrivateKey:
    try:
        return X25519PrivateKey.from_private_bytes(written_key.read(text))
    except written_key.Misspelt as problem:
        raise BadSettings(str(problem)) from None


def _read_file() -> str:
    path = os.environ[FILE]
    try:
        # Not waited for, should it be a pipe that nobody writes to.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        said = "is a symbolic link" if problem.errno == errno.ELOOP else f"cannot be read: {problem.strerror}"
        raise BadSettings(f"{FILE}={path!r} {said}.") from None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise BadSettings(f"{FILE}={path!r} is no regular file.")
        if found.st_mode & 0o077:
            raise Refused(f"{FILE}={path!r} may be read by others: chmod 600 it, and think of who read it.")
        if found.st_size > written_key.MOST_TYPED:
            raise BadSettings(f"{FILE}={path!r} is too long for a recovery key.")
        return os.read(opened, written_key.MOST_TYPED + 1).decode("ascii", "replace")
    finally:
        os.close(opened)


def _ask() -> str:
    """Ask at the terminal, unechoed; only where this process is the one that the terminal listens to."""
    missing = f"Opening by a recovery key needs it: in a file named by {FILE}, or typed at a terminal."
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise BadSettings(missing) from None
    try:
        # In the background a read would stop this process for ever.
        if os.tcgetpgrp(terminal) != os.getpgrp():
            raise BadSettings(missing)
    finally:
        os.close(terminal)
    try:
        return getpass.getpass("Recovery key, not shown: ")
    except EOFError:
        raise BadSettings(missing) from None
