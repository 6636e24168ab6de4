"""E-mail addresses and telephone numbers that a code is sent to.

Narrower than the standards: what no mail program writes (quoted names, comments, address literals, other alphabets)
is refused, so that one mailbox is one account and nothing can break out of a header. So are `=` and `?`, with which
a header spells other letters (RFC 2047): who reads `=?utf-8?q?=76ictim?=@bank.com` so writes to victim@bank.com.
"""

import re
from typing import Final

from custody.kit.errors import Invalid

MAX_EMAIL: Final = 254
_MAX_LOCAL: Final = 64
_ATOM = r"[A-Za-z0-9!#$%&'*+/^_`{|}~\-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
# Letters only, or a name of another alphabet in its ASCII form; so no address in numbers passes for a domain.
_TOP = r"(?:[A-Za-z]{2,63}|[Xx][Nn]--[A-Za-z0-9\-]{1,58}[A-Za-z0-9])"
DOMAIN: Final = rf"(?:{_LABEL}\.)+{_TOP}"
EMAIL_PATTERN = rf"^{_ATOM}(?:\.{_ATOM})*@{DOMAIN}\Z"
PHONE_PATTERN = r"^\+[1-9][0-9]{6,14}\Z"
_EMAIL = re.compile(EMAIL_PATTERN)
_PHONE = re.compile(PHONE_PATTERN)


class BadEmailAddress(Invalid):
    """Not a valid e-mail address; write one such as name@example.com."""


class BadPhoneNumber(Invalid):
    """Not a telephone number in international form; write one such as +41790000000."""


def normalised_email(text: str) -> str:
    """The address in lower case, or BadEmailAddress.

    Mailboxes that differ only in case are one to every provider, and must not become two people here.
    """
    if len(text) > MAX_EMAIL or not _EMAIL.match(text) or text.index("@") > _MAX_LOCAL:
        raise BadEmailAddress
    return text.lower()


def phone_number(text: str) -> str:
    """The number in E.164 (a plus sign and at most 15 digits), or BadPhoneNumber."""
    if not _PHONE.match(text):
        raise BadPhoneNumber
    return text
