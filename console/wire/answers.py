"""Answers of the API: data made harmless, or the failure that it is. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from console.wire.failures import AnswerLost, Away, Failure, Malformed, failure_of
from words.texts.plain import clip, harmless

_SENTENCE_CHARACTERS: Final = 500
_REQUEST_ID_CHARACTERS: Final = 128
_CURSOR_CHARACTERS: Final = 256
# A longer Retry-After than this is cut to it.
_LONGEST_WAIT_SECONDS: Final = 900
# Behind a gateway the service is away, whatever page the gateway shows meanwhile.
_OF_A_GATEWAY: Final = frozenset({502, 503, 504})
# What is further off than this is no clock: by it everything would have ended, or nothing ever.
FURTHEST_CLOCK: Final = timedelta(days=1)


class Answer(msgspec.Struct, frozen=True):
    """An answer as it came. `changing`: it answers a request that may have changed something."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes
    changing: bool = False
    # Strings as they were sent, for what is computed over and never shown.
    exact: bool = False

    def __repr__(self) -> str:
        return f"Answer({self.status})"


def data_of(answer: Answer) -> Any:
    """The data of an answer that says yes; raises the failure that any other one is."""
    envelope = _envelope(answer.content, exact=answer.exact)
    if envelope is None:
        raise _foreign(answer)
    if 200 <= answer.status < 300 and envelope["ok"]:
        return envelope.get("data")
    # Where RFC 8628 has its code, its sentence stands beside it.
    said = envelope.get("error_description") or envelope.get("error")
    sentence = said if isinstance(said, str) and said else f"The service responded with status {answer.status}."
    data = envelope.get("data")
    extra = {name: value for name, value in envelope.items() if name not in ("ok", "data")}
    raise failure_of(
        answer.status,
        clip(sentence, _SENTENCE_CHARACTERS),
        extra | (data if isinstance(data, dict) else {}),
        retry_after=wait_of(answer.headers),
        request_id=request_of(answer.headers),
    )


def convert[Shape](data: Any, shape: type[Shape]) -> Shape:
    """Data as what it should be; raises Malformed where it is something else."""
    try:
        return msgspec.convert(data, shape)
    except (msgspec.ValidationError, RecursionError) as problem:
        what = clip(str(problem), _SENTENCE_CHARACTERS)
        raise Malformed(f"The service's response cannot be parsed ({what}).") from None


def total_of(headers: Mapping[str, str], at_least: int) -> int:
    """Read the number of all rows from the header."""
    return _number(headers.get("X-Total-Count", ""), at_least)


def is_least(headers: Mapping[str, str]) -> bool:
    """Tell whether there may be more than the total."""
    return headers.get("X-Total-Is-Estimate") == "true"


def cursor_of(headers: Mapping[str, str]) -> str | None:
    """Return the cursor of the next page; None where there is none."""
    cursor = headers.get("X-Next-Cursor", "")
    return cursor if 0 < len(cursor) <= _CURSOR_CHARACTERS and cursor.isascii() and cursor.isprintable() else None


def next_offset_of(headers: Mapping[str, str]) -> int | None:
    """Return where the next page begins in a list without cursors; None where there is none."""
    return _number(headers.get("X-Next-Offset", ""), 0) or None


def wait_of(headers: Mapping[str, str]) -> int:
    """After how many seconds it may be asked again; the header has seconds or a date."""
    text = headers.get("Retry-After", "")
    then = _date(text)
    if then is None:
        return max(1, min(_LONGEST_WAIT_SECONDS, _number(text, 1)))
    # Between two moments of the service: this machine's clock has no say.
    ahead = (then - (_date(headers.get("Date", "")) or then)).total_seconds()
    return max(1, min(_LONGEST_WAIT_SECONDS, int(ahead)))


def request_of(headers: Mapping[str, str]) -> str:
    """The name of the request in the service's log."""
    found: str = harmless(headers.get("X-Request-Id", ""))
    return clip(found, _REQUEST_ID_CHARACTERS)


def ahead_of(headers: Mapping[str, str], now: datetime) -> timedelta:
    """Measure how far the service's clock is ahead of this machine's, whatever it shows."""
    theirs = _date(headers.get("Date", ""))
    ahead = theirs - now if theirs else timedelta()
    # The header has whole seconds; a smaller difference than that is none.
    return ahead if abs(ahead) > timedelta(seconds=2) else timedelta()


def _envelope(content: bytes, *, exact: bool) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(content)
        # What says no is shown, always.
        exact = exact and isinstance(found, dict) and found.get("ok") is True
        found = found if exact else harmless(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("ok"), bool) else None


def _foreign(answer: Answer) -> Failure:
    """Not of this service: a gateway's page, something else at this address, or a half of something."""
    if answer.status in _OF_A_GATEWAY:
        kind = AnswerLost if answer.changing else Away
        return kind(f"{answer.url} responded with {answer.status}: the service behind it is unavailable.")
    if answer.status >= 500:
        return failure_of(
            answer.status,
            f"{answer.url} responded with status {answer.status}.",
            {},
            request_id=request_of(answer.headers),
        )
    return Malformed(f"{answer.url} responded with {answer.status}, but not like this service.")


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else otherwise


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
