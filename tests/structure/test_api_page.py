"""The pages on the API say what the code does: every code of an error, and the headers that answers carry."""

import re

from api.http.contract import headers
from tests.structure import errors_page

API = (errors_page.PAGE.parent / "api.md").read_text()


def test_every_code_of_an_error_is_on_its_page() -> None:
    assert errors_page.PAGE.read_text() == errors_page.written(), "run make openapi"


def test_the_page_names_every_header_of_an_answer() -> None:
    named = set(re.findall(r"`([A-Z][A-Za-z-]+)`", API))

    assert set(headers.HEADERS) <= named


def test_the_codes_that_the_page_names_exist() -> None:
    known = set(re.findall(r"^\| `(\w+)`", errors_page.written(), flags=re.MULTILINE))

    assert set(re.findall(r"`(?:\d{3} )?([a-z]+(?:_[a-z]+)+)`", API)) <= known
