"""A process that has imported what one of our processes imports, and forks itself when one is to be started.

`python -m tests.outside.preloaded MODULE DESCRIPTOR`: through that socket comes how a process is to be started, with
its input, its outputs, and a socket that is told the process' id and later how it ended. What is forked runs as under
`python -m`, and ends as an interpreter does. Once nobody can ask any more, this process ends too.
"""

import ctypes
import gc
import importlib
import os
import resource
import runpy
import select
import signal
import socket
import sys
from pathlib import Path

import msgspec

LONGEST = 200_000
# What a module makes of its code alone, whatever its settings: a function without arguments that keeps it.
_MADE = {"api": ("api.app", "contracts")}
# What a module imports ten seconds after its start, or with the first order that needs it: that was most of the time
# that a signer of the tests took of a core. `tests/signer/test_second_reader.py` holds that it comes late.
_LATER = {"signer": ("eth_account.messages", "embit.psbt")}
_PR_SET_PDEATHSIG = 1


class Start(msgspec.Struct, frozen=True):
    """The way in which a process is to be started."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    # How many files it may have open, at first and at most.
    files: tuple[int, int]


def load(module: str) -> None:
    """Import everything that the module imports, sooner or later, and make what it makes of that alone.

    No trace is left of the module itself: it runs as `__main__`.
    """
    name = f"{module}.__main__" if hasattr(importlib.import_module(module), "__path__") else module
    importlib.import_module(name)
    for library in _LATER.get(module, ()):
        importlib.import_module(library)
    if module in _MADE:
        place, function = _MADE[module]
        getattr(importlib.import_module(place), function)()
    del sys.modules[name]
    parent, _, last = name.rpartition(".")
    if parent:
        delattr(sys.modules[parent], last)
    running = len(list(Path("/proc/self/task").iterdir()))
    if running != 1:
        raise RuntimeError(f"{module} has {running} threads once it is imported, and cannot be forked")
    # What is there stays: a search through it would copy every page of it into each process.
    gc.collect()
    gc.freeze()


def next_start(control: socket.socket) -> Start | None:
    """Fork for each start that is asked for; in what was forked the start, and here None once nobody can ask."""
    told: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in told:
                poll.unregister(ready)
                pid, teller = told.pop(ready)
                _tell_the_end(pid, teller)
                os.close(ready)
                continue
            text, descriptors, _, _ = socket.recv_fds(control, LONGEST, 4)
            if not text:
                return None
            teller = socket.socket(fileno=descriptors.pop())
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                for other in (control, teller, *(socket for _, socket in told.values())):
                    other.close()
                for handle in told:
                    os.close(handle)
                start = msgspec.json.decode(text, type=Start)
                _become(start, descriptors, parent)
                return start
            for descriptor in descriptors:
                os.close(descriptor)
            handle = os.pidfd_open(pid)
            told[handle] = (pid, teller)
            poll.register(handle, select.POLLIN)
            socket.send_fds(teller, [str(pid).encode()], [handle])


def _tell_the_end(pid: int, teller: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with teller:
        try:
            teller.send(str(os.waitstatus_to_exitcode(status)).encode())
        except OSError:
            return  # nobody waits for it any more


def _become(start: Start, descriptors: list[int], parent: int) -> None:
    """Do what happens between fork and exec of a start, and read what the interpreter would from its environment."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, start.files)
    # Without any locale an interpreter sets this one for itself and its children.
    coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update(start.environment | coerced)


if __name__ == "__main__":
    # Ctrl-C stops the tests and what was forked; how that ended they still hear from here.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[2])) as control:
        load(sys.argv[1])
        start = next_start(control)
    if start is not None:
        signal.signal(signal.SIGINT, interrupt)
        sys.argv[1:] = start.arguments
        runpy.run_module(start.module, run_name="__main__", alter_sys=True)
