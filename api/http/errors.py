"""Kinds of error to statuses: the only file that knows both."""

from custody.kit import errors

STATUS: tuple[tuple[type[errors.CustodyError], int], ...] = (
    (errors.Invalid, 400),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Gone, 410),
    (errors.Frozen, 423),
    (errors.TooMany, 429),
    (errors.UpstreamFailed, 502),
    (errors.Unavailable, 503),
)


class BodyTooLarge(errors.Invalid):
    """The body is larger than this route accepts."""

    status = 413

    def __init__(self, most: int | None = None) -> None:
        super().__init__(
            None if most is None else f"The body is larger than the {most // 1024} KiB this route accepts."
        )


class WrongContentType(errors.Invalid):
    """Send JSON with Content-Type: application/json."""

    status = 415


class NoSuchRoute(errors.NotFound):
    """No such route."""


class WrongMethod(errors.Invalid):
    """This route does not support this method."""

    status = 405


class HeadersTooLarge(errors.Invalid):
    """The request headers are too large."""

    status = 431


def status_of(problem: errors.CustodyError) -> int:
    """The HTTP status of an error."""
    own = getattr(problem, "status", None)
    if isinstance(own, int):
        return own
    return next((status for kind, status in STATUS if isinstance(problem, kind)), 500)
