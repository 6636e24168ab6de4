"""The mails beside codes: plain text, and the same as simple HTML.

A name that somebody chose is quoted on a line of its own: it may hold anything but control characters, an address to
click on too, and must not read as one of our sentences.
"""

import html
from typing import Final
from urllib.parse import urlsplit

from custody.notifications.mail import Letter

_SHOWN: Final = 100


def invitation(  # noqa: PLR0913 - everything that it says
    public_url: str, *, tenant: str, name: str, role: str, token: str, until: str, by: str | None = None
) -> Letter:
    """An invitation with the link that accepts it; the token is in the fragment, which no server is sent."""
    link = f"{public_url}/invitation#{token}"
    who = by or f"The operator of {public_url}"
    said = (
        f"{who} invites you to join an organisation {'there' if by is None else f'at {public_url}'}.",
        f"Organisation: {_quote(name)} ({tenant})",
        f"Your role: {role}",
        f"The invitation works once, until {until}, for this e-mail address.",
    )
    end = "If you did not expect it, you can ignore this mail: nothing happens until you accept."
    text = "\n".join((said[0], "", *said[1:], "", "To accept, open", "", f"    {link}", "", end, ""))
    page = _page(*said, link=link, end=end)
    return Letter(f"Invitation to join an organisation at {_host(public_url)}", text, page)


def acceptance(public_url: str, *, tenant: str, name: str, email: str, role: str) -> Letter:
    """To an owner: somebody accepted an invitation."""
    said = (
        f"{email} accepted an invitation to your organisation at {public_url}.",
        f"Organisation: {_quote(name)} ({tenant})",
        f"Role: {role}",
    )
    end = "If that should not be, an owner or admin can remove the member."
    text = "\n".join((said[0], "", *said[1:], "", end, ""))
    return Letter(f"A new member of your organisation at {_host(public_url)}", text, _page(*said, end=end))


def membership(public_url: str, tenant: str, name: str, change: str) -> Letter:
    """To those who may name people of an organisation, and to whom it is about: a sentence about what was changed."""
    said = (
        f"The people of an organisation at {public_url} were changed.",
        f"Organisation: {_quote(name)} ({tenant})",
        change,
    )
    end = "If that should not be, an owner can take it back; the organisation's log says when and from where it came."
    text = "\n".join((said[0], "", *said[1:], "", end, ""))
    return Letter(f"The people of your organisation at {_host(public_url)}", text, _page(*said, end=end))


def _page(*said: str, link: str | None = None, end: str) -> str:
    button = f'<p><a href="{html.escape(link)}">Accept the invitation</a></p>' if link else ""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in said)
    return f'<!doctype html><html lang="en"><body>{lines}{button}<p>{html.escape(end)}</p></body></html>\n'


def _quote(name: str) -> str:
    """A name as text that stays on its line, and that no mail program turns over or runs into what follows."""
    plain = "".join(letter for letter in name if letter.isprintable())
    return f"\u201c{plain[:_SHOWN]}\u201d" if len(plain) <= _SHOWN else f"\u201c{plain[:_SHOWN]}\u2026\u201d"


def _host(public_url: str) -> str:
    return urlsplit(public_url).netloc
