"""Prices that the operator's endpoint issues: the newest document, as long as it is young enough.

The scheduler fetches it, and nothing that it or the network says is believed: the operator's key signed the document.
It is kept beside the database, so that an older one never takes its place, after a restart either.
"""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from custody.chains.price_document import BadDocument, PriceDocument, PriceKey, read_document
from custody.kit import clock
from custody.kit.logs import logger
from custody.protocol.common import PricesHealth

log = logger(__name__)
# A clock may be so far behind that of the one that issues prices.
SKEW_SECONDS: Final = 60
_NOTHING: Final[Mapping[str, Decimal]] = {}


class IssuedPrices:
    """The newest document that the key signed, in memory and in a file."""

    def __init__(
        self, path: Path, key: PriceKey, max_age_seconds: int, now: Callable[[], datetime] = clock.now
    ) -> None:
        self._path, self._key, self._max_age, self._now = path, key, max_age_seconds, now
        self._newest: PriceDocument | None = None
        self._body = b""

    def load(self) -> None:
        """Read what was kept. What this key did not sign is no document: another key begins with nothing."""
        if not self._path.exists():
            return
        signature, _, body = self._path.read_bytes().partition(b"\n")
        try:
            self._newest, self._body = read_document(body, signature.decode("latin-1"), self._key), body
        except BadDocument as problem:
            log.warning("kept prices are not believed", extra={"reason": problem.problem})

    def at(self, now: datetime) -> Mapping[str, Decimal]:
        """Give the prices that count at a moment: none once they are too old, by either clock."""
        newest = self._newest
        return _NOTHING if newest is None or self._problem_of(newest, now) is not None else newest.prices

    def take(self, body: bytes, signature: str) -> str | None:
        """Keep a document that is newer than the last one; a word for what is wrong with any other."""
        try:
            document = read_document(body, signature, self._key)
        except BadDocument as problem:
            return problem.problem
        if (wrong := self._problem_of(document, self._now())) is not None:
            return wrong
        if (newest := self._newest) is not None and document.issued_at <= newest.issued_at:
            # Two documents of one moment: which of them is meant, nobody can say.
            return None if body == self._body else "not_newer"
        self._keep(body, signature)
        self._newest, self._body = document, body
        return None

    def health(self) -> PricesHealth:
        """Tell when the newest prices were issued, and whether they count."""
        newest = self._newest
        old = newest is None or self._problem_of(newest, self._now()) is not None
        return PricesHealth(newest.issued_at if newest is not None else None, old)

    def _problem_of(self, document: PriceDocument, now: datetime) -> str | None:
        # The database's clock is believed only where it makes prices older.
        ours = self._now().timestamp()
        if document.issued_at > ours + SKEW_SECONDS:
            return "in_the_future"
        return "old" if max(now.timestamp(), ours) - document.issued_at > self._max_age else None

    def _keep(self, body: bytes, signature: str) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(signature.encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
