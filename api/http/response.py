"""Sanic's response, with a shorter way for the header fields that nearly every answer has."""

from collections.abc import Iterator

from sanic.helpers import has_message_body
from sanic.response import HTTPResponse


class Response(HTTPResponse):
    """Sends the same bytes as Sanic's own, which looks for line ends in each letter of each field."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """The fields as they are sent; of one with a line end or NUL in it Sanic takes those out."""
        if has_message_body(self.status):  # type: ignore[no-untyped-call] # it has no types
            self.headers.setdefault("content-type", self.content_type)
        return ((_header_bytes(name), _header_bytes(str(value))) for name, value in self.headers.items())


def _header_bytes(text: str) -> bytes:
    if text.isascii() and text.isprintable():
        return text.encode()
    return HTTPResponse._sanitize_header_value(text).encode(errors="surrogateescape")
