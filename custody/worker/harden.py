"""The rights given up before a key is read (promise P5): core files, being traced, gaining privileges."""

import ctypes
import resource
import sys

import coincurve

from custody.kit.logs import logger

log = logger(__name__)

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGNATURE_BYTES = 65


class Unsafe(SystemExit):
    """A protection that must be there is not."""


def harden(name: str) -> dict[str, bool]:
    """Switch the protections on and say which hold; refuse to go on without those that every Linux has."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    active = {"no_core_files": resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)}
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        active["not_dumpable"] = libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
        active["no_new_privileges"] = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    missing = [name for name, holds in active.items() if not holds]
    if missing:
        raise Unsafe(f"the {name} refuses to start without: {', '.join(missing)}")
    return active


def assert_fast_curve() -> None:
    """Refuse a curve library that fell back to Python: slow, and not constant-time."""
    if not coincurve._libsecp256k1.ffi.__class__.__module__.startswith("_cffi_backend"):
        raise Unsafe("coincurve is not backed by libsecp256k1; reinstall it")
    if len(coincurve.PrivateKey(b"\x01" * 32).sign_recoverable(b"\x02" * 32, hasher=None)) != _SIGNATURE_BYTES:
        raise Unsafe("coincurve does not sign as expected; reinstall it")
