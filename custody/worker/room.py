"""The check whether the database takes rows. A full disk is noticed by the write that failed on it. Promise P3."""

from custody.kit.db import Pool


class Room:
    """Remembers that a write found no room, and tries again whenever somebody asks."""

    def __init__(self) -> None:
        self._short = False

    def ran_out(self) -> None:
        """A write was refused because the disk of the database is full."""
        self._short = True

    async def there(self, pool: Pool) -> bool:
        """Say whether there is room; costs nothing unless there was none."""
        if self._short:
            self._short = not await pool.fetchval("SELECT room_to_write()")
        return not self._short
