"""One long read of a tenant at a time, so that nobody takes the connections and the memory of all."""

from collections.abc import Iterator
from contextlib import contextmanager

from custody.kit.errors import TooMany


class ReadingAlready(TooMany):
    """An export or a distant page is already being read for this tenant; retry when it has finished."""


class Alone:
    """The tenants that read now, in this process."""

    def __init__(self) -> None:
        self._reading: set[str] = set()

    @contextmanager
    def of(self, tenant: str) -> Iterator[None]:
        """Be the only one for a tenant meanwhile. Raises ReadingAlready."""
        if tenant in self._reading:
            raise ReadingAlready(retry_after=1)
        self._reading.add(tenant)
        try:
            yield
        finally:
            self._reading.discard(tenant)
