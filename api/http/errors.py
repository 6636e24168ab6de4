"""Kinds of error to statuses: the only file that knows both. Spec 1/7, decisions 1."""

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
    """The body is larger than 1 MiB."""

    status = 413


class WrongContentType(errors.Invalid):
    """Send JSON with Content-Type: application/json."""

    status = 415


class NoSuchRoute(errors.NotFound):
    """There is no such route."""


class WrongMethod(errors.Invalid):
    """This route does not take that method."""

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
