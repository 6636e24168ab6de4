"""Running a program in the foreground as if we had become it: its input and output, its signals, its exit status."""

import os
import signal
from collections.abc import Mapping, Sequence

# Not executable, and not there: the words of every shell.
CANNOT_RUN, NOT_FOUND = 126, 127
_WATCHED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD}
# `si_code` of a signal that the kernel made, as it does for the keys of a terminal.
_SI_KERNEL = 0x80


def run(program: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run it to its end and return its exit status, 128 and the signal's number where one ended it.

    Raises OSError when it cannot be started. Signals wait for us to take them one by one, so none is lost between the
    start of the program and its end.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        pid = os.posix_spawnp(
            program[0],
            list(program),
            dict(environment),
            setsigmask=mask,
            # Python ignores these, and what is ignored stays so in a child.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
        return _wait_for_end(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait_for_end(pid: int) -> int:
    while True:
        came = signal.sigwaitinfo(_WATCHED)
        if came.si_signo != signal.SIGCHLD:
            # A key of the terminal goes to its whole group, the program among it; twice would be "now at once".
            if came.si_code != _SI_KERNEL:
                os.kill(pid, came.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
