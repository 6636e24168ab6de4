"""The waits of the scheduler before it asks a node about a transaction again. The database is given these numbers."""

from typing import Final, NamedTuple


class Backoff(NamedTuple):
    """The first wait and the longest, in seconds."""

    first: int
    longest: int


# A signed transaction that no node took is sent again: the wait doubles each time.
RESEND: Final = Backoff(first=5, longest=300)
# A transaction that is not final is looked up again after a tenth of its age.
TRACK: Final = Backoff(first=2, longest=300)
LOOKS_PER_AGE: Final = 10
# A node that took a transaction is first asked about it after so many seconds; so is one about a payment.
FIRST_LOOK: Final = 4
# What others take to the chain is looked for so long: whatever is unknown by then, a node will not tell.
LOOK_FOR_UNSENT: Final = 3 * 86400
