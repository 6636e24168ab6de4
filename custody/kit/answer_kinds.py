"""The kinds of answer that a use case of the api gives. One without a kind is the plain value: a success.

None of them is a status: `api/http/answers.py` has the table.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from custody.kit import clock


class Created[T](msgspec.Struct, frozen=True):
    """It was made now, where the plain value says that it was there."""

    data: T

    def __repr__(self) -> str:
        return "Created()"


class Metered[T](msgspec.Struct, frozen=True):
    """A success under a limit that a rule of the caller's own sets: what is left of it, where one was evaluated."""

    data: T
    limit: int | None = None
    remaining: int = 0
    seconds: int = 0

    def __repr__(self) -> str:
        return "Metered()"


class Recorded[T](msgspec.Struct, frozen=True):
    """Not done, and written down: returned, because raising would undo the record. `error` says why."""

    data: T
    error: str
    # Seconds.
    retry_after: int | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Deferred[T](Recorded[T], frozen=True):
    """A person must decide first."""


class Declined[T](Recorded[T], frozen=True):
    """A rule refuses it."""


class Throttled[T](Recorded[T], frozen=True):
    """A rule refuses it for now: there were too many. `limit` is how many that rule admits in its window."""

    limit: int | None = None


class NotReady[T](Recorded[T], frozen=True):
    """Something that this process needs is not there."""


class Document(msgspec.Struct, frozen=True):
    """A text that is no JSON: what kind it is, and the headers that go with it."""

    content: str
    media: str
    headers: dict[str, str] = {}
    # What a browser calls the file that it keeps; without a name it shows the text.
    name: str | None = None

    def __repr__(self) -> str:
        return f"Document({self.media})"


class Cookie(msgspec.Struct, frozen=True):
    """A cookie for this deployment's own pages and no script, by the name that a route's `cookies` declare.

    `cross_site`: it comes back, too, with a form that a page of another site sends here.
    """

    name: str
    value: str
    seconds: int
    cross_site: bool = False

    def __repr__(self) -> str:
        return f"Cookie({self.name})"


class Redirect(msgspec.Struct, frozen=True):
    """Sends a browser to another address, with the status that the route declares."""

    location: str
    cookie: Cookie | None = None

    def __repr__(self) -> str:
        return "Redirect()"


class Page(msgspec.Struct, frozen=True):
    """A page for a person in a browser; the body is HTML, in which everything that came from outside is escaped."""

    title: str
    body: str

    def __repr__(self) -> str:
        return f"Page({self.title})"


def file_name(what: str, ending: str) -> str:
    """The name of a file that is made today: letters, digits, dots and dashes."""
    return f"{what}-{clock.now():%Y-%m-%d}.{ending}"


class Streamed(msgspec.Struct, frozen=True):
    """An answer that is sent piece by piece, for as long as the caller may have it.

    `chunks` takes a function that checks the caller's credential again, and raises once it is no longer valid.
    """

    media: str
    chunks: Callable[[Callable[[], Awaitable[object]]], AsyncIterator[bytes]]

    def __repr__(self) -> str:
        return f"Streamed({self.media})"
