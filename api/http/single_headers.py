"""Headers that may be sent once."""

from sanic import Request

from custody.kit.errors import Invalid

_MAX_HEADER = 1024


class HeaderMalformed(Invalid):
    """A header of the signed request is repeated, too long, or not ASCII."""


def single(request: Request, name: str, most: int = _MAX_HEADER) -> str | None:
    """The value of a header, or None. Of two values one would be checked, the other perhaps meant."""
    values = request.headers.getall(name, [])
    if len(values) > 1 or any(len(value) > most or not value.isascii() for value in values):
        raise HeaderMalformed
    return values[0] if values else None
