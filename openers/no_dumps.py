"""No core files of a program that has the file's key, a share or a PIN in its memory (promise P5)."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid() -> None:
    """Have no core file made of this process, whatever the host does with one, nor of the programs that it starts.

    A module of a token is code of its maker's, and may well crash. Where processes share a user, its others cannot read
    this memory either.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
