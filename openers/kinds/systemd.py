"""`systemd`: `systemd-creds` encrypts the file's key with the key of this host, its TPM, or both; named by which.

The credential's name is `custody-ID`, which systemd authenticates, so one of another file does not open.
"""

import binascii
import os
from base64 import b64decode, b64encode
from time import monotonic

from custody.kit.key_head import KEY_BYTES, MAX_HOLDER_BLOB
from openers import bounded
from openers.hosts import with_host, without_host
from openers.outcomes import Away, BadSettings, NotOurs, Refused

# Never `auto`, which on some machines means a key that everybody knows.
_MODES = ("host", "tpm2", "host+tpm2")
_MOST_BASE64 = 2 * MAX_HOLDER_BLOB
_MEND = "Open the file by another holder, and lock it to this host again."


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Encrypt the key of a file."""
    mode = _mode(name)
    ended = _creds(f"--with-key={mode}", f"--name=custody-{file}", "encrypt", given=key, most=_MOST_BASE64)
    _refuse_common(ended)
    try:
        blob = b64decode(b"".join(ended.output.split()), validate=True)
    except binascii.Error:
        blob = b""
    if ended.status or not blob:
        raise BadSettings(f"systemd-creds did not encrypt with {mode} and ended with {ended.status}: {ended.complaint}")
    return with_host(mode, name), blob


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Decrypt the key of a file."""
    _mode(name)
    ended = _creds(f"--name=custody-{file}", "decrypt", given=b64encode(blob) + b"\n", most=KEY_BYTES)
    _refuse_common(ended)
    if ended.status:
        raise NotOurs(
            f"The holder systemd {name} is of another host or file, or was changed: {ended.complaint} {_MEND}"
        )
    return ended.output


def _mode(name: str) -> str:
    mode = without_host(name)
    if mode not in _MODES:
        raise BadSettings(f"The holder systemd {name} is not named by its key: {', '.join(_MODES)}.")
    return mode


def _refuse_common(ended: bounded.Ended) -> None:
    """Raise what its words tell apart, for every failure has one status; they are those of its versions since 252."""
    if not ended.status:
        return
    if b"Permission denied" in ended.said:
        raise Refused(
            "systemd-creds may not read the key of this host, which is root's: the opener has to run as root."
        )
    if b"policy digest does not match" in ended.said or b"olicy check failed" in ended.said:
        raise Refused(f"The TPM's PCRs are not as they were when the key was encrypted. {_MEND}")
    if b"TCTI context" in ended.said or b"tcti:IO failure" in ended.said:
        raise Away("The TPM that systemd-creds needs does not answer.")


def _creds(*words: str, given: bytes, most: int) -> bounded.Ended:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    environment["LC_ALL"] = "C"
    until = monotonic() + bounded.LONGEST_SECONDS
    try:
        return bounded.run(["systemd-creds", *words, "-", "-"], given, most=most, until=until, environment=environment)
    except bounded.NotStarted:
        raise BadSettings("systemd-creds is not there: it comes with systemd 250 and later.") from None
    except bounded.SaidTooMuch:
        raise NotOurs(f"systemd-creds gave more than a key. {_MEND}") from None
    except bounded.TookTooLong:
        raise Away(f"systemd-creds did not end in {bounded.LONGEST_SECONDS:.0f} s.") from None
