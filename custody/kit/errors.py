"""Everything that can go wrong, as ten kinds.

A named error derives from a kind; its docstring is the message a person reads, its class name in snake case is
the code a program reads. Only `api/http/errors.py` knows which status a kind becomes.
"""

import re
from typing import Any


class CustodyError(Exception):
    """The request failed."""

    def __init__(self, message: str | None = None, *, code: str | None = None, **context: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.code = code or _snake(type(self).__name__)
        self.context = context
        super().__init__(self.message)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Invalid(CustodyError):
    """The request is not valid."""


class Unauthenticated(CustodyError):
    """Authentication required: send a valid credential."""


class Forbidden(CustodyError):
    """This credential does not allow the action."""


class NotFound(CustodyError):
    """Not found."""


class Conflict(CustodyError):
    """Conflicts with the current state of the resource."""


class Gone(CustodyError):
    """This route is retired."""


class TooMany(CustodyError):
    """Too many requests; retry later."""

    def __init__(self, message: str | None = None, *, retry_after: int = 1, code: str | None = None, **context: Any):
        super().__init__(message, code=code, **context)
        self.retry_after = retry_after


class Frozen(CustodyError):
    """The agent or its tenant is frozen; no order is signed until it is unfrozen."""


class UpstreamFailed(CustodyError):
    """A blockchain node could not answer."""


class Unavailable(CustodyError):
    """The service is temporarily unavailable; retry shortly."""

    retry_after = 1


class QuotaExceeded(Conflict):
    """This would exceed a quota of the tenant; delete what is not used, or ask the operator for more."""


class DailyQuotaExceeded(TooMany):
    """This would exceed a daily quota of the tenant, or its open streams; retry after the time in Retry-After."""

    def __init__(self, message: str | None = None, *, retry_after: int = 1, **context: Any) -> None:
        super().__init__(message, retry_after=retry_after, code="quota_exceeded", **context)
