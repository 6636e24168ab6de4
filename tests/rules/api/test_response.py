"""Our shorter way of writing header fields sends what Sanic would."""

from sanic.response import HTTPResponse

from api.http.response import Response
from tests.fixtures.each import each


@each(
    "value",
    [
        "nosniff",
        "",
        " spaces within and around ",
        "line\r\nSet-Cookie: a=b",
        "line\nend",
        "nul\0",
        "tab\tand\x7f",
        "é and €",
        "\udcff",
        7,
    ],
)
@each("status", [200, 204, 304, 500])
def test_every_field_is_sent_as_sanic_sends_it(value: object, status: int) -> None:
    ours, theirs = (
        kind(b"{}", status, {"X-Field": value, "ETag": "a"}, "application/json") for kind in (Response, HTTPResponse)
    )

    assert list(ours.processed_headers) == list(theirs.processed_headers)
    assert not any(mark in field for pair in ours.processed_headers for field in pair for mark in (b"\r", b"\n", b"\0"))
