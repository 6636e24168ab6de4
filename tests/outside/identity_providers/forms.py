"""Reading the form of a page and the parameters of an address, as a browser and a service do."""

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import msgspec


class Form(msgspec.Struct):
    """A form: its address, its method, and its named fields."""

    action: str
    method: str
    fields: dict[str, str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get").lower(), {}))
        elif tag == "input" and self.forms and given.get("name"):
            self.forms[-1].fields[given["name"]] = given.get("value", "")


def form_in(page: str) -> Form:
    """The one form of a page; an AssertionError shows a page that has none, or several."""
    reader = _Reader()
    reader.feed(page)
    assert len(reader.forms) == 1, page
    return reader.forms[0]


def query_of(url: str) -> dict[str, str]:
    """The parameters of an address, each of which is there once."""
    found = parse_qs(urlsplit(url).query, keep_blank_values=True)
    assert all(len(values) == 1 for values in found.values()), url
    return {name: values[0] for name, values in found.items()}
