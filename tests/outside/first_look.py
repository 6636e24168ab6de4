"""The first look of one of our processes when it begins.

`python -m tests.outside.first_look MODULE` imports what the module imports, prints what it found as JSON, and stays.
"""

import gc
import os
import random
import resource
import signal
import sys
import threading
import warnings
from pathlib import Path

import msgspec

from tests.outside.preloaded import load


def findings() -> dict[str, object]:
    """Everything in which a fork might differ from an interpreter that was just started."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return {
        "modules": sorted(set(sys.modules)),
        "main": [sys.modules["__main__"].__name__, sys.modules["__main__"].__spec__.name],
        "arguments": sys.argv,
        "path": sys.path,
        "flags": repr(sys.flags),
        "warnings": [sys.warnoptions, [repr(one) for one in warnings.filters]],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "descriptors": sorted(int(one.name) for one in Path("/proc/self/fd").iterdir() if one.exists()),
        "streams": [[one.encoding, one.errors, one.line_buffering] for one in (sys.stdin, sys.stdout, sys.stderr)],
        "limits": [resource.getrlimit(number) for number in _LIMITS],
        "signals": [repr(signal.getsignal(number)) for number in signal.valid_signals()],
        "status": {name: status[name] for name in _SAME},
        "group": [os.getpgid(0), os.getsid(0)],
        "threads": [threading.active_count(), threading.main_thread().ident == threading.get_ident()],
        "garbage": [gc.isenabled(), gc.get_threshold()],
    }


# Who it is, what it may do, and which signals are held back from it.
_LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
_SAME = ("Uid", "Gid", "Groups", "Umask", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Seccomp")

if __name__ == "__main__":
    load(sys.argv[1])
    looked = {"found": findings(), "drawn": random.random()}
    sys.stdout.write(msgspec.json.encode(looked).decode() + "\n")
    sys.stdout.flush()
    signal.pause()
