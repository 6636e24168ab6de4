"""The intervals of garbage collection: objects that refer to each other and to which nothing else refers.

Nearly all that a request makes is freed as soon as it is let go of, so the usual search, after every 700 objects more,
finds nothing and goes through the same living ones again.
"""

import gc

# So many more are made than freed until the youngest are searched; what waits in cycles is a few requests' worth.
_AFTER = 10_000


def look_rarely() -> None:
    """Call it once, when everything is imported: what exists by then is never searched again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_AFTER, 10, 10)
