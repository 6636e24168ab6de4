"""The check whether an assertion is good now: its age, its bounds, and the end of the session that it speaks of."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from custody.identity.saml_refusals import SamlRefused
from custody.identity.saml_shape import Parts
from custody.identity.xml_tree import Element
from custody.kit.instants import read_instant

SKEW: Final = timedelta(seconds=120)
MAX_AGE: Final = timedelta(minutes=10)
_YEARS: Final = range(2000, 3000)
_CLOCKS = "Sign in again; if it is refused again, compare the clocks of the identity provider and of this service."


class Times(msgspec.Struct, frozen=True):
    """Until when an assertion must be remembered, when the person signed in, and until when that counts."""

    not_on_or_after: datetime
    authn_instant: datetime | None
    session_not_on_or_after: datetime | None


def check_times(parts: Parts, now: datetime) -> Times:
    """The times of an assertion that is good now, or SamlRefused with the one that is not."""
    issued = _moment(parts.assertion, "IssueInstant")
    for instant in (issued, _moment(parts.response, "IssueInstant")):
        if instant > now + SKEW:
            raise _refusal("saml_not_yet_valid", "was issued in the future", f"until {now + SKEW}", instant)
        if instant < now - MAX_AGE:
            raise _refusal("saml_too_old", "is older than 10 minutes", f"since {now - MAX_AGE}", instant)
    ends = [_moment(parts.confirmation_data, "NotOnOrAfter"), *_optional(parts.conditions, "NotOnOrAfter")]
    for end in ends:
        if end <= now - SKEW:
            raise _refusal("saml_expired", "has expired", f"after {now - SKEW}", end)
    for begins in _optional(parts.conditions, "NotBefore"):
        if begins > now + SKEW:
            raise _refusal("saml_not_yet_valid", "is not valid yet", f"until {now + SKEW}", begins)
    signed_in = [_moment(one, "AuthnInstant") for one in parts.authentications]
    for instant in signed_in:
        if instant > now + SKEW:
            raise _refusal("saml_not_yet_valid", "speaks of a sign-in in the future", f"until {now + SKEW}", instant)
    sessions = [end for one in parts.authentications for end in _optional(one, "SessionNotOnOrAfter")]
    session = min(sessions, default=None)
    if session is not None and session <= now:
        raise _refusal("saml_session_ended", "is of a session that has ended", f"after {now}", session)
    if len(parts.confirmations) > 1:
        # By another one the assertion could be accepted later than by this.
        ends = _optional(parts.conditions, "NotOnOrAfter")
    return Times(min([*ends, issued + MAX_AGE]) + SKEW, min(signed_in, default=None), session)


def _optional(element: Element, name: str) -> list[datetime]:
    return [] if element.get(name) is None else [_moment(element, name)]


def _moment(element: Element, name: str) -> datetime:
    text = element.get(name)
    found = read_instant(text or "")
    if found is None or found.year not in _YEARS:
        raise SamlRefused(
            "saml_time_malformed",
            "times",
            f"{name} of {element.local} is missing or is no time with a zone. The administrator of the identity "
            "provider must find out why.",
            expected="a time such as 2026-01-31T12:00:00Z",
            found=text or "nothing",
        )
    return found


def _refusal(code: str, what: str, expected: str, found: datetime) -> SamlRefused:
    return SamlRefused(code, "times", f"The answer {what}. {_CLOCKS}", expected=expected, found=str(found))
