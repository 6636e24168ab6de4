"""An end to a holder that answers without one: the program ends by itself before whoever started it loses patience."""

import os
import threading

from openers.outcomes import Away

# Below the 20 seconds after which the supervisor kills an opener, so that the sentence is heard.
SECONDS = 17.0
_begun = threading.Event()


def begin() -> None:
    """From the first call on, end the whole program in time, as one whose holder is away.

    A thread of its own, for names are resolved and certificates looked at where no signal is noticed.
    """
    if not _begun.is_set():
        _begun.set()
        timer = threading.Timer(SECONDS, _end)
        timer.daemon = True
        timer.start()


def _end() -> None:
    os.write(2, b"The holder, or what gives credentials for it, did not end in time: it is asked again.\n")
    os._exit(Away.status)
